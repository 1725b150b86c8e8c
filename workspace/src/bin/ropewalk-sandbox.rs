//! Is the helper that confines commands, by itself: for tests of this crate, which have no `ropewalk` at hand.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ropewalk_workspace::sandbox::enter(&arguments).unwrap_or(ExitCode::FAILURE)
}
