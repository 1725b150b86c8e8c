//! A task of a build: what it is for, every attempt at it, and what the gate saw.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use ropewalk_desk::views::task::{self, TaskView};
use ropewalk_desk::views::why;
use ropewalk_schemas::TaskId;
use ropewalk_schemas::attempt::{Attempt, Evidence, FailureClass, Verdict};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::Task;
use ropewalk_store::task_key;

use super::frame::{Frame, page};
use super::{build, shown};
use crate::problem::Problem;
use crate::shared::Shared;

#[derive(Template)]
#[template(path = "task.html")]
struct Shown {
    frame: Frame,
    build: Build,
    view: TaskView,
    why: String,
}

impl Shown {
    /// Returns what the gate saw of one attempt.
    fn seen(&self, attempt: &Attempt) -> Vec<&Evidence> {
        let evidence = self.view.evidence.iter();
        evidence
            .filter(|seen| seen.attempt == Some(attempt.id))
            .collect()
    }
}

/// Shows a task.
pub(super) async fn show(
    State(shared): State<Shared>,
    Path((id, task)): Path<(String, String)>,
    frame: Frame,
) -> Result<Response, Problem> {
    let unknown = || {
        let task = shown::short(&task, 80);
        let text = format!("no task of this build is called `{task}`; its page shows them");
        Problem::new(StatusCode::NOT_FOUND, "unknown-id", text)
    };
    let build = build::found(&shared, &id).await?;
    let name = TaskId::parse(&task).map_err(|_| unknown())?;
    let store = &shared.services.store;
    let found = store.get::<Task>(&task_key(build.id, &name)).await?;
    let found = found.ok_or_else(unknown)?.into_inner();
    // What a provider that is away means for it stands on the page of its build.
    let why = why::task(&build, None, &found);
    let view = task::show(store, found).await?;
    page(&Shown {
        frame,
        build,
        view,
        why,
    })
}

/// Returns the name of a class of failures, as it is written everywhere.
fn class(class: FailureClass) -> String {
    shown::word(class).replace('_', " ").to_lowercase()
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Held => "held",
    }
}
