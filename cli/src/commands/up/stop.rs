//! Verb `stop`: stops everything, until somebody lets it go on.

use clap::Args;
use ropewalk_config::Config;
use ropewalk_desk::halt::{self, HaltError};
use ropewalk_schemas::advice::Words;

use crate::app::App;
use crate::error::{CliError, Report};
use crate::project::Project;
use crate::wiring::{self, OpenProject};

/// How it is stopped where nobody can tell which store is meant.
const BY_HAND: &str = "end what runs by hand: `pgrep -af ropewalk` names it, `kill` ends it";

/// Why everything is stopped.
#[derive(Debug, Args)]
pub struct Stop {
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

impl Stop {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let (project, refused) = match app.project() {
            Ok(project) => (project, None),
            Err(refused) => (running(app, &refused)?, Some(refused)),
        };
        let opened = OpenProject::open(project).await?;
        let halt = halt::stop(&opened.context(), opened.person()?, self.reason).await?;
        if let Some(refused) = refused {
            let note = format!("note: stopped as it was trusted last: {refused}");
            app.output.note(&note)?;
        }
        app.output.show(&halt, |_| {
            "everything is stopped: no model is asked and no command begins until `ropewalk resume`"
                .to_owned()
        })
    }
}

/// Finds the project that runs, though its configuration was `refused`: stopping only tightens, so that it does not wait
/// for anybody to read or mend a file. What nobody has trusted leads nowhere, and a store is opened only where somebody
/// runs on it, so that nobody believes to have stopped what goes on elsewhere.
fn running(app: &App, refused: &CliError) -> Result<Project, CliError> {
    let loaded = Config::load_as_last_trusted(&app.directory()?, &app.environment, &app.global.set);
    let loaded = match loaded {
        Ok(loaded) if loaded.project_file.is_some() => loaded,
        // There is nothing that could be trusted.
        Ok(_) => return Err(refused.clone()),
        Err(_) => return Err(by_hand(refused)),
    };
    let project = Project::of(loaded, &app.environment).map_err(|_| by_hand(refused))?;
    if !wiring::awake(project.state())? {
        return Err(by_hand(refused));
    }
    wiring::logging(&project, &app.environment, false)?;
    Ok(project)
}

/// Says beside what was refused how everything is stopped without this verb.
fn by_hand(refused: &CliError) -> CliError {
    let Report {
        code,
        message,
        next,
    } = refused.report();
    let next = next.map_or_else(
        || BY_HAND.to_owned(),
        |next| format!("{next}, or {BY_HAND}"),
    );
    let next = Some(next);
    CliError::refused(code, Words { message, next })
}

impl From<HaltError> for CliError {
    fn from(error: HaltError) -> Self {
        match error {
            HaltError::Forbidden(error) => error.into(),
            HaltError::Read(error) => error.into(),
            HaltError::Commit(error) => error.into(),
            HaltError::TooLong(_) => Self::advised("input", error),
            refused => Self::advised("halt", refused),
        }
    }
}
