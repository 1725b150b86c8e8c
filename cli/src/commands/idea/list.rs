//! Verb `idea list`: the ideas, the oldest first.

use clap::Args;
use ropewalk_coordination::waits::blocking_questions;
use ropewalk_schemas::Slug;
use ropewalk_schemas::idea::{Idea, IdeaState, Phase, Session};
use ropewalk_store::Query;
use serde::Serialize;

use super::show::waits_for;
use crate::app::App;
use crate::error::CliError;
use crate::output::{short, time};

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct List {}

#[derive(Debug, Serialize)]
struct Row {
    slug: Slug,
    title: String,
    user: String,
    state: IdeaState,
    phase: Option<Phase>,
    confidence: f64,
    artifacts: usize,
    waits_for_answer: bool,
    created_at: chrono::DateTime<chrono::Utc>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let open = blocking_questions(&desk.store).await?;
        let mut rows = Vec::new();
        for idea in desk
            .store
            .list::<Idea>(Query::new().order_by("created_at"))
            .await?
        {
            let session = desk.store.get::<Session>(&idea.session.to_string()).await?;
            let waits = !waits_for(&idea, &open).is_empty();
            rows.push(row(idea.record, session.as_deref(), waits));
        }
        app.output.list(
            &rows,
            ["idea", "title", "state", "phase", "confidence", "begun"],
            |row| {
                let waits = if row.waits_for_answer {
                    " (waits for you)"
                } else {
                    ""
                };
                let phase = row.phase.map(|phase| phase.to_string()).unwrap_or_default();
                [
                    row.slug.to_string(),
                    short(&row.title, 50),
                    row.state.to_string(),
                    format!("{phase}{waits}"),
                    format!("{:.2}", row.confidence),
                    time(row.created_at),
                ]
            },
        )
    }
}

fn row(idea: Idea, session: Option<&Session>, waits_for_answer: bool) -> Row {
    let signals = session.map(|session| &session.signals);
    Row {
        phase: session.map(|session| session.phase),
        confidence: signals.map_or(0.0, |signals| signals.confidence),
        artifacts: signals.map_or(0, |signals| signals.artifacts.len()),
        waits_for_answer,
        slug: idea.slug,
        title: idea.title,
        user: idea.user.to_string(),
        state: idea.state,
        created_at: idea.created_at,
    }
}
