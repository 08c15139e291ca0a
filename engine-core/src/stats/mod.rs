//! Statistics of paired games.

pub mod gate;
