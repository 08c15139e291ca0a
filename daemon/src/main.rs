//! Parses the command line and calls the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    heldout::cli::main()
}
