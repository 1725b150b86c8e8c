//! A small project whose model is scripted, from the first message to an approved specification.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use serde_json::{Value, json};

use crate::picture::at;

/// How many tasks its one build has.
pub(crate) const TASKS: usize = 12;
/// How long one of its verbs may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) const LINES: &str = "\
People who keep habits lose their streaks because they count days by hand and get the ends of months wrong.
The first version records a day and shows streaks, and it keeps everything in one plain file.
Five colleagues keep such a file, two lost a streak, all would install it; a badly edited file worries me.
That is all, please write the brief.
";

/// A project whose model is scripted, in a directory of its own.
pub(crate) struct Project {
    directory: tempfile::TempDir,
    pub(crate) runner: Runner,
}

impl Project {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Self::saying("")
    }

    /// Returns a project whose model ends whatever it says and writes with `more`.
    pub(crate) fn saying(more: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let readme = [("README.md", "# Habits\n")];
        repository::begin(&directory.path().join("repo"), &readme)?;
        fs::write(directory.path().join("ropewalk.toml"), repository::SCRIPTED)?;
        fs::write(directory.path().join("script.yaml"), script(more))?;
        Ok(Self::at(directory))
    }

    /// Takes a directory that holds a project already.
    pub(crate) fn at(directory: tempfile::TempDir) -> Self {
        let runner = Runner::new(directory.path());
        Self { directory, runner }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("repo")
    }

    /// Runs a verb that must succeed and returns its JSON.
    pub(crate) fn verb(&self, arguments: &[&str], input: &str) -> anyhow::Result<Value> {
        let arguments = [arguments, &["--json"]].concat();
        let output = self.runner.run_with_input(&arguments, input, PATIENCE)?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success(),
            "{arguments:?}: {}: {complaint}",
            output.status
        );
        let text = String::from_utf8(output.stdout)?;
        serde_json::from_str(&text).with_context(|| format!("{arguments:?} said {text}"))
    }
}

/// What asks for a revision with other words.
const CHANGE: &str = "Leave the last part out.";

pub(crate) fn rule(key: &Value, tool: &str, input: &Value) -> Value {
    let mut rule = key.clone();
    rule["reply"] = json!({ "tools": [{ "name": tool, "input": input }] });
    rule
}

fn artifact(kind: &str, more: &str) -> Value {
    json!({ "kind": kind, "summary": format!("The {kind}.{more}"), "confidence": 0.7,
        "content": format!("What is known of the {kind}, told in a sentence that is long enough to be kept.{more}") })
}

/// Returns what is answered to a message.
pub(crate) fn chat(
    more: &str,
    message: u32,
    artifacts: &[&str],
    decisions: usize,
    risks: usize,
    confidence: f64,
) -> Value {
    let key = json!({ "agent": "ideation", "task": format!("message-{message}") });
    let artifacts: Vec<Value> = artifacts.iter().map(|kind| artifact(kind, more)).collect();
    let decisions: Vec<Value> = (0..decisions)
        .map(|number| json!({ "kind": "validation", "summary": format!("Evidence {number}.{more}") }))
        .collect();
    let risks: Vec<Value> = (0..risks)
        .map(|_| json!({ "summary": format!("A badly edited file.{more}") }))
        .collect();
    let reply = json!({ "text": format!("Reply {message}.{more}"), "artifacts": artifacts,
        "decisions": decisions, "risks": risks, "confidence": confidence });
    rule(&key, "reply", &reply)
}

/// Returns what the model answers: a conversation, a plan of twelve tasks, and twelve files. JSON is YAML.
fn script(more: &str) -> String {
    let mut rules = vec![
        chat(
            more,
            2,
            &["target-user", "problem", "solution-concept"],
            0,
            0,
            0.5,
        ),
        chat(more, 3, &["mvp-features", "differentiator"], 0, 0, 0.65),
        chat(more, 4, &[], 3, 1, 0.7),
        chat(more, 5, &["brief"], 0, 0, 0.8),
        rule(
            &json!({ "agent": "specification", "contains": CHANGE }),
            "specification",
            &plan(&format!(" But the last.{more}")),
        ),
        rule(
            &json!({ "agent": "specification" }),
            "specification",
            &plan(more),
        ),
    ];
    for number in 1..=TASKS {
        let key =
            |turn: u32| json!({ "agent": "build", "task": format!("T-{number:03}"), "turn": turn });
        let file = json!({ "path": format!("parts/{number:02}.txt"), "content": format!("part {number} is ready{more}\n") });
        rules.push(rule(&key(1), "write", &file));
        rules.push(rule(
            &key(2),
            "finish",
            &json!({ "summary": format!("Wrote part {number}.{more}") }),
        ));
    }
    let review = json!({ "patterns": [], "gotchas": [], "divergences": [], "notes": [] });
    rules.push(rule(&json!({ "agent": "improvement" }), "review", &review));
    Value::Array(rules).to_string()
}

/// Returns a plan of twelve tasks, of which each says `more`.
pub(crate) fn plan(more: &str) -> Value {
    let requirement = |number: usize| {
        json!({ "id": format!("FR-{number}"), "text": format!("Part {number} is there.{more}"), "priority": "must",
            "acceptance": format!("part {number} says that it is ready{more}"), "source": "planning/brief.md" })
    };
    let task = |number: usize| {
        // Three chains of four, so that loops run side by side.
        let before = (number > 3).then(|| format!("T-{:03}", number - 3));
        json!({ "id": format!("T-{number:03}"), "phase": "api", "action": "CREATE",
            "file": format!("parts/{number:02}.txt"),
            "requirements": [{ "id": format!("FR-{number}"), "text": format!("Write part {number}.{more}") }],
            "gotchas": [], "depends_on": before.into_iter().collect::<Vec<_>>(),
            "validation": { "command": format!("grep ready parts/{number:02}.txt"), "expected": "contains ready" } })
    };
    json!({
        "document": { "title": "Habit tracking", "context_read": [], "missing_inputs": [],
            "objective": format!("Every part is there.{more}"), "success_criteria": ["twelve parts"], "out_of_scope": [],
            "requirements": (1..=TASKS).map(requirement).collect::<Vec<_>>(), "quality": [],
            "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [], "data": [],
            "dependencies": [], "gotchas": [], "validation": ["grep -r ready parts"], "risks": [] },
        "tasks": (1..=TASKS).map(task).collect::<Vec<_>>(),
    })
}

/// Returns id and hash of a specification as a verb shows it.
pub(crate) fn identity(shown: &Value) -> anyhow::Result<(String, String)> {
    let text = |name: &str| -> anyhow::Result<String> {
        Ok(at(shown, name)?.as_str().context("a text")?.to_owned())
    };
    Ok((text("/id")?, text("/hash")?))
}
