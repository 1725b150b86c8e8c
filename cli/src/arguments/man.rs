//! Verb `man`: prints the manual, or writes a page of it for each verb.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man as Pages;

use crate::app::App;
use crate::arguments::program;
use crate::error::CliError;

/// Where the pages go.
#[derive(Debug, Args)]
pub struct Man {
    /// A folder that gets one page for each verb, for example `~/.local/share/man/man1`.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Man {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let Some(folder) = self.folder else {
            let page = rendered(program()).map_err(CliError::failed)?;
            return app.output.line(page.trim_end());
        };
        let unwritten = |error: io::Error| {
            let text = format!("`{}` takes no pages: {error}", folder.display());
            CliError::Failed((text, "name a folder that you can write to").into())
        };
        std::fs::create_dir_all(&folder).map_err(unwritten)?;
        let mut program = program();
        program.build();
        let count = write(&folder, &program).map_err(unwritten)?;
        let told = format!("wrote {count} pages to `{}`", folder.display());
        app.output.note(&told)
    }
}

/// Writes the page of a verb and of all below it, and returns how many that are.
fn write(folder: &Path, verb: &Command) -> io::Result<usize> {
    let name = verb.get_display_name().unwrap_or_else(|| verb.get_name());
    let (name, page) = (
        name.to_owned(),
        rendered(verb.clone().name(name.to_owned()))?,
    );
    std::fs::write(folder.join(format!("{name}.1")), page)?;
    let below = verb.get_subcommands();
    let mut count = 1;
    for verb in below.filter(|verb| verb.get_name() != "help") {
        count += write(folder, verb)?;
    }
    Ok(count)
}

fn rendered(verb: Command) -> io::Result<String> {
    let mut written = Vec::new();
    Pages::new(verb).render(&mut written)?;
    Ok(String::from_utf8_lossy(&written).into_owned())
}
