//! Bodies that are small until they are unpacked.

use std::io;
use std::process::{Command, Stdio};

/// Returns so many MiB of zeros, packed by gzip: about a thousandth of that.
///
/// # Errors
///
/// Fails where there is no gzip, or it fails.
pub fn packed_zeros(mebibytes: u32) -> io::Result<Vec<u8>> {
    let line = format!("head -c {mebibytes}M /dev/zero | gzip -1");
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &line]).stdin(Stdio::null()).output()?;
    if output.status.success() && !output.stdout.is_empty() {
        Ok(output.stdout)
    } else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(io::Error::other(said))
    }
}
