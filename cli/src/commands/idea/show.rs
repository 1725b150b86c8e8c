//! Verb `idea show`: an idea, what was learned, its brief and what was said.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::idea::{self, IdeaView};
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::specification::BRIEF;

use crate::app::App;
use crate::commands::question::commands_of;
use crate::error::CliError;
use crate::ids::{IdeaText, last_digits};
use crate::output::time;

/// The idea.
#[derive(Debug, Args)]
pub struct Show {
    /// Its name, as `idea list` shows it, or how it begins.
    idea: IdeaText,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let folder = |idea: &Idea| opened.project.places().idea_folder(&idea.user, &idea.slug);
        let slug = self.idea.find(&opened).await?;
        let shown = idea::show(&opened.store, &slug, folder)
            .await?
            .ok_or_else(|| CliError::unknown("idea", &slug, "idea list"))?;
        app.output.show(&shown, human)
    }
}

fn human(shown: &IdeaView) -> String {
    let mut text = format!("{} ({})\n", shown.idea.title, shown.idea.slug);
    // Writing to a String cannot fail.
    writeln!(text, "state       {}", shown.standing.as_str()).ok();
    if let Some(session) = &shown.conversation {
        let (phase, signals) = (session.phase, &session.signals);
        writeln!(
            text,
            "phase       {phase}, confidence {:.2}",
            signals.confidence
        )
        .ok();
        for artifact in &signals.artifacts {
            let line = clip::line(&artifact.summary, 90);
            writeln!(
                text,
                "captured    {} ({:.2}): {line}",
                artifact.kind, artifact.confidence
            )
            .ok();
        }
    }
    for question in &shown.waits_for {
        let commands = commands_of(last_digits(question));
        writeln!(
            text,
            "waits for   your answer to question {question}: {commands}"
        )
        .ok();
    }
    for relation in &shown.relations {
        let (how, idea) = (relation.kind.in_words(), &relation.idea);
        writeln!(text, "it          {how} `{idea}`").ok();
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
    if let Some(brief) = &shown.brief {
        writeln!(text, "\nits brief, `{BRIEF}` in the folder\n{brief}").ok();
    }
    for message in &shown.messages {
        let who = message.speaker(&shown.idea.user);
        let who = who.map_or("ropewalk", UserSlug::as_str);
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
