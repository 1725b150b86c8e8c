//! Verb `spec show`: a specification with its tasks, hash and price.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::specifications::dry_run_told;
use ropewalk_desk::views::{self, specification::SpecificationView};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::document::spec_md::{self, SpecHeader};
use ropewalk_schemas::specification::{Document, Price, Revision, SpecState, Specification};
use ropewalk_schemas::task::TaskBlock;
use ropewalk_schemas::{RepoPath, RequirementId};
use ropewalk_store::Store;

use super::hash::FEWEST_DIGITS;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::output::{self, Output};

/// The specification.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let spec = self.id.specification(&opened).await?;
        let shown = views::specification::show(&opened.store, spec.record).await?;
        app.output.show(&shown, |shown| {
            let spec = &shown.specification;
            // The name means the newest one; where that is another, its hash is, too, and nothing is approved.
            let next = decision(spec, spec.idea.as_str());
            let next = next.map_or_else(String::new, |next| format!("next     {next}\n"));
            human(shown) + &next
        })
    }
}

/// Says how a specification is decided about that waits for that, by the `name` that verbs know it by; nothing where it waits
/// for nobody's word.
pub(super) fn decision(spec: &Specification, name: &str) -> Option<String> {
    if spec.state != SpecState::Generated {
        return None;
    }
    let hash = spec.hash.as_ref()?.as_str();
    let hash = hash.get(..FEWEST_DIGITS).unwrap_or(hash);
    Some(format!(
        "go on with `ropewalk spec approve {name} --hash {hash}`, or change it with `ropewalk spec revise {name} …`"
    ))
}

/// Shows a specification with its newest revision.
pub(super) async fn show(
    store: &Store,
    specification: Specification,
    output: &Output,
) -> Result<(), CliError> {
    let shown = views::specification::show(store, specification).await?;
    output.show(&shown, human)
}

fn human(shown: &SpecificationView) -> String {
    let spec = &shown.specification;
    let mut text = String::new();
    if let Some(revision) = &shown.content {
        text.push_str(&spec_md::render(
            &SpecHeader::from(spec),
            &revision.document,
        ));
        text.push('\n');
        text.push_str(&tasks(revision));
        // Writing to a String cannot fail.
        writeln!(text, "{}", dry_run_told(revision)).ok();
        for warning in &revision.validation {
            writeln!(text, "warning: {warning}").ok();
        }
    }
    writeln!(
        text,
        "\nspecification {} of `{}` is {}",
        spec.id, spec.idea, spec.state
    )
    .ok();
    for question in &shown.waits_for {
        writeln!(
            text,
            "waits for your answer to question {question}; see `ropewalk question show {question}`"
        )
        .ok();
    }
    match &spec.reason {
        Some(reason) if spec.state == SpecState::Approved => {
            writeln!(
                text,
                "another revision was asked for and put away: {reason}"
            )
            .ok();
        }
        Some(reason) => {
            writeln!(text, "reason   {reason}").ok();
        }
        None => {}
    }
    if let Some(approval) = &spec.approval {
        let at = output::time(approval.at);
        writeln!(
            text,
            "approved by {} at {at}, revision {}",
            approval.by, approval.revision
        )
        .ok();
    }
    if let Some(hash) = &spec.hash {
        writeln!(text, "revision {}\nhash     {hash}", spec.revision).ok();
    }
    writeln!(text, "price    {}", Price::in_words(spec.price.as_ref())).ok();
    if let Some(used) = &shown.idea_usage {
        let (usage, cost) = (&used.usage, used.usage.spending().money());
        writeln!(
            text,
            "used     {} for the idea so far: {} tokens in, {} out, {cost}",
            counted(usage.calls, "call"),
            usage.input_tokens,
            usage.output_tokens
        )
        .ok();
    }
    text
}

fn tasks(revision: &Revision) -> String {
    let tasks = &revision.tasks;
    let done = |task: &TaskBlock| {
        if revision.kept.contains(&task.id) {
            "         is done already: it is kept as it landed\n"
        } else {
            ""
        }
    };
    let header = ["task", "phase", "does", "file", "needs"];
    let rows = tasks.iter().map(|task| {
        let needs: Vec<&str> = task.depends_on.iter().map(AsRef::as_ref).collect();
        let action = serde_json::to_value(task.action).ok();
        [
            task.id.to_string(),
            task.phase.clone(),
            action
                .and_then(|action| action.as_str().map(str::to_lowercase))
                .unwrap_or_default(),
            task.file.to_string(),
            needs.join(" "),
        ]
    });
    let mut text = output::table(&header, rows);
    text.push_str("\n\nwhat each task comes to:\n");
    for task in tasks {
        // Writing to a String cannot fail.
        writeln!(text, "  {}  {}", task.id, task.in_words()).ok();
        text.push_str(done(task));
        for line in details(task, &revision.document) {
            writeln!(text, "         {}", line.replace('\n', "\n           ")).ok();
        }
    }
    // Whole, each line of them: an approval lets them run.
    text.push_str("\nwhat an approval lets run as checks:\n");
    for task in tasks {
        let validation = &task.validation;
        let lines: Vec<&str> = validation.command.lines().collect();
        // Writing to a String cannot fail.
        writeln!(text, "  {}  {}", task.id, lines.join("\n         ")).ok();
        writeln!(text, "         expects {}", validation.expected).ok();
        text.push_str(done(task));
    }
    text
}

