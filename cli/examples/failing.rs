//! The program, failing at the place that the variable `ROPEWALK_FAILPOINT` names; for tests.

use std::error::Error;
use std::process::ExitCode;

use ropewalk_runtime::failpoint;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(plan) = std::env::var_os("ROPEWALK_FAILPOINT") {
        failpoint::arm(&plan.to_string_lossy())?;
    }
    Ok(ropewalk::main(std::env::args_os()))
}
