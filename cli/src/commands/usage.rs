//! Verb `usage`: what models used and cost, by idea, build, model or day.

pub mod metrics;

use clap::{Args, ValueEnum};
use ropewalk_desk::views::usage::{self, Scope, UsageRow};
use ropewalk_schemas::model_call::UsageBy;

use crate::app::App;
use crate::error::CliError;
use crate::ids::{IdText, IdeaText};

/// What is counted.
#[derive(Debug, Args)]
pub struct Usage {
    /// What the rows are for.
    #[arg(long, value_enum, default_value_t = By::Model)]
    by: By,
    /// Counts only what an idea used.
    #[arg(long)]
    idea: Option<IdeaText>,
    /// Counts only what a build used.
    #[arg(long)]
    build: Option<IdText>,
}

/// What a row is for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    Idea,
    Build,
    Model,
    Day,
}

impl Usage {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let build = match &self.build {
            Some(id) => Some(id.build(&opened).await?.id),
            None => None,
        };
        let (by, title) = match self.by {
            By::Idea => (UsageBy::Idea, "idea"),
            By::Build => (UsageBy::Build, "build"),
            By::Model => (UsageBy::Model, "model"),
            By::Day => (UsageBy::Day, "day"),
        };
        let idea = IdeaText::find_wanted(self.idea.as_ref(), &opened).await?;
        let scope = Scope { idea, build };
        let rows = usage::list(&opened.store, by, &scope).await?;
        let header = [title, "calls", "in", "from cache", "out", "cost"];
        app.output.list(&rows, header, cells)
    }
}

fn cells(row: &UsageRow) -> [String; 6] {
    let usage = &row.usage;
    let rate = row.cache_hit_rate.unwrap_or_default() * 100.0;
    [
        usage.key.clone().unwrap_or_else(|| "none".to_owned()),
        usage.calls.to_string(),
        usage.input_tokens.to_string(),
        format!("{rate:.0} %"),
        usage.output_tokens.to_string(),
        usage.spending().money(),
    ]
}
