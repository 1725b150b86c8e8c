//! Verb `knowledge show`: an item, where it comes from and where it was used.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::knowledge::{self, KnowledgeView};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::knowledge::{InjectionOutcome, KnowledgeItem};

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::output::time;

/// The item.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `knowledge search` shows it.
    id: IdText,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let item = self
            .id
            .find::<KnowledgeItem>(&opened, "knowledge item", "knowledge search");
        let item = item.await?.record;
        let shown = knowledge::show(&opened.store, item).await?;
        app.output.show(&shown, human)
    }
}

fn human(shown: &KnowledgeView) -> String {
    let item = &shown.item;
    let mut text = format!("{}\n\n", item.content.trim());
    // Writing to a String cannot fail.
    writeln!(
        text,
        "{} {}, {}",
        super::word(&item.kind),
        item.id,
        item.state
    )
    .ok();
    writeln!(
        text,
        "confidence  {:.2}, seen in {}",
        item.confidence,
        counted(item.occurrences(), "execution")
    )
    .ok();
    if let Some(action) = item.action {
        writeln!(text, "action      {}", action.as_str()).ok();
    }
    let ideas: Vec<String> = item.ideas.iter().map(ToString::to_string).collect();
    let lists = [
        ("files", &item.globs),
        ("ideas", &ideas),
        ("topics", &item.topics),
        ("evidence", &item.evidence),
    ];
    for (name, values) in lists {
        if !values.is_empty() {
            writeln!(text, "{name:<11} {}", values.join(", ")).ok();
        }
    }
    writeln!(
        text,
        "from        {} at {}",
        item.discovered_by,
        time(item.created_at)
    )
    .ok();
    if let Some(newer) = item.superseded_by {
        writeln!(text, "superseded  by {newer}").ok();
    }
    for step in &shown.history {
        let confidence = step.confidence;
        let confidence = confidence.map_or_else(String::new, |sure| format!(", {sure:.2}"));
        let colon = if step.why.is_empty() { "" } else { ": " };
        writeln!(
            text,
            "{:<11} {}{confidence}{colon}{}",
            step.step,
            time(step.at),
            step.why
        )
        .ok();
    }
    for usage in &shown.uses {
        let effect = InjectionOutcome::of(usage).in_words();
        writeln!(
            text,
            "used in     task {} of specification {}: {effect}",
            usage.task, usage.spec
        )
        .ok();
    }
    text
}
