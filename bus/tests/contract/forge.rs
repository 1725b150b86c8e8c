//! Writes what no process of this version writes.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

/// Makes the stored event `sequence` one of a newer version of the program.
pub(crate) fn newer_version(database: &Path, sequence: i64) -> Result<()> {
    let script = "import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
changed = connection.execute(
    \"UPDATE events SET COLUMN = replace(COLUMN, '\\\"schemaversion\\\":1', '\\\"schemaversion\\\":99') WHERE sequence = ?\",
    (int(sys.argv[2]),)).rowcount
connection.commit()
assert changed == 1, changed
"
    .replace("COLUMN", "body");
    let status = Command::new("python3")
        .args(["-c", &script])
        .arg(database)
        .arg(sequence.to_string())
        .status()?;
    ensure!(status.success(), "the event could not be forged");
    Ok(())
}
