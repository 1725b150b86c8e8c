//! Sums up what happened since people heard it last: with the counts of the store, what models cost, and what stands.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_config::settings::TimeOfDay;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::amount;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::model_call::{Spending, UsageBy};
use ropewalk_schemas::notice::NoticeText;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{Event, EventPattern, Payload, Subject};
use ropewalk_store::{EventFilter, Query, ReadError, Store, StoredEvent};

use super::text;
use crate::agent::Schedule;

/// The schedule on which people hear a summary.
pub(super) const SUMMARY: &str = "notices.summary";
/// What a summary looks back on that follows no other.
const FIRST: TimeDelta = TimeDelta::days(1);
/// After how long without anything a task is named.
const STALE: TimeDelta = TimeDelta::days(7);
/// How many things of a kind are named before the rest is only counted.
const NAMED: usize = 8;
/// The families of the events that are counted.
const FAMILIES: [&str; 5] = ["ideation.*", "spec.*", "build.*", "task.*", "question.*"];

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Ideas,
    Builds,
    Tasks,
    Questions,
}

impl Line {
    const fn title(self) -> &'static str {
        match self {
            Self::Ideas => "Ideas",
            Self::Builds => "Builds",
            Self::Tasks => "Tasks",
            Self::Questions => "Questions",
        }
    }
}

