//! Verb `agent`: runs the agents of some roles; as many processes as wanted share the work on one truth.

use clap::Args;

use super::up::Up;
use crate::app::App;
use crate::error::CliError;
use crate::wiring::{Crew, Role};

/// Which agents, and what differs from the configuration.
#[derive(Debug, Args)]
#[command(
    after_help = "Every process shares one PostgreSQL database, one NATS server and the state directory; any number of\n\
                  processes may run the same role. All seven roles have to run somewhere.\n\
                  Example:\n  ropewalk agent build --store postgres://host/habits --bus nats://host:4222"
)]
pub struct Agent {
    /// The roles.
    #[arg(value_enum, required = true, value_name = "ROLE")]
    roles: Vec<Role>,
    #[command(flatten)]
    flags: Up,
}

impl Agent {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        self.flags.serve(Crew::Roles(self.roles), app).await
    }
}
