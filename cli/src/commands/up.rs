//! Verb `up`: runs every agent until it is stopped.

mod notices;
pub mod resume;
pub mod stop;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ropewalk_runtime::ServiceManager;

use super::doctor;
use crate::app::App;
use crate::error::CliError;
use crate::project::{self, Project};
use crate::wiring::{self, Crew, Host};

/// What differs from the configuration.
#[derive(Debug, Args)]
pub struct Up {
    /// The bus: `embedded`, `nats` (a nats-server from PATH) or `nats://HOST:PORT`.
    #[arg(long, value_parser = crate::values::bus)]
    bus: Option<String>,
    /// The store: `sqlite` or `postgres://USER@HOST:PORT/DATABASE`.
    #[arg(long, value_parser = crate::values::store)]
    store: Option<String>,
    /// Where pages and API listen, for example `127.0.0.1:7440`.
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<SocketAddr>,
    /// Writes into this file what models are asked and answer, without secrets.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Lets a file that `--record` wrote answer in place of the models.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
}

impl Up {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        self.serve(Crew::Everyone, app).await
    }

    /// Runs the agents of `crew` until a signal.
    pub(super) async fn serve(self, crew: Crew, app: &App) -> Result<(), CliError> {
        let file = |path: Option<PathBuf>| {
            let absolute = path.map(std::path::absolute).transpose();
            absolute.map(|path| path.map(|path| path.display().to_string()))
        };
        let flags = [
            ("bus.transport", self.bus),
            ("store.location", self.store),
            ("server.address", self.bind.map(|bind| bind.to_string())),
            (
                "models.record",
                file(self.record).map_err(CliError::failed)?,
            ),
            (
                "models.replay",
                file(self.replay).map_err(CliError::failed)?,
            ),
        ];
        let settings: Vec<String> = flags
            .into_iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", value?)))
            .collect();
        let project = app.project_with(&settings)?;
        wiring::logging(&project, &app.environment, true)?;
        project::check(&project.locations)?;
        let summary = format!(
            "`{}` runs in {} with the bus `{}`; stop it with Ctrl-C",
            project.locations.name,
            project.state().display(),
            project.config().bus.transport
        );
        let unheld = project.people.unheld_told();
        let doors = if crew.serves() {
            wiring::open_files::raise();
            wiring::doors(&project).await?
        } else {
            None
        };
        // Where nobody can hear it, the bell tells nothing.
        let rings = project.config().notices.terminal && std::io::stderr().is_terminal();
        let is_everyone = crew == Crew::Everyone;
        let host = match Box::pin(Host::start_crew(app, project, crew)).await {
            // A termination that is heeded is a success from the first moment on.
            Err(CliError::Cancelled) if app.interrupts.is_requested() => {
                return app.interrupts.outcome();
            }
            started => started?,
        };
        let (directory, environment) = (app.directory()?, app.environment.clone());
        let overrides: Vec<String> = app.global.set.iter().chain(&settings).cloned().collect();
        let load = Arc::new(move || Project::load(&directory, &overrides, &environment));
        let again = Arc::clone(&load);
        host.follow(&app.environment, move || again());
        if is_everyone {
            notices::begin(&host, &app.output, rings).await;
        }
        if let Some(doors) = doors {
            let checkup = doctor::checkup(app.environment.clone(), move || load());
            app.output
                .note(&host.serve(doors, &app.environment, checkup)?)?;
        }
        if let Some(told) = unheld {
            app.output.note(&format!("note: {told}"))?;
        }
        app.output.note(&summary)?;
        let manager = ServiceManager::find(|name| app.environment.get(name));
        if let Some(manager) = &manager {
            manager.ready(&summary);
            manager.keep_alive(&host.supervisor);
        }
        host.stopped().await;
        if let Some(manager) = &manager {
            manager.stopping();
        }
        app.output.note("stopping; a second signal stops at once")?;
        host.drain().await
    }
}
