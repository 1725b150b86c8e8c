//! Verb `idea show`: an idea, what was learned and what was said.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Author, Idea, Message, Session};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::{QuestionId, Slug};
use ropewalk_store::Query;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::output::{short, time};
use ropewalk_coordination::waits::blocking_questions;

/// The idea.
#[derive(Debug, Args)]
pub struct Show {
    /// Its name, as `idea list` shows it.
    slug: Slug,
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    idea: Idea,
    folder: PathBuf,
    conversation: Option<Session>,
    messages: Vec<Message>,
    specifications: Vec<Specification>,
    builds: Vec<Build>,
    /// The open questions that hold work on it up.
    waits_for: Vec<QuestionId>,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let store = &desk.store;
        let idea = store
            .get::<Idea>(self.slug.as_str())
            .await?
            .ok_or_else(|| CliError::unknown("idea", &self.slug, "idea list"))?
            .record;
        let of_idea = || {
            Query::new()
                .equal("idea", idea.slug.as_str())
                .order_by("created_at")
        };
        let of_session = Query::new()
            .equal("session", idea.session.to_string())
            .order_by("at");
        let session = store.get::<Session>(&idea.session.to_string()).await?;
        let waits_for = waits_for(&idea, &blocking_questions(store).await?);
        let shown = Shown {
            folder: desk.project.places().idea_folder(&idea.user, &idea.slug),
            conversation: session.map(|session| session.record),
            messages: records(store.list(of_session).await?),
            specifications: records(store.list(of_idea()).await?),
            builds: records(store.list(of_idea()).await?),
            waits_for,
            idea,
        };
        app.output.show(&shown, human)
    }
}

/// Returns the open questions about an idea, whatever part of the work on it they hold up.
pub(super) fn waits_for(idea: &Idea, open: &[Question]) -> Vec<QuestionId> {
    open.iter()
        .filter(|question| question.idea.as_ref() == Some(&idea.slug))
        .map(|question| question.id)
        .collect()
}

fn records<R>(rows: Vec<ropewalk_store::Versioned<R>>) -> Vec<R> {
    rows.into_iter().map(|row| row.record).collect()
}

fn human(shown: &Shown) -> String {
    let mut text = format!("{} ({})\n", shown.idea.title, shown.idea.slug);
    // Writing to a String cannot fail.
    writeln!(text, "state       {}", shown.idea.state).ok();
    if let Some(session) = &shown.conversation {
        let (phase, signals) = (session.phase, &session.signals);
        writeln!(
            text,
            "phase       {phase}, confidence {:.2}",
            signals.confidence
        )
        .ok();
        for artifact in &signals.artifacts {
            let line = short(&artifact.summary, 90);
            writeln!(
                text,
                "captured    {} ({:.2}): {line}",
                artifact.kind, artifact.confidence
            )
            .ok();
        }
    }
    for question in &shown.waits_for {
        writeln!(text, "waits for   your answer to question {question}").ok();
    }
    writeln!(text, "folder      {}", shown.folder.display()).ok();
    for spec in &shown.specifications {
        writeln!(
            text,
            "spec        {} {} revision {}",
            spec.id, spec.state, spec.revision
        )
        .ok();
    }
    for build in &shown.builds {
        writeln!(
            text,
            "build       {} {} on {}",
            build.id, build.state, build.branch
        )
        .ok();
    }
    for message in &shown.messages {
        let who = match message.author {
            Author::Person => shown.idea.user.as_str(),
            Author::Agent => "ropewalk",
        };
        writeln!(
            text,
            "\n{who}, {}\n{}",
            time(message.at),
            message.text.trim()
        )
        .ok();
    }
    text
}
