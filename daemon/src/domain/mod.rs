//! What heldout talks about: protocols, leases, runs, rows, verdicts. Nothing here knows SQL, HTTP
//! or a clock; every type is valid by construction or refuses with a [`refusal::Refusal`].

pub mod canonical;
pub mod ids;
pub mod protocol;
pub mod records;
pub mod refusal;
pub mod seed_range;
