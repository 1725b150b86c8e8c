//! Verb `build show`: a build with its tasks, and why each of them does not run.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::build::{self, BuildView};
use ropewalk_desk::views::trace::FindError;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::{Task, TaskState};

use super::{outage, trace};
use crate::app::App;
use crate::commands::spec::show::price;
use crate::error::CliError;
use crate::ids::IdText;
use crate::output::{self, time};

/// The build.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `build list` shows it.
    id: IdText,
    /// Shows the tasks, the evidence and the commits for one requirement.
    #[arg(long, value_name = "ID", conflicts_with = "commit")]
    requirement: Option<String>,
    /// Shows what a commit is for; the beginning of its id is enough.
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self
            .id
            .find::<Build>(&desk, "build", "build list")
            .await?
            .record;
        if self.requirement.is_none() && self.commit.is_none() {
            let provider = &desk.project.config().models.build.provider;
            let shown = build::show(&desk.store, build, provider).await?;
            return app.output.show(&shown, human);
        }
        let (_, trace) = build::trace(&desk.store, &build).await?;
        if let Some(wanted) = &self.requirement {
            let traced = trace.requirement(wanted);
            let list = format!("build show {}", build.id);
            let traced = traced.ok_or_else(|| CliError::unknown("requirement", wanted, &list))?;
            return app.output.show(&traced, trace::requirement);
        }
        let wanted = self.commit.as_deref().unwrap_or_default();
        let origin = trace.commit(wanted).map_err(|error| match error {
            FindError::Ambiguous { .. } => CliError::refused("ambiguous-id", error),
            FindError::Name(error) => error.into(),
        })?;
        let list = format!("build show {}", build.id);
        let origin = origin.ok_or_else(|| CliError::unknown("commit", wanted, &list))?;
        app.output.show(&origin, trace::origin)
    }
}

fn human(shown: &BuildView) -> String {
    let build = &shown.build;
    let mut text = format!(
        "build {} of `{}` is {}\n",
        build.id, build.idea, build.state
    );
    // Writing to a String cannot fail.
    if let Some(reason) = outage::why(build, shown.outage.as_ref()) {
        writeln!(text, "why        {reason}").ok();
    }
    if let Some(question) = build.question {
        writeln!(text, "waits for  your answer to question {question}").ok();
    }
    writeln!(
        text,
        "branch     {}, to be merged into {}",
        build.branch, build.target
    )
    .ok();
    if let Some(head) = &build.head {
        writeln!(text, "head       {}", head.short()).ok();
    }
    writeln!(
        text,
        "approved   {}, revision {}",
        time(build.created_at),
        build.revision
    )
    .ok();
    if let Some(at) = build.completed_at {
        writeln!(text, "ended      {}", time(at)).ok();
    }
    let spending = &shown.spending;
    writeln!(
        text,
        "used       {} tokens, {} in {} model calls",
        spending.tokens,
        spending.money(),
        spending.calls
    )
    .ok();
    writeln!(text, "quoted     {}", price(build.quote.as_ref())).ok();
    if let Some(scope) = &build.exhausted {
        writeln!(text, "budget     {scope} is used up").ok();
    }
    if let Some(commit) = &build.merged {
        writeln!(text, "landed     {}", commit.short()).ok();
    }
    let header = ["task", "state", "tries", "file", "commit", "why"];
    let rows = shown.tasks.iter().map(|task| {
        [
            task.id.to_string(),
            task.state.to_string(),
            task.attempts.to_string(),
            task.block.file.to_string(),
            task.commit
                .as_ref()
                .map_or("", |commit| commit.short())
                .to_owned(),
            why(build, shown.outage.as_ref(), task),
        ]
    });
    text.push('\n');
    text.push_str(&output::table(&header, rows));
    if !shown.requirements.is_empty() {
        text.push('\n');
        text.push_str(&trace::overview(&shown.requirements));
    }
    text
}

fn why(build: &Build, outage: Option<&Outage>, task: &Task) -> String {
    // What made it ready tells nothing about why it does not run.
    if task.state == TaskState::Ready && outage.is_some() {
        return "ready; waits for the provider".to_owned();
    }
    if task.state == TaskState::Ready
        && let Some(why) = standstill(build)
    {
        return why;
    }
    let blocked = task
        .blocked_by
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" < ");
    match (&task.reason, task.question, blocked.is_empty()) {
        (Some(reason), _, _) => reason.clone(),
        (None, Some(question), _) => format!("waits for your answer to question {question}"),
        (None, None, false) => format!("blocked by {blocked}"),
        (None, None, true) => String::new(),
    }
}

/// Says why no ready task of a build begins, if none does.
fn standstill(build: &Build) -> Option<String> {
    let reason = match build.pause_reason {
        Some(PauseReason::Person) | None => "paused",
        Some(PauseReason::Quota) => "paused until the quota is back",
        Some(PauseReason::Outage) => "paused until the provider is back",
        Some(PauseReason::Budget) => "paused for want of budget",
        Some(PauseReason::Conflict) => "paused for a conflict",
    };
    match build.state {
        BuildState::Paused => Some(format!("ready; waits, since the build is {reason}")),
        BuildState::Running if build.pause_requested => {
            Some("ready; waits, since the build is about to pause".to_owned())
        }
        BuildState::Running if build.exhausted.is_some() => {
            Some("ready; waits, since a budget is used up".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn build(change: Value) -> Build {
        let mut whole = json!({
            "id": "00000000-0000-7000-8000-000000000001",
            "spec": "00000000-0000-7000-8000-000000000002",
            "revision": 1, "hash": "0".repeat(64), "idea": "habits", "user": "ada",
            "state": "running", "pause_requested": false, "branch": "build/habits",
            "target": "main", "priority": 5, "working_ms": 0,
            "correlation_id": "00000000-0000-7000-8000-000000000003",
            "created_at": "2026-03-01T08:00:00Z",
        });
        if let (Value::Object(whole), Value::Object(change)) = (&mut whole, change) {
            whole.extend(change);
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_ready_task_says_why_its_build_lets_it_wait() {
        let rows = [
            (
                json!({ "state": "paused", "pause_reason": "person" }),
                "the build is paused",
            ),
            (
                json!({ "state": "paused", "pause_reason": "quota" }),
                "until the quota is back",
            ),
            (
                json!({ "state": "paused", "pause_reason": "budget" }),
                "for want of budget",
            ),
            (
                json!({ "state": "paused", "pause_reason": "conflict" }),
                "for a conflict",
            ),
            (json!({ "pause_requested": true }), "about to pause"),
            (json!({ "exhausted": "project" }), "a budget is used up"),
        ];
        for (change, told) in rows {
            let said = standstill(&build(change.clone())).unwrap();
            assert!(said.contains(told), "{change}: {said}");
        }
        for state in ["running", "stopped", "succeeded"] {
            assert_eq!(standstill(&build(json!({ "state": state }))), None);
        }
    }
}
