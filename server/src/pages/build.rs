//! Builds: how far each has come, why it stands where it stands, what it has to show, and how it is steered.

pub(super) mod landing;
mod timeline;

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::builds::{self, Wish, tasks};
use ropewalk_desk::people::Person;
use ropewalk_desk::views::build::{self, BuildFilter, BuildRow, BuildView};
use ropewalk_desk::views::trace::EvidenceView;
use ropewalk_desk::views::{transcript, why};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::attempt::Verdict;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::Price;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wish::BranchWish;
use ropewalk_schemas::{Priority, UnknownState, illegal};
use serde::Deserialize;

use super::form::{Fields, FilterFields, filled, span};
use super::frame::{Frame, go, page};
use super::graph::{Graph, Node, TASKS};
use super::pager::{PageQuery, Pager};
use super::shown;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Parameters, Path};
use timeline::Timeline;

/// The most tasks that stand below each other on one page; the graph shows all.
const ROWS: usize = 100;

#[derive(Template)]
#[template(path = "builds.html")]
struct List {
    frame: Frame,
    rows: Vec<BuildRow>,
    which: Which,
    pager: Pager,
}

/// Which builds are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Which {
    /// Only those in this state; all where it is empty.
    state: String,
    /// Approved at this moment or later.
    since: String,
    /// Approved before this moment.
    until: String,
    page: Option<u32>,
}

impl Which {
    fn filter(&self) -> Result<BuildFilter, Problem> {
        let state = filled(&self.state).map(str::parse).transpose();
        Ok(BuildFilter {
            state: state.map_err(|error: UnknownState| {
                Problem::usage((error.to_string(), "choose one of the list"))
            })?,
            approved: span(&self.since, &self.until)?,
            ..BuildFilter::default()
        })
    }

    fn fields(&self) -> FilterFields<'_> {
        FilterFields::of([
            ("state", &self.state),
            ("since", &self.since),
            ("until", &self.until),
        ])
    }

    /// Returns whether only some builds are asked for.
    fn is_narrow(&self) -> bool {
        !self.fields().is_empty()
    }
}

/// How a build is wanted to be shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Look {
    page: Option<u32>,
    /// What the picture leaves out.
    fold: Option<Fold>,
}

/// What a picture of tasks can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fold {
    Complete,
}

#[derive(Template)]
#[template(path = "build.html")]
struct BuildPage {
    frame: Frame,
    view: BuildView,
    why: Option<String>,
    graph: Option<Graph>,
    fold: Option<Fold>,
    timeline: Option<Timeline>,
    complete: usize,
    quote: String,
    /// What it came to, beside what was quoted.
    against: Option<String>,
    may_stop: Option<String>,
    /// What each task is at that is worked on.
    now: BTreeMap<String, String>,
    /// How many tasks stand on the pages before this one.
    before: usize,
    pager: Pager,
}

impl BuildPage {
    /// Says how many tasks the picture can do without.
    fn foldable(&self) -> String {
        counted(self.complete, "complete task")
    }

    /// Lists the tasks of this page.
    fn listed(&self) -> &[Task] {
        let rest = self.view.tasks.get(self.before..).unwrap_or_default();
        &rest[..rest.len().min(ROWS)]
    }

    /// Returns what can be wished now, with how the button is called.
    fn wishes(&self) -> Vec<(&'static str, &'static str)> {
        let build = &self.view.build;
        if build.continued_by.is_some() || build.stop == Some(StopCause::Abandoned) {
            return Vec::new();
        }
        let all = [
            (Wish::Pause, "pause", "Pause"),
            (Wish::Resume, "resume", "Resume"),
            (Wish::Stop, "stop", "Stop"),
        ];
        all.into_iter()
            .filter(|(wish, _, _)| wish.refusal(build.state).is_none() && !wish.is_fulfilled(build))
            .map(|(_, path, called)| (path, called))
            .collect()
    }

    /// Returns whether somebody works on it who could hear something.
    fn hears(&self) -> bool {
        let open = |task: &Task| !matches!(task.state, TaskState::Complete | TaskState::Skipped);
        !illegal::is_over_for_good(&self.view.build) && self.view.tasks.iter().any(open)
    }

    /// Returns whether it can be given a priority.
    fn can_be_ranked(&self) -> bool {
        self.view.build.completed_at.is_none() && illegal::rank(&self.view.build).is_ok()
    }

    /// Returns whether it is paused once what runs has ended.
    fn is_about_to_pause(&self) -> bool {
        let build = &self.view.build;
        build.pause_requested && build.state == BuildState::Running
    }

    /// Returns whether it can be landed.
    fn can_land(&self) -> bool {
        builds::landing::admits(&self.view.build).is_ok()
    }

    fn restarts_of(&self, task: &Task) -> usize {
        self.view.restarts(&task.id)
    }

    fn why_of(&self, task: &Task) -> String {
        why::task(&self.view.build, self.view.outage.as_ref(), task)
    }
}

/// Says in a few words what is wanted of a branch.
fn wished(what: BranchWish) -> &'static str {
    match what {
        BranchWish::BuildOnTop => "Building on what somebody put on its branch",
        BranchWish::OwnBranch => "A branch of its own",
        BranchWish::Merge => "Landing",
        BranchWish::Resolve => "A task that resolves the conflict",
    }
}

