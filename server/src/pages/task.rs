//! A task of a build: what it is for, what its model says and does, every attempt at it, and what the gate saw.

mod steps;
pub(super) mod transcript;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use ropewalk_desk::builds::tasks;
use ropewalk_desk::views::task::{self, TaskView};
use ropewalk_desk::views::why;
use ropewalk_schemas::attempt::{Attempt, Evidence, Verdict};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::{TaskId, illegal};

use super::form::Fields;
use super::frame::{Frame, go, page};
use super::{build, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Path};
use transcript::LastSteps;

#[derive(Template)]
#[template(path = "task.html")]
struct TaskPage {
    frame: Frame,
    build: Build,
    view: TaskView,
    why: String,
    /// What was said and done last; nothing before the first attempt.
    last: Option<LastSteps>,
}

impl TaskPage {
    /// Returns whether another round of tries can be asked for, by who looks.
    fn can_retry(&self) -> bool {
        tasks::can_retry(&self.build, &self.view.task, &self.frame.person)
    }

    /// Returns whether something can be said to whoever works on it.
    fn hears(&self) -> bool {
        illegal::tell(&self.view.task).is_ok() && !illegal::is_over_for_good(&self.build)
    }

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
    State(shared): State<ServerState>,
    Path((id, task)): Path<(String, String)>,
    frame: Frame,
) -> Result<Response, Problem> {
    let (build, view) = loaded(&shared, &id, &task).await?;
    let last = match view.made.last() {
        Some(newest) => Some(transcript::last(&shared, newest).await?),
        None => None,
    };
    // What a provider that is away means for it stands on the page of its build.
    let why = why::task(&build, None, &view.task);
    page(&TaskPage {
        frame,
        build,
        view,
        why,
        last,
    })
}

/// Loads a task with its build.
async fn loaded(shared: &ServerState, id: &str, task: &str) -> Result<(Build, TaskView), Problem> {
    let build = build::found(shared, id).await?;
    let name = TaskId::parse(task).map_err(|_| unknown(task))?;
    let view = task::show(&shared.services.store, build.id, &name).await?;
    Ok((build, view.ok_or_else(|| unknown(task))?))
}

/// Asks for another round of tries of a task.
pub(super) async fn retry(
    State(shared): State<ServerState>,
    Path((id, task)): Path<(String, String)>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let build = build::found(&shared, &id).await?;
    let name = TaskId::parse(&task).map_err(|_| unknown(&task))?;
    let guidance = fields.filled("guidance");
    tasks::retry(&shared.context(), &build, &name, &person, guidance).await?;
    Ok(go(&format!("/builds/{id}/tasks/{task}")))
}

/// Says something to the model that works on a task.
pub(super) async fn tell(
    State(shared): State<ServerState>,
    Path((id, task)): Path<(String, String)>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let build = build::found(&shared, &id).await?;
    let (context, text) = (shared.context(), fields.text("text"));
    tasks::tell(&context, &build, Some(&task), &person, text).await?;
    Ok(go(&format!("/builds/{id}/tasks/{task}")))
}

fn unknown(task: &str) -> Problem {
    let message = format!("no task of this build is called `{}`", clip::line(task, 80));
    let words = (message, "the page of the build shows them");
    Problem::new(StatusCode::NOT_FOUND, "unknown-id", words)
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Held => "held",
    }
}
