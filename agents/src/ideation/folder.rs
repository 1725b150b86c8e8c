//! Renders what was learned into the documents of the idea folder, and leaves alone what a person wrote there.

use std::collections::BTreeMap;

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::document::KEPT_UP_TO_DATE;
use ropewalk_schemas::idea::{Artifact, Signals};

use super::decide::saved;
use crate::idea_folder::{BRIEF, README, is_blank};

/// A document as this agent would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderedDocument {
    /// The whole text.
    pub(super) text: String,
    /// The parts that must be in the document, also when a person wrote the rest.
    pub(super) parts: Vec<String>,
}

/// Returns the document that an artifact of `kind` goes into.
pub(super) fn document_of(kind: &str) -> String {
    let document = match kind {
        "target-user" | "target-users" => "target-users.md",
        "problem" | "solution" | "solution-concept" => "problem-solution.md",
        "mvp-features" | "mvp-scope" => "planning/mvp-scope.md",
        "architecture" => "planning/architecture.md",
        "brief" => BRIEF,
        "differentiator" => README,
        "development" => "development.md",
        "business-model" => "business-model.md",
        "team" => "team.md",
        "market" | "market-research" => "research/market.md",
        "competitive" | "competitors" | "competition" => "research/competitive.md",
        "technical" => "research/technical.md",
        other => return format!("research/{other}.md"),
    };
    document.to_owned()
}

/// Renders every document that has something to say; the brief also without an artifact once `complete`.
pub(super) fn render(
    title: &str,
    signals: &Signals,
    complete: bool,
) -> BTreeMap<String, RenderedDocument> {
    let mut by_document: BTreeMap<String, Vec<&Artifact>> = BTreeMap::new();
    for artifact in saved(signals) {
        by_document
            .entry(document_of(&artifact.kind))
            .or_default()
            .push(artifact);
    }
    if by_document.is_empty() && !complete {
        return BTreeMap::new();
    }
    let mut documents: BTreeMap<String, RenderedDocument> = by_document
        .iter()
        .map(|(document, artifacts)| (document.clone(), document_text(title, artifacts)))
        .collect();
    let parts = documents
        .remove(README)
        .map(|readme| readme.parts)
        .unwrap_or_default();
    documents.insert(
        README.to_owned(),
        RenderedDocument {
            text: readme(title, signals),
            parts,
        },
    );
    if complete && !documents.contains_key(BRIEF) {
        documents.insert(
            BRIEF.to_owned(),
            RenderedDocument {
                text: brief(title, signals),
                parts: Vec::new(),
            },
        );
    }
    documents
}

/// Returns what to write where `existing` stands: all of it, if nobody else wrote there, else what is missing.
pub(super) fn reconcile(existing: Option<&str>, rendered: &RenderedDocument) -> String {
    match existing {
        Some(text) if !is_blank(text) && !is_ours(text) => with_missing(text, &rendered.parts),
        _ => marked(&rendered.text),
    }
}

fn marked(text: &str) -> String {
    let body = format!("{}\n", text.trim_end());
    let hash = ContentHash::of(body.as_bytes());
    format!("{body}\n{KEPT_UP_TO_DATE} {hash} -->\n")
}

/// Says whether a document is as it was rendered: nobody wrote in it since.
pub(super) fn is_ours(text: &str) -> bool {
    text.rsplit_once(KEPT_UP_TO_DATE)
        .is_some_and(|(before, mark)| {
            let body = format!("{}\n", before.trim_end());
            mark.trim().strip_suffix("-->").map(str::trim)
                == Some(ContentHash::of(body.as_bytes()).as_str())
        })
}

fn with_missing(text: &str, parts: &[String]) -> String {
    let mut whole = text.to_owned();
    for part in parts {
        if !whole.contains(part.trim()) {
            whole = format!("{}\n\n{}\n", whole.trim_end(), part.trim());
        }
    }
    whole
}

fn document_text(title: &str, artifacts: &[&Artifact]) -> RenderedDocument {
    let parts: Vec<String> = artifacts.iter().map(|artifact| part(artifact)).collect();
    // A document of one artifact that brings its own title is that artifact.
    let text = match artifacts {
        [only] if only.content.starts_with("# ") => only.content.clone(),
        _ => format!("# {title}\n\n{}", parts.join("\n\n")),
    };
    RenderedDocument { text, parts }
}

fn part(artifact: &Artifact) -> String {
    if artifact.content.starts_with('#') {
        artifact.content.clone()
    } else {
        format!("## {}\n\n{}", heading(&artifact.kind), artifact.content)
    }
}

