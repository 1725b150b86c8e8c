//! Verb `agent`: runs the agents of some roles; as many processes as wanted share the work on one truth. Or lists them.

pub mod list;

use clap::{Args, Subcommand};

use super::up::Up;
use crate::app::App;
use crate::error::CliError;
use crate::wiring::{Crew, Role};

/// Which agents, and what differs from the configuration.
#[derive(Debug, Args)]
#[command(
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    after_help = "Every process shares one PostgreSQL database, one NATS server and the state directory; any number of\n\
                  processes may run the same role. All roles have to run somewhere, but `server`, `notify` and\n\
                  `telegram`, which need not."
)]
pub struct Agent {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The roles.
    #[arg(value_enum, required = true, value_name = "ROLE")]
    roles: Vec<Role>,
    #[command(flatten)]
    flags: Up,
}

/// What else can be asked about agents.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Lists what every part of every process does.
    List(list::List),
}

impl Agent {
    /// Returns whether it runs agents.
    pub const fn hosts_agents(&self) -> bool {
        self.verb.is_none()
    }

    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        if let Some(Verb::List(verb)) = self.verb {
            return verb.run(app).await;
        }
        self.flags.serve(Crew::Roles(self.roles), app).await
    }
}
