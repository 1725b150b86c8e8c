//! Says on a phone where the builds stand, why what does not run does not, and what every part does.

use chrono::{DateTime, Utc};
use ropewalk_desk::halt;
use ropewalk_desk::views::agent;
use ropewalk_desk::views::build::{self, BuildFilter, BuildRow};
use ropewalk_desk::views::why;
use ropewalk_orchestrator::questions::rank;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::clip;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::{Query, ReadError, Store, Versioned};

use crate::builds::BuildRoll;
use crate::surface::{Surface, SurfaceError};

/// How many tasks of a build a phone is shown.
const TASKS: usize = 8;
/// How many letters of a question.
const LETTERS: usize = 120;
/// How many letters of why a task does not run.
const WHY: usize = 300;

/// A build with those of its tasks that are not done, those that are worked on before others; none of one that has ended.
struct BuildSnapshot {
    row: BuildRow,
    open: Vec<Task>,
}

/// Says where the builds stand, each with what is worked on and what holds its other tasks, and how many questions are open.
pub(crate) async fn builds(surface: &Surface) -> Result<String, SurfaceError> {
    let store = &surface.services.store;
    let roll = BuildRoll::load(store).await?;
    let rows = build::list(store, &BuildFilter::default(), &surface.builds_with).await?;
    let mut builds = Vec::new();
    for row in rows {
        let open = unfinished(store, &row).await?;
        builds.push(BuildSnapshot { row, open });
    }
    let standing = told(&builds, &roll, &open(surface).await?);
    Ok(match halt::standing(store).await? {
        Some(halt) => format!("{}. /resumeall lets it go on.\n{standing}", halt.in_words()),
        None => standing,
    })
}

/// Lists the open questions, the most urgent first.
pub(crate) async fn open(surface: &Surface) -> Result<Vec<Versioned<Question>>, SurfaceError> {
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let mut open = surface.services.store.list::<Question>(open).await?;
    open.sort_by_key(|question| rank(question));
    Ok(open)
}

/// Says what every part does, since when, and when it was seen last; nothing where nothing runs.
pub(crate) async fn parts(surface: &Surface) -> Result<String, SurfaceError> {
    let store = &surface.services.store;
    let now = surface.services.clock.now();
    let mut lines = Vec::new();
    for part in &store.list::<Component>(Query::new()).await? {
        let state = agent::state(part, surface.silent_after, now);
        lines.push(part_told(
            part,
            state,
            &agent::work(part, store).await?,
            now,
        ));
    }
    Ok(lines.join("\n"))
}

async fn unfinished(store: &Store, row: &BuildRow) -> Result<Vec<Task>, ReadError> {
    if row.build.completed_at.is_some() {
        return Ok(Vec::new());
    }
    let of_build = Query::new().equal("build", row.build.id.to_string());
    let tasks = store.list::<Task>(of_build.order_by("number")).await?;
    let tasks = tasks.into_iter().map(Versioned::into_inner);
    let is_over = |task: &Task| matches!(task.state, TaskState::Complete | TaskState::Skipped);
    let mut open: Vec<Task> = tasks.filter(|task| !is_over(task)).collect();
    open.sort_by_key(|task| !task.state.is_active());
    Ok(open)
}

/// Says where the builds stand that have not ended, and how the last one did where all have.
fn told(builds: &[BuildSnapshot], roll: &BuildRoll, questions: &[Versioned<Question>]) -> String {
    let running = builds
        .iter()
        .filter(|standing| standing.row.build.completed_at.is_none());
    let mut lines: Vec<String> = running
        .flat_map(|standing| {
            let tasks = tasks_told(standing, roll, questions);
            std::iter::once(build_told(&standing.row, roll)).chain(tasks)
        })
        .collect();
    if lines.is_empty() {
        let last = builds
            .last()
            .map(|standing| build_told(&standing.row, roll));
        lines.push(last.map_or_else(
            || "No build yet.".to_owned(),
            |last| format!("No build runs. The last one: {last}"),
        ));
    }
    lines.push(match questions.len() {
        0 => "No question is open.".to_owned(),
        1 => "1 question is open; /questions puts it again.".to_owned(),
        many => format!("{many} questions are open; /questions puts them again."),
    });
    lines.join("\n")
}

fn build_told(row: &BuildRow, roll: &BuildRoll) -> String {
    let (build, done, of) = (&row.build, row.tasks_complete, row.tasks_total);
    let pausing = if build.pause_requested && build.state != BuildState::Paused {
        ", pausing"
    } else {
        ""
    };
    format!(
        "{}: {}{pausing}, {done} of {} complete",
        roll.name(build),
        build.state,
        counted(of, "task")
    )
}

/// Says of each task that is not done that it is worked on, or why it does not run, with the question that it waits for.
fn tasks_told(
    standing: &BuildSnapshot,
    roll: &BuildRoll,
    questions: &[Versioned<Question>],
) -> Vec<String> {
    let (row, open) = (&standing.row, &standing.open);
    let line = |task: &Task| {
        if task.state.is_active() {
            return format!("• `{}` is worked on ({})", task.id, task.state);
        }
        let asked = task.question.and_then(|id| {
            let mut open = questions.iter();
            open.find(|question| question.id == id)
        });
        let why = why::task(&row.build, row.outage.as_ref(), task);
        format!(
            "• `{}` is {}{}",
            task.id,
            task.state,
            held(task, &roll.without_ids(&why), asked)
        )
    };
    let mut lines: Vec<String> = open.iter().take(TASKS).map(line).collect();
    let more = open.len().saturating_sub(TASKS);
    if more > 0 {
        lines.push(format!("• {}", counted(more as u64, "more task")));
    }
    lines
}

/// Says behind the state of a task why it does not run, once: where a question is asked about what it failed of, the question
/// would say that again.
fn held(task: &Task, why: &str, asked: Option<&Versioned<Question>>) -> String {
    let mut told = String::new();
    // A reason may begin by the state.
    let why = match why.strip_prefix(task.state.as_str()) {
        Some(rest) if rest.starts_with(" (") => rest,
        Some(rest) => rest.strip_prefix("; ").unwrap_or(why),
        None => why,
    };
    let why = match asked {
        Some(question) => why.replace(&format!(" to question {}", question.id), ""),
        None => why.to_owned(),
    };
    if !why.trim().is_empty() {
        let apart = if why.starts_with(' ') { "" } else { ": " };
        told = format!("{apart}{}", clip::letters(&why, WHY));
    }
    match asked {
        Some(_) if task.state == TaskState::Failed => format!("{told}; /questions asks about it"),
        Some(question) => format!("{told}: {}", clip::line(&question.text, LETTERS)),
        None => told,
    }
}

fn part_told(part: &Component, state: &str, work: &str, now: DateTime<Utc>) -> String {
    let at = match work {
        "" => String::new(),
        work => format!(" at {work}"),
    };
    format!(
        "`{}`: {state}{at} since {}, last seen {}",
        part.name,
        time(part.since, now),
        time(part.last_seen, now)
    )
}

/// Writes a time of today without its date.
fn time(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let is_today = at.date_naive() == now.date_naive();
    let form = if is_today {
        "%H:%M UTC"
    } else {
        "%Y-%m-%d %H:%M UTC"
    };
    at.format(form).to_string()
}
