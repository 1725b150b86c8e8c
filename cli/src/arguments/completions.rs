//! Verb `completions`: prints what lets a shell complete verbs and flags.

use clap::Args;
use clap_complete::Shell;

use crate::app::App;
use crate::arguments::program;
use crate::error::CliError;

/// For which shell.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell that is to read it.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let mut written = Vec::new();
        clap_complete::generate(self.shell, &mut program(), "ropewalk", &mut written);
        app.output
            .line(String::from_utf8_lossy(&written).trim_end())
    }
}
