//! Verb `build replay`: does a build again that ran, from its journal, on its base commit and in a fresh directory; no
//! model is asked.

mod compare;
mod ground;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ropewalk_desk::builds::again::Again as Plan;
use ropewalk_desk::views::transcript::Transcripts;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::job_event::JobEvent;
use ropewalk_schemas::{BuildId, CommitId, ComponentName, Priority, TaskId};
use ropewalk_store::Store;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::project::Project;
use crate::wiring::{self, Again, Host, OpenProject};

/// How often is looked how far it has come.
const LOOK: Duration = Duration::from_millis(200);
/// After so many looks at a paused build nothing sets it going.
const STANDS: u32 = 50;

/// The build, and where it is done again.
#[derive(Debug, Args)]
pub struct Replay {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// A directory that is not there yet, or is empty: the repository and the state of the replay are made in it.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    build: BuildId,
    into: PathBuf,
    branch: String,
    /// Whether it came to the same commits.
    same: bool,
    commits: Vec<CommitId>,
    /// How many of them are the same but for the times at which they note that tasks were complete.
    other_times: usize,
    /// The first request that was not what it was.
    strayed: Option<RequestDeviation>,
    /// Where it went another way.
    differs: Option<String>,
}

/// A request that was not what it was.
#[derive(Debug, Serialize)]
struct RequestDeviation {
    task: TaskId,
    turn: u32,
    what: String,
}

impl Replay {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?;
        let build = build.into_inner();
        let mut plan = Plan::of(&opened.store, build.clone())
            .await
            .map_err(|error| CliError::advised("failed", error))?;
        let into = ground::fresh(&self.into)?;
        let git = wiring::git(&app.environment).await?;
        let before = wiring::open_clone(&opened.project, git.clone()).await?;
        let project = project(app, &into)?;
        ground::lay(&before, &build, &mut plan, &project).await?;
        lay_plan(&plan, &opened, &project).await?;
        let again = Again::new(opened.store.clone(), plan.order());
        let host = Box::pin(Host::start_again(app, project, &again)).await?;
        let stopped = follow(&host, &plan, &again, build.id).await;
        let store = host.services.store.clone();
        let strayed = strayed(&store, host.project.state(), build.id).await;
        let done = found(&store, build.id).await;
        let project = ground::Place::of(&host.project);
        host.drain().await?;
        let (stopped, strayed, done) = (stopped?, strayed?, done?);
        let after = project.open(git).await?;
        let compared = compare::compare((&before, &build), (&after, &done)).await?;
        opened.close().await?;
        let report = Report {
            build: build.id,
            into,
            branch: done.branch.clone(),
            same: compared.differs.is_none() && stopped.is_none(),
            commits: compared.commits,
            other_times: compared.other_times,
            strayed,
            differs: stopped.or(compared.differs),
        };
        tell(&report, app)
    }
}

/// Loads the project as it is, with repository and state in `into`.
fn project(app: &App, into: &Path) -> Result<Project, CliError> {
    let settings = [
        format!("project.repo={}", into.join(ground::REPOSITORY).display()),
        format!("project.state={}", into.join(ground::STATE).display()),
        "store.location=sqlite".to_owned(),
        "bus.transport=embedded".to_owned(),
        // One task after the other, in the order in which they landed.
        "build.loops=1".to_owned(),
    ];
    app.project_with(&settings)
}

/// Writes the plan into the state of the replay.
async fn lay_plan(plan: &Plan, opened: &OpenProject, project: &Project) -> Result<(), CliError> {
    let location = wiring::location(project)?;
    let store = Store::open(&location, opened.clock.clone()).await?;
    let laid = plan.lay(&opened.store, &store).await;
    store.close().await?;
    laid.map_err(|error| CliError::advised("failed", error))
}

/// Answers what people answered then, until the build has ended or can go no further; says why it cannot.
async fn follow(
    host: &Host,
    plan: &Plan,
    again: &Again,
    id: BuildId,
) -> Result<Option<String>, CliError> {
    let store = &host.services.store;
    let source = ComponentName::parse("replay")?;
    let mut stood = 0;
    loop {
        if let Some(request) = again.unanswered() {
            return Ok(Some(format!("nobody was asked this then: {request}")));
        }
        let build = found(store, id).await?;
        let context = host.context(source.clone());
        let context = context.for_claim(build.correlation_id, Priority::DEFAULT);
        let has_ended = build.state.has_ended();
        let is_asked_for_more = plan.retry(&context).await?;
        if has_ended && !is_asked_for_more {
            return Ok(None);
        }
        // What is asked about a build that has ended is no part of it.
        let open = if has_ended {
            None
        } else {
            plan.answer(&context).await?
        };
        // An answer sets a paused build going a moment later, and another round one that has ended.
        stood = if has_ended || build.state == BuildState::Paused {
            stood + 1
        } else {
            0
        };
        if stood == STANDS {
            if has_ended {
                return Ok(None);
            }
            let why = build.reason.unwrap_or_default();
            let asked = open.map(|question| format!("; nobody answered: {}", question.text));
            return Ok(Some(format!(
                "it stands still: {why}{}",
                asked.unwrap_or_default()
            )));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = host.stopped() => return Err(CliError::Cancelled),
        }
    }
}

async fn found(store: &Store, id: BuildId) -> Result<Build, CliError> {
    let build = store.get::<Build>(&id.to_string()).await?;
    let build = build.ok_or_else(|| CliError::unknown("build", id, "build list"))?;
    Ok(build.into_inner())
}

/// Finds the first request that was not what it was.
async fn strayed(
    store: &Store,
    state: &Path,
    id: BuildId,
) -> Result<Option<RequestDeviation>, CliError> {
    let build = found(store, id).await?;
    let passages = Transcripts::of(build, state).next(store).await;
    let passages = passages.map_err(|error| CliError::advised("failed", error))?;
    Ok(passages
        .into_iter()
        .find_map(|passage| match passage.event {
            JobEvent::TurnEnded {
                turn,
                strayed: Some(what),
                ..
            } => Some(RequestDeviation {
                task: passage.task,
                turn,
                what,
            }),
            _ => None,
        }))
}

fn tell(report: &Report, app: &App) -> Result<(), CliError> {
    app.output.show(report, |report| {
        // Where the same came of it, another request is no trouble; `--json` names it.
        let strayed = report.strayed.as_ref().filter(|_| !report.same);
        let strayed = strayed.map(|strayed| {
            let RequestDeviation { task, turn, what } = strayed;
            format!("\nthe first request that was not what it was: turn {turn} at `{task}`: {what}")
        });
        let count = report.commits.len();
        let commits = match (report.same, report.other_times) {
            (false, _) => format!("other {count} commits"),
            (true, 0) => format!("the same {count} commits"),
            (true, notes) => format!(
                "the same {count} commits, but for the times that {} of them {} of its tasks,",
                notes,
                if notes == 1 { "notes" } else { "note" }
            ),
        };
        format!(
            "{commits} on `{}` in {}{}",
            report.branch,
            report.into.join(ground::REPOSITORY).display(),
            strayed.unwrap_or_default()
        )
    })?;
    match &report.differs {
        None => Ok(()),
        Some(differs) => {
            let text = (
                format!("the replay went another way: {differs}"),
                "its directory is kept",
            );
            Err(CliError::Failed(text.into()))
        }
    }
}
