//! Reads and writes the YAML block of one task.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};

use super::Progress;
use crate::document::escape::{Place, escaped};
use crate::document::yaml::{self, YamlError};
use crate::ids::{ComponentName, TaskId};
use crate::repo_path::RepoPath;
use crate::task::GotchaReference;
use crate::task::{Action, RequirementLine, TaskBlock, TaskState, Validation};

/// A block as people and agents write it; unknown fields are left to whoever wrote them.
#[derive(Debug, Deserialize)]
struct WrittenBlock {
    id: TaskId,
    phase: String,
    #[serde(default)]
    title: Option<String>,
    action: Action,
    file: RepoPath,
    #[serde(default, deserialize_with = "none_as_empty")]
    more_files: Vec<RepoPath>,
    #[serde(default, deserialize_with = "none_as_empty")]
    read_first: Vec<RepoPath>,
    #[serde(default, deserialize_with = "none_as_empty")]
    leave_alone: Vec<String>,
    #[serde(default, deserialize_with = "none_as_empty")]
    requirements: Vec<WrittenRequirement>,
    #[serde(default, deserialize_with = "none_as_empty")]
    gotchas: Vec<WrittenGotcha>,
    validation: Validation,
    #[serde(default)]
    preserves: bool,
    #[serde(default)]
    code_template: Option<String>,
    #[serde(default, deserialize_with = "none_as_empty")]
    depends_on: Vec<TaskId>,
    #[serde(default)]
    priority: Option<u8>,
    #[serde(default)]
    estimate_minutes: Option<u32>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default = "pending")]
    status: TaskState,
    #[serde(default)]
    assigned_to: Option<ComponentName>,
    #[serde(default)]
    started_at: Option<DateTime<Utc>>,
    #[serde(default)]
    completed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a requirement is a text, or `text` with an `id`"
)]
enum WrittenRequirement {
    Text(String),
    Line(RequirementLine),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a gotcha is a text, or `text` with an `id`")]
enum WrittenGotcha {
    Text(String),
    Reference(GotchaReference),
}

const fn pending() -> TaskState {
    TaskState::Pending
}

/// Takes `key:` with nothing behind it for an empty list.
fn none_as_empty<'de, D, Item>(deserializer: D) -> Result<Vec<Item>, D::Error>
where
    D: Deserializer<'de>,
    Item: Deserialize<'de>,
{
    Option::<Vec<Item>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a block.
pub(super) fn read(text: &str) -> Result<(TaskBlock, Progress), YamlError> {
    let written: WrittenBlock = yaml::read(text)?;
    let block = TaskBlock {
        id: written.id,
        phase: written.phase,
        title: written.title,
        action: written.action,
        file: written.file,
        more_files: written.more_files,
        read_first: written.read_first,
        leave_alone: written.leave_alone,
        requirements: written
            .requirements
            .into_iter()
            .map(|requirement| match requirement {
                WrittenRequirement::Text(text) => RequirementLine { id: None, text },
                WrittenRequirement::Line(line) => line,
            })
            .collect(),
        gotchas: written
            .gotchas
            .into_iter()
            .map(|gotcha| match gotcha {
                WrittenGotcha::Text(text) => GotchaReference { id: None, text },
                WrittenGotcha::Reference(reference) => reference,
            })
            .collect(),
        validation: written.validation,
        preserves: written.preserves,
        code_template: written.code_template,
        depends_on: written.depends_on,
        priority: written.priority,
        estimate_minutes: written.estimate_minutes,
        notes: written.notes,
    };
    let progress = Progress {
        status: written.status,
        assigned_to: written.assigned_to,
        started_at: written.started_at,
        completed_at: written.completed_at,
    };
    Ok((block, progress))
}

/// Returns how a task that cannot be read is called in an error.
pub(super) fn name(text: &str) -> String {
    text.lines()
        .find_map(|line| line.strip_prefix("id:"))
        .map(|id| id.trim().trim_matches(['"', '\'']))
        .filter(|id| !id.is_empty())
        .map_or_else(
            || "the task block".to_owned(),
            |id| format!("task `{}`", crate::document::shown(id)),
        )
}

/// Writes a pending task with its heading and fence.
pub(super) fn rendered(task: &TaskBlock) -> String {
    let body = body(task);
    // The fence must be longer than any run of backticks that it encloses.
    let longest = body.split(|letter| letter != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let does = format!("{} {}", task.action.as_str(), task.file);
    let heading = escaped(task.title().unwrap_or(&does), Place::Line);
    format!("### {}: {heading}\n\n{fence}yaml\n{body}{fence}\n", task.id)
}

fn body(task: &TaskBlock) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    fields(task, &mut text).unwrap_or_default();
    text
}

fn fields(task: &TaskBlock, out: &mut String) -> std::fmt::Result {
    writeln!(out, "id: {}", yaml::scalar(task.id.as_str()))?;
    writeln!(out, "phase: {}", yaml::scalar(&task.phase))?;
    if let Some(title) = &task.title {
        writeln!(out, "title: {}", yaml::scalar(title))?;
    }
    writeln!(out, "action: {}", task.action.as_str())?;
    writeln!(out, "file: {}", yaml::scalar(task.file.as_str()))?;
    let paths = |files: &'_ [RepoPath]| files.iter().map(ToString::to_string).collect();
    texts(out, "more_files", &paths(&task.more_files))?;
    texts(out, "read_first", &paths(&task.read_first))?;
    texts(out, "leave_alone", &task.leave_alone)?;
    writeln!(out, "status: pending")?;
    let requirements = task
        .requirements
        .iter()
        .map(|line| (line.id.as_ref().map(ToString::to_string), &line.text));
    list(out, "requirements", requirements)?;
    let gotchas = task
        .gotchas
        .iter()
        .map(|gotcha| (gotcha.id.map(|id| id.to_string()), &gotcha.text));
    list(out, "gotchas", gotchas)?;
    writeln!(out, "validation:")?;
    writeln!(out, "  command: {}", yaml::scalar(&task.validation.command))?;
    writeln!(
        out,
        "  expected: {}",
        yaml::scalar(&task.validation.expected.to_string())
    )?;
    if task.preserves {
        writeln!(out, "preserves: true")?;
    }
    let needs: Vec<String> = task
        .depends_on
        .iter()
        .map(|id| yaml::scalar(id.as_str()))
        .collect();
    writeln!(out, "depends_on: [{}]", needs.join(", "))?;
    if let Some(priority) = task.priority {
        writeln!(out, "priority: {priority}")?;
    }
    if let Some(minutes) = task.estimate_minutes {
        writeln!(out, "estimate_minutes: {minutes}")?;
    }
    for (key, text) in [
        ("code_template", &task.code_template),
        ("notes", &task.notes),
    ] {
        if let Some(text) = text {
            writeln!(out, "{key}: {}", yaml::value(text))?;
        }
    }
    Ok(())
}

/// Writes a list of texts, if it holds any.
fn texts(out: &mut String, key: &str, items: &Vec<String>) -> std::fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "{key}:")?;
    for item in items {
        writeln!(out, "  - {}", yaml::scalar(item))?;
    }
    Ok(())
}

fn list<'a>(
    out: &mut String,
    key: &str,
    items: impl ExactSizeIterator<Item = (Option<String>, &'a String)>,
) -> std::fmt::Result {
    if items.len() == 0 {
        return writeln!(out, "{key}: []");
    }
    writeln!(out, "{key}:")?;
    for (id, text) in items {
        match id {
            Some(id) => writeln!(
                out,
                "  - id: {}\n    text: {}",
                yaml::scalar(&id),
                yaml::scalar(text)
            )?,
            None => writeln!(out, "  - text: {}", yaml::scalar(text))?,
        }
    }
    Ok(())
}
