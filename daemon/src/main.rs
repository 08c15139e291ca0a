//! Parses the command line and calls the library.

fn main() {}
