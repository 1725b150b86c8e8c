//! Tells the programs of a command from other versions of them, so that nothing is reused across an upgrade.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::line;

/// Returns what changes when a program that the command names is replaced by another.
///
/// A program that only stands for another, as rustup's, is told by itself alone.
pub(crate) fn fingerprint(command: &str, locate: impl Fn(&str) -> Option<PathBuf>) -> String {
    let commands = line::simple_commands(command);
    let programs = commands.iter().filter_map(line::SimpleCommand::program);
    let told: Vec<String> = programs
        .filter_map(|(program, _)| locate(program))
        .map(|path| version(&path))
        .collect();
    told.join(" ")
}

fn version(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let metadata = real.metadata().ok();
    let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
    let changed = metadata
        .and_then(|metadata| metadata.modified().ok())
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |age| age.as_millis());
    format!("{}:{length}:{changed}", real.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_program_is_another_toolchain() {
        let directory = tempfile::tempdir().unwrap();
        let tool = directory.path().join("tool");
        std::fs::write(&tool, "one").unwrap();
        let told = || {
            fingerprint("cd a && tool test", |program| {
                (program == "tool").then(|| tool.clone())
            })
        };
        let before = told();
        assert_eq!(before, told());
        std::fs::write(&tool, "another").unwrap();
        assert_ne!(before, told());
    }
}