/// Says in a few words what the last pass of a gate saw.
fn passed(evidence: &[EvidenceView]) -> String {
    let Some(seen) = evidence
        .iter()
        .rfind(|seen| seen.verdict == Verdict::Passed)
    else {
        return String::new();
    };
    let checks = seen.checks.iter().map(|ran| match &ran.tests {
        Some(tests) => format!("{} ({})", ran.name, counted(tests.passed, "test")),
        None => ran.name.clone(),
    });
    let mut told = checks.collect::<Vec<_>>().join(", ");
    if let Some(proof) = seen.proof {
        told = format!("{told}; {}", proof.in_words());
    }
    told
}

/// Shows every build, the newest first.
pub(super) async fn list(
    State(shared): State<ServerState>,
    Parameters(which): Parameters<Which>,
    frame: Frame,
) -> Result<Response, Problem> {
    let wanted = PageQuery::at(which.page);
    let filter = which.filter()?;
    let (store, providers) = (&shared.services.store, &shared.builds_with);
    let found = build::page(store, &filter, wanted.number(), providers).await?;
    let path = which.fields().address("/builds");
    page(&List {
        frame,
        pager: wanted.pager(&path, found.pages),
        rows: found.rows,
        which,
    })
}

/// Shows a build.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Parameters(look): Parameters<Look>,
    frame: Frame,
) -> Result<Response, Problem> {
    let found = found(&shared, &id).await?;
    let wanted = PageQuery::at(look.page);
    let before = (wanted.number() as usize).saturating_mul(ROWS);
    let view = build::show(&shared.services.store, found, &shared.builds_with).await?;
    let drawn = view.tasks.iter();
    let drawn = drawn.filter(|task| look.fold.is_none() || task.state != TaskState::Complete);
    let nodes = drawn.map(|task| node(&id, task));
    let folded = look.fold.map_or("", |Fold::Complete| "?fold=complete");
    let complete = view.tasks.iter();
    let now = transcript::latest(&shared.services.store, &shared.state, view.build.id).await?;
    let now = now.into_iter().map(|(task, line)| (task.to_string(), line));
    page(&BuildPage {
        now: now.collect(),
        graph: Graph::of(TASKS, nodes.collect()),
        complete: complete
            .filter(|task| task.state == TaskState::Complete)
            .count(),
        fold: look.fold,
        why: why::build(&view.build, view.outage.as_ref()),
        quote: Price::in_words(view.build.quote.as_ref()),
        against: view.against_quote(),
        timeline: Timeline::of(&view.timeline, shared.services.clock.now()),
        may_stop: frame.refusal(Right::Stop),
        before,
        pager: wanted.pager_of(
            &format!("/builds/{id}{folded}"),
            u32::try_from(view.tasks.len().div_ceil(ROWS)).unwrap_or(u32::MAX),
            ["tasks before", "further tasks"],
        ),
        frame,
        view,
    })
}

/// Returns a task as it is drawn.
fn node(build: &str, task: &Task) -> Node {
    let needs = task.block.depends_on.iter();
    Node {
        id: task.id.to_string(),
        text: shown::comes_to(&task.block),
        tone: shown::tone(task.state.as_str()),
        href: format!("/builds/{build}/tasks/{}", task.id),
        needs: needs.map(ToString::to_string).collect(),
    }
}

/// Lets running tasks end and begins no others.
pub(super) async fn pause(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    steer(&shared, &id, Wish::Pause, &person, &fields).await
}

/// Goes on with a build.
pub(super) async fn resume(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    steer(&shared, &id, Wish::Resume, &person, &fields).await
}

/// Stops a build.
pub(super) async fn stop(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    steer(&shared, &id, Wish::Stop, &person, &fields).await
}

async fn steer(
    shared: &ServerState,
    id: &str,
    wish: Wish,
    person: &Person,
    fields: &Fields,
) -> Result<Response, Problem> {
    let build = found(shared, id).await?;
    let reason = fields.filled("reason");
    builds::steer(&shared.context(), &build, wish, person, reason).await?;
    Ok(go(&format!("/builds/{id}")))
}

/// Says something to the models that work on a build.
pub(super) async fn tell(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let build = found(&shared, &id).await?;
    tasks::tell(
        &shared.context(),
        &build,
        None,
        &person,
        fields.text("text"),
    )
    .await?;
    Ok(go(&format!("/builds/{id}")))
}

/// Says how urgent a build is.
pub(super) async fn rank(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let build = found(&shared, &id).await?;
    let number = fields.text("priority").parse::<u8>().ok();
    let priority = number.and_then(|number| Priority::new(number).ok());
    let priority = priority.ok_or_else(|| {
        Problem::usage((
            "that is no priority",
            "write a number from 1 (highest) to 10",
        ))
    })?;
    builds::rank(&shared.context(), &build, priority, &person).await?;
    Ok(go(&format!("/builds/{id}")))
}

/// Finds a build by its id.
pub(super) async fn found(shared: &ServerState, id: &str) -> Result<Build, Problem> {
    shown::find::<Build>(shared, id, "build", "the list of builds shows them").await
}