/// How often each thing happened.
type Counts = BTreeMap<(Line, &'static str), u64>;

/// Returns the schedule that comes due at `time` of each day.
pub(super) fn schedule(time: TimeOfDay) -> Schedule {
    Schedule {
        name: SUMMARY.to_owned(),
        cron: format!("{} {} * * *", time.minute(), time.hour()),
    }
}

/// Sums up what happened between the `due` event and the one before it; none where that event is gone.
///
/// What counts is where an event stands and not its time, so that each is in one summary and in one alone.
pub(super) async fn of(due: &Event, store: &Store) -> Result<Option<NoticeText>, ReadError> {
    let Some(own) = store.event(due.id).await? else {
        return Ok(None);
    };
    let last = EventFilter {
        before_sequence: Some(own.sequence),
        subject: Some(due.subject.clone()),
        pattern: Some(EventPattern::of("schedule.due")),
        limit: Some(1),
        newest_first: true,
        ..EventFilter::default()
    };
    let last = store.events(&last).await?.pop();
    let begin = last
        .as_ref()
        .map_or(due.time - FIRST, |last| last.event.time);
    let period = EventFilter {
        after_sequence: last.as_ref().map(|last| last.sequence),
        before_sequence: Some(own.sequence),
        from: last.is_none().then_some(begin),
        ..EventFilter::default()
    };
    sum_up(&period, (begin, due.time), store).await.map(Some)
}

/// Sums up the day that ends now.
pub async fn summary_of_last_day(
    store: &Store,
    now: DateTime<Utc>,
) -> Result<NoticeText, ReadError> {
    let begin = now - FIRST;
    let period = EventFilter {
        from: Some(begin),
        ..EventFilter::default()
    };
    sum_up(&period, (begin, now), store).await
}

async fn sum_up(
    period: &EventFilter,
    (begin, end): (DateTime<Utc>, DateTime<Utc>),
    store: &Store,
) -> Result<NoticeText, ReadError> {
    let calls = Query::new()
        .at_least("at", begin)
        .at_most("at", end - TimeDelta::milliseconds(1));
    let happened = told(&counts(period, store).await?);
    let used = used(store, calls).await?;
    let builds = underway(store).await?;
    let (questions, alerts) = standing(store).await?;
    let stale = stale(&builds, end, store).await?;
    let stands = [
        line_of("Underway", &builds_told(&builds)),
        line_of("No activity for 7 days", &stale),
        waiting(questions, alerts),
    ];
    let recommendation = match (questions, alerts, stale.is_empty()) {
        (1.., _, _) => Some("answer what is asked"),
        (0, 1.., _) => Some("look at the alerts"),
        (0, 0, false) => Some("retry or skip what nothing happens to"),
        (0, 0, true) => None,
    };
    Ok(text::text(
        format!("Summary since {}", begin.format("%Y-%m-%d %H:%M UTC")),
        [happened, used, joined(stands)],
        recommendation.map(str::to_owned),
    ))
}

/// Counts what happened in a period.
async fn counts(period: &EventFilter, store: &Store) -> Result<Counts, ReadError> {
    let mut counts = Counts::new();
    for family in FAMILIES {
        let of_family = EventFilter {
            pattern: Some(EventPattern::of(family)),
            ..period.clone()
        };
        let events = store.events(&of_family).await?;
        for counted in events.iter().filter_map(counted) {
            *counts.entry(counted).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Returns as what an event counts.
fn counted(stored: &StoredEvent) -> Option<(Line, &'static str)> {
    let event = Event::try_from(stored.event.as_ref()).ok()?;
    Some(match &event.payload {
        Payload::IdeationCompleted(_) => (Line::Ideas, "complete"),
        Payload::SpecGenerated(_) => (Line::Ideas, "specifications written"),
        Payload::SpecApproved(_) => (Line::Ideas, "specifications approved"),
        Payload::BuildStarted(_) => (Line::Builds, "begun"),
        Payload::BuildMerged(_) => (Line::Builds, "landed"),
        Payload::BuildCompleted(ended) => (Line::Builds, ended.status.as_str()),
        Payload::TaskCompleted(_) => (Line::Tasks, "complete"),
        Payload::TaskSkipped(_) => (Line::Tasks, "left out"),
        Payload::TaskFailed(failed) if !failed.will_retry => (Line::Tasks, "failed"),
        Payload::QuestionAsked(_) => (Line::Questions, "asked"),
        Payload::QuestionAnswered(_) => (Line::Questions, "answered"),
        Payload::QuestionDefaulted(_) => (Line::Questions, "taken by default"),
        _ => return None,
    })
}

/// Says what happened, a line for each sort of thing.
fn told(counts: &Counts) -> String {
    if counts.is_empty() {
        return "Nothing happened.".to_owned();
    }
    let mut lines: BTreeMap<Line, Vec<String>> = BTreeMap::new();
    for ((line, what), count) in counts {
        let told = format!("{count} {what}");
        lines.entry(*line).or_default().push(told);
    }
    let lines = lines.iter();
    joined(lines.map(|(line, told)| format!("{}: {}.", line.title(), told.join(", "))))
}

/// Says what models used; nothing where none was asked.
async fn used(store: &Store, calls: Query) -> Result<String, ReadError> {
    let mut all = Spending::default();
    for day in store.usage(UsageBy::Day, calls).await? {
        let of_day = day.spending();
        all.calls += of_day.calls;
        all.tokens += of_day.tokens;
        all.known_micro_usd += of_day.known_micro_usd;
        all.unpriced_calls += of_day.unpriced_calls;
    }
    if all.calls == 0 {
        return Ok(String::new());
    }
    let (calls, tokens, money) = (all.calls, all.tokens, all.money());
    Ok(format!("Models: {calls} calls, {tokens} tokens, {money}."))
}

/// A build that has not ended, with its tasks.
struct OpenBuild {
    build: Build,
    tasks: Vec<Task>,
}

async fn underway(store: &Store) -> Result<Vec<OpenBuild>, ReadError> {
    let open = BuildState::ALL.iter().filter(|state| !state.has_ended());
    let open = Query::new()
        .one_of("state", open.copied())
        .order_by("created_at");
    let mut builds = Vec::new();
    for build in store.list::<Build>(open).await? {
        let tasks = Query::new().equal("build", build.id).order_by("number");
        let tasks = store.list::<Task>(tasks).await?.into_iter();
        builds.push(OpenBuild {
            tasks: tasks.map(|task| task.record).collect(),
            build: build.record,
        });
    }
    Ok(builds)
}

fn builds_told(builds: &[OpenBuild]) -> Vec<String> {
    let builds = builds.iter();
    let told = builds.map(|open| {
        let is_complete = |task: &&Task| task.state == TaskState::Complete;
        let complete = open.tasks.iter().filter(is_complete).count();
        let (idea, state) = (&open.build.idea, open.build.state);
        format!(
            "`{idea}` is {state}, {complete} of {} complete",
            amount::counted(open.tasks.len(), "task")
        )
    });
    told.collect()
}

/// Names the tasks of open builds to which nothing happened for long.
async fn stale(
    builds: &[OpenBuild],
    now: DateTime<Utc>,
    store: &Store,
) -> Result<Vec<String>, ReadError> {
    let mut stale = Vec::new();
    for open in builds {
        let is_over = |task: &Task| matches!(task.state, TaskState::Complete | TaskState::Skipped);
        for task in open.tasks.iter().filter(|task| !is_over(task)) {
            let newest = EventFilter {
                subject: Some(Subject::task(open.build.id, &task.id)),
                limit: Some(1),
                newest_first: true,
                ..EventFilter::default()
            };
            let newest = store.events(&newest).await?.pop();
            let told = newest.map(|newest| newest.event.time);
            let active = told.max(task.progress_at).max(task.claimed_at);
            if now - active.unwrap_or(open.build.created_at) >= STALE {
                stale.push(format!("{} of `{}`", task.id, open.build.idea));
            }
        }
    }
    Ok(stale)
}

/// Counts the questions that nobody answered yet, and the alerts whose cause is not gone.
async fn standing(store: &Store) -> Result<(u64, u64), ReadError> {
    let pending = Query::new().equal("state", QuestionState::Pending.as_str());
    let raised = Query::new().equal("cleared", false);
    let questions = store.count::<Question>(pending).await?;
    Ok((questions, store.count::<Alert>(raised).await?))
}

fn waiting(questions: u64, alerts: u64) -> String {
    let counted = [(questions, "questions"), (alerts, "alerts")];
    let counted: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    line_of("Open", &counted)
}

/// Writes a line that names things, the first of many; nothing where there are none.
fn line_of(title: &str, things: &[String]) -> String {
    if things.is_empty() {
        return String::new();
    }
    let named = things.iter().take(NAMED).cloned().collect::<Vec<_>>();
    let more = match things.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{title}: {}{more}.", named.join("; "))
}

fn joined(lines: impl IntoIterator<Item = String>) -> String {
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
