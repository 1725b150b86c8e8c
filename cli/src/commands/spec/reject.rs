//! Verb `spec reject`: puts a specification away.

use clap::Args;
use ropewalk_desk::specifications;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::specification::SpecState;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The specification and the reason.
#[derive(Debug, Args)]
pub struct Reject {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Receipt {
    spec: SpecId,
    state: SpecState,
}

impl Reject {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let spec = self.id.specification(&opened).await?.id;
        let (context, person) = (opened.context(), opened.person()?);
        let state = specifications::reject(&context, spec, person, self.reason.as_deref()).await?;
        opened.poke()?;
        let done = Receipt { spec, state };
        app.output.show(&done, human)
    }
}

fn human(done: &Receipt) -> String {
    if done.state == SpecState::Approved {
        format!(
            "put away what was asked to be changed; {} stays as it was approved",
            done.spec
        )
    } else {
        format!("rejected {}", done.spec)
    }
}
