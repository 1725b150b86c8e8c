//! The `ropewalk` binary; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ropewalk::main(std::env::args_os())
}