/// Lists what else is to be known of a task; what a requirement says stands in the document already.
fn details(task: &TaskBlock, document: &Document) -> Vec<String> {
    let paths = |paths: &[RepoPath]| {
        let paths: Vec<&str> = paths.iter().map(RepoPath::as_str).collect();
        (!paths.is_empty()).then(|| paths.join(", "))
    };
    let mut lines = Vec::new();
    lines.extend(paths(&task.more_files).map(|more| format!("changes also: {more}")));
    let all = document.requirements.iter().chain(&document.quality);
    let said: BTreeMap<&RequirementId, &str> = all.map(|one| (&one.id, one.text.trim())).collect();
    let (mut fulfilled, mut own) = (Vec::new(), Vec::new());
    for line in &task.requirements {
        let text = line.text.trim();
        match &line.id {
            Some(id) if text.is_empty() || said.get(id) == Some(&text) => {
                fulfilled.push(id.to_string());
            }
            Some(id) => own.push(format!("{id}: {text}")),
            None => own.push(text.to_owned()),
        }
    }
    if !fulfilled.is_empty() {
        lines.push(format!("fulfils: {}", fulfilled.join(", ")));
    }
    lines.extend(own);
    lines.extend(paths(&task.read_first).map(|first| format!("reads first: {first}")));
    let heeds = task.gotchas.iter();
    lines.extend(heeds.map(|gotcha| format!("heeds: {}", gotcha.text.trim())));
    let kept = task.leave_alone.iter();
    lines.extend(kept.map(|line| format!("leaves alone: {}", line.trim())));
    let notes = task.notes.iter().map(|notes| notes.trim());
    lines.extend(
        notes
            .filter(|notes| !notes.is_empty())
            .map(|notes| format!("notes: {notes}")),
    );
    lines
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use ropewalk_desk::specifications::approval_told;
    use ropewalk_schemas::ContentHash;
    use serde_json::{Value, json};

    use super::{Revision, Specification};

    #[test]
    fn only_what_waits_for_an_approval_says_how_it_is_given() {
        let spec = |state: &str| -> Specification {
            serde_json::from_value(json!({
                "id": uuid::Uuid::nil(), "idea": "walks", "user": "ada", "state": state, "revision": 1,
                "hash": "1".repeat(64), "complexity": "simple", "requested_by": "ada", "correlation_id": uuid::Uuid::nil(),
                "created_at": DateTime::UNIX_EPOCH, "updated_at": DateTime::UNIX_EPOCH,
            }))
            .unwrap()
        };
        let next = super::decision(&spec("generated"), "walks").unwrap();
        let approve = format!("`ropewalk spec approve walks --hash {}`", "1".repeat(16));
        assert!(next.contains(&approve), "{next}");
        assert!(next.contains("`ropewalk spec revise walks …`"), "{next}");
        for state in ["draft", "approved", "rejected"] {
            assert_eq!(super::decision(&spec(state), "walks"), None, "{state}");
        }
    }

    #[test]
    fn every_file_that_a_task_changes_is_shown() {
        let block = json!({
            "id": "T-001", "phase": "api", "action": "UPDATE", "file": "a.rs", "more_files": ["b.rs", "c.rs"],
            "validation": { "command": "true", "expected": "exit 0" },
        });
        let shown = super::tasks(&revision(&[block]));
        for file in ["a.rs", "changes also: b.rs, c.rs"] {
            assert!(shown.contains(file), "{shown}");
        }
    }

    #[test]
    fn what_a_requirement_says_is_shown_once_and_what_a_task_notes_with_it() {
        let block = json!({
            "id": "T-001", "phase": "api", "action": "UPDATE", "file": "a.rs", "read_first": ["b.rs"],
            "requirements": [
                { "id": "FR-1", "text": "counts steps" }, { "id": "FR-2" }, { "id": "FR-3", "text": "in metres" }, { "text": "fast" },
            ],
            "gotchas": [{ "text": "feet differ" }], "leave_alone": ["the API"], "notes": "keep it\nsmall",
            "validation": { "command": "true", "expected": "exit 0" },
        });
        let mut revision = revision(&[block]);
        let says = |id: &str, text: &str| {
            serde_json::from_value(json!({
                "id": id, "text": text, "priority": "must", "acceptance": "seen", "source": "",
            }))
            .unwrap()
        };
        revision.document.requirements = vec![
            says("FR-1", "counts steps"),
            says("FR-2", "counts walks"),
            says("FR-3", "tells the way"),
        ];
        let told = super::details(&revision.tasks[0], &revision.document);
        let expected = [
            "fulfils: FR-1, FR-2",
            "FR-3: in metres",
            "fast",
            "reads first: b.rs",
            "heeds: feet differ",
            "leaves alone: the API",
            "notes: keep it\nsmall",
        ];
        assert_eq!(told, expected);
        let shown = super::tasks(&revision);
        assert!(
            shown.contains("         notes: keep it\n           small\n"),
            "{shown}"
        );
    }

    #[test]
    fn of_what_has_landed_already_it_is_said_that_it_is_done() {
        let block = |id: &str| {
            json!({
                "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.rs"),
                "validation": { "command": "true", "expected": "exit 0" },
            })
        };
        let mut revision = revision(&[block("T-001"), block("T-002")]);
        revision.kept = vec![revision.tasks[0].id.clone()];
        let shown = super::tasks(&revision);
        assert_eq!(shown.matches("is done already").count(), 2, "{shown}");
        let told = approval_told(&revision);
        assert!(told.contains("# T-001, done already\n"), "{told}");
        assert!(told.contains("# T-002\n"), "{told}");
    }

    fn revision(tasks: &[Value]) -> Revision {
        serde_json::from_value(json!({
            "spec": uuid::Uuid::nil(), "number": 2, "hash": ContentHash::of(b"two"), "at": DateTime::UNIX_EPOCH,
            "document": ropewalk_schemas::specification::Document::default(), "tasks": tasks,
        }))
        .unwrap()
    }
}
