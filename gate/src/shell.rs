//! Chooses the shell that checks run in: bash where there is one, which tells how each member of a pipeline fared.

use std::path::Path;

use ropewalk_workspace::{CommandRunner, CommandSpec};

use crate::line::{self, BashLine};

/// The shell of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// A pipeline fails where one of its members does.
    Bash,
    /// Only the last member of a pipeline speaks, so that none can be believed.
    Plain,
}

impl Shell {
    /// Looks for bash where the commands of `runner` would find it.
    pub fn of(runner: &CommandRunner) -> Self {
        match runner.locate("bash") {
            Some(_) => Self::Bash,
            None => Self::Plain,
        }
    }

    /// Says whether a line can be run so that its exit code can be believed.
    pub fn takes(self, line: &str) -> bool {
        self == Self::Bash || !line::has_pipeline(line)
    }

    /// Describes the command for a line; none where the shell does not take it.
    pub(crate) fn command(self, line: &str, directory: &Path) -> Option<CommandSpec> {
        if self == Self::Plain {
            return self
                .takes(line)
                .then(|| CommandSpec::shell(line, directory));
        }
        let arguments = match line::rewritten(line) {
            BashLine::AsIs => vec!["-c".to_owned(), line.to_owned()],
            BashLine::Line(text) => vec!["-c".to_owned(), text],
            BashLine::Strict => vec![
                "-o".to_owned(),
                "pipefail".to_owned(),
                "-c".to_owned(),
                line.to_owned(),
            ],
        };
        Some(CommandSpec::executable("bash", arguments, directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_bash_a_pipeline_is_not_taken() {
        assert!(Shell::Plain.takes("cargo test && grep -q a b"));
        assert!(!Shell::Plain.takes("cargo test | tail -1"));
        assert!(Shell::Bash.takes("cargo test | tail -1"));
        assert_eq!(Shell::Plain.command("a | b", Path::new("/")), None);
    }
}