/// Spells a kind as a heading: `target-user` is `Target user`.
fn heading(kind: &str) -> String {
    let words = kind.replace('-', " ");
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn readme(title: &str, signals: &Signals) -> String {
    let mut blocks = vec![format!("# {title}")];
    for artifact in saved(signals) {
        let document = document_of(&artifact.kind);
        blocks.push(format!("## {}", heading(&artifact.kind)));
        if document == README {
            blocks.push(artifact.content.clone());
        } else {
            blocks.push(artifact.summary.clone());
            blocks.push(format!("See [{document}]({document})."));
        }
    }
    blocks.extend(lines(signals));
    blocks.join("\n\n")
}

fn brief(title: &str, signals: &Signals) -> String {
    let mut blocks = vec![format!("# Brief: {title}")];
    for artifact in &signals.artifacts {
        blocks.push(format!("## {}", heading(&artifact.kind)));
        blocks.push(artifact.content.clone());
    }
    blocks.extend(lines(signals));
    blocks.push(format!("Confidence: {:.0} %", signals.confidence * 100.0));
    blocks.join("\n\n")
}

fn lines(signals: &Signals) -> Vec<String> {
    let decisions: Vec<String> = signals
        .decisions
        .iter()
        .map(|decision| format!("- {}: {}", heading(&decision.kind), decision.summary))
        .collect();
    let risks: Vec<String> = signals
        .risks
        .iter()
        .map(|risk| {
            let source = risk.source.as_ref().map(|source| format!(" ({source})"));
            format!("- {}{}", risk.summary, source.unwrap_or_default())
        })
        .collect();
    [("## Decisions", decisions), ("## Risks", risks)]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .flat_map(|(heading, lines)| [heading.to_owned(), lines.join("\n")])
        .collect()
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::document::without_mark;

    use super::*;

    fn artifact(kind: &str, content: &str, confidence: f64) -> Artifact {
        Artifact {
            kind: kind.to_owned(),
            summary: format!("about {kind}"),
            content: content.to_owned(),
            confidence,
            path: None,
        }
    }

    fn signals(artifacts: Vec<Artifact>) -> Signals {
        Signals {
            artifacts,
            confidence: 0.8,
            ..Signals::default()
        }
    }

    #[test]
    fn each_saved_artifact_lies_in_its_document_and_the_readme_names_it() {
        let signals = signals(vec![
            artifact("target-user", "Hikers.", 0.7),
            artifact("problem", "No power.", 0.6),
            artifact("solution-concept", "A solar charger.", 0.9),
            artifact("mvp-features", "One panel.", 0.59),
        ]);
        let documents = render("Sun", &signals, false);
        let names: Vec<&str> = documents.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["README.md", "problem-solution.md", "target-users.md"]
        );
        let both = &documents["problem-solution.md"].text;
        assert!(both.contains("No power.") && both.contains("A solar charger."));
        assert!(
            documents[README]
                .text
                .contains("[target-users.md](target-users.md)")
        );
        assert!(!documents[README].text.contains("mvp"));
    }

    #[test]
    fn nothing_is_rendered_before_the_first_artifact_and_a_brief_at_the_end() {
        assert!(render("Sun", &signals(Vec::new()), false).is_empty());
        let complete = render(
            "Sun",
            &signals(vec![artifact("problem", "No power.", 0.7)]),
            true,
        );
        assert!(complete[BRIEF].text.contains("No power."));
        let own = signals(vec![artifact("brief", "# My brief\n\nText.", 0.9)]);
        assert_eq!(render("Sun", &own, true)[BRIEF].text, "# My brief\n\nText.");
    }

    #[test]
    fn a_document_is_replaced_until_somebody_edits_it_and_then_only_added_to() {
        let rendered = |text: &str| RenderedDocument {
            text: text.to_owned(),
            parts: vec![format!("part of {text}")],
        };
        let first = reconcile(None, &rendered("one"));
        let second = reconcile(Some(&first), &rendered("two"));
        assert!(second.starts_with("two\n") && !second.contains("one"));
        assert_eq!(without_mark(&second), "two");
        let edited = second.replace("two\n", "two and a half\n");
        let third = reconcile(Some(&edited), &rendered("three"));
        assert!(third.starts_with("two and a half\n") && third.ends_with("part of three\n"));
        assert_eq!(
            reconcile(Some(&third), &rendered("three")),
            third,
            "nothing is added twice"
        );
        assert!(reconcile(Some("# T\n[write here]\n"), &rendered("four")).starts_with("four\n"));
    }
}
