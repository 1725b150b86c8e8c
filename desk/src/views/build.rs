//! Builds as people see them.

pub mod holder;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use holder::HolderView;
use ropewalk_coordination::ownership;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::model_call::Spending;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wish::Wish;
use ropewalk_schemas::{ComponentName, RepoPath, Slug, TaskId};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::review::{self, ObjectionView, ReviewStanding};
use super::trace::{EvidenceView, RequirementView, Trace};
use super::{AT_ONCE, PAGE, Span, bears, pages, question, records};

/// A build in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildRow {
    /// The build.
    #[serde(flatten)]
    pub build: Build,
    /// How many tasks it has.
    pub tasks_total: u64,
    /// How many of them are complete.
    pub tasks_complete: u64,
    /// The outage that it stands still for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}

/// A page of builds.
#[derive(Debug)]
pub struct BuildPage {
    /// The builds, the newest first.
    pub rows: Vec<BuildRow>,
    /// How many pages there are.
    pub pages: u32,
}

/// A build with its tasks, and what it has to show.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildView {
    /// The build.
    #[serde(flatten)]
    pub build: Build,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// When which loop tried which task, the earliest first.
    pub timeline: Vec<AttemptView>,
    /// What it has used so far.
    pub spending: Spending,
    /// What it has to show for each requirement.
    pub requirements: Vec<RequirementView>,
    /// How far it was reviewed.
    pub reviewed: ReviewStanding,
    /// What its review holds against it, whatever the gates saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ObjectionView>,
    /// What the checks of the whole saw, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole: Vec<EvidenceView>,
    /// The files that it owns: no other build changes them until it is merged or abandoned.
    pub owns: Vec<RepoPath>,
    /// The builds whose files its tasks wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<HolderView>,
    /// The outage that it stands still for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// What somebody wants done about its branch, and is not done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wish: Option<Wish>,
}

impl BuildView {
    /// Says by how much more tokens were used than were quoted; nothing where it was no more, or nobody quoted.
    pub fn against_quote(&self) -> Option<String> {
        let quote = self.build.quote.as_ref()?;
        let high = quote.tokens_high;
        let more = self.spending.tokens.checked_sub(high)?;
        let percent = u128::from(more) * 100 / u128::from(high.max(1));
        let percent = match percent {
            0 => "less than 1".to_owned(),
            _ => percent.to_string(),
        };
        (more > 0).then(|| format!("{percent} % more than was quoted at most"))
    }

    /// Returns how often work on a task was begun anew after a failure. What the gate sends back is mended in its conversation, and
    /// what was cut off is taken up again: neither begins anything.
    pub fn restarts(&self, task: &TaskId) -> usize {
        let mut of_task = self.timeline.iter().filter(|one| one.task == *task);
        let Some(mut before) = of_task.next() else {
            return 0;
        };
        let begins = of_task.filter(|&next| {
            let last = std::mem::replace(&mut before, next);
            // Before conversations were written down, each attempt was one.
            let is_another = next.round != last.round || next.round == 0;
            is_another && last.state == AttemptState::Failed
        });
        begins.count()
    }
}

/// An attempt on the time line of a build.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AttemptView {
    /// The task.
    pub task: TaskId,
    /// The first try that it held, from 1.
    pub number: u32,
    /// The conversation that it held; 0 where that was not written down yet.
    pub round: u32,
    /// The loop that ran it.
    pub loop_name: ComponentName,
    /// How far it has come.
    pub state: AttemptState,
    /// Tokens used.
    pub tokens: u64,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

/// Which builds are wanted; all of them where nothing is said.
#[derive(Debug, Clone, Default)]
pub struct BuildFilter {
    /// Only those of this idea.
    pub idea: Option<Slug>,
    /// Only those in this state.
    pub state: Option<BuildState>,
    /// Only those that were approved then.
    pub approved: Span,
}

/// Lists the newest builds of ideas whose name bears these words: at most so many.
pub async fn find(store: &Store, words: &str, most: usize) -> Result<Vec<Build>, ReadError> {
    let newest = Query::new().order_by("created_at").descending();
    let mut builds = records(store.list::<Build>(newest).await?);
    builds.retain(|build| bears(words, &[build.idea.as_str()]));
    builds.truncate(most);
    Ok(builds)
}

impl BuildFilter {
    fn query(&self) -> Query {
        let mut query = Query::new();
        if let Some(idea) = &self.idea {
            query = query.equal("idea", idea.as_str());
        }
        if let Some(state) = self.state {
            query = query.equal("state", state.as_str());
        }
        self.approved.within("created_at", query)
    }
}

/// Lists builds, the oldest first; `providers` are those who build.
pub async fn list(
    store: &Store,
    filter: &BuildFilter,
    providers: &[String],
) -> Result<Vec<BuildRow>, ReadError> {
    let oldest = filter.query().order_by("created_at");
    rows(store, records(store.list(oldest).await?), providers).await
}

/// Lists a page of builds, the newest first; pages are numbered from 0.
pub async fn page(
    store: &Store,
    filter: &BuildFilter,
    number: u32,
    providers: &[String],
) -> Result<BuildPage, ReadError> {
    let newest = filter.query().order_by("created_at").descending();
    let builds = store.list(newest.page(number, PAGE)).await?;
    let all = store.count::<Build>(filter.query()).await?;
    Ok(BuildPage {
        rows: rows(store, records(builds), providers).await?,
        pages: pages(all, PAGE),
    })
}

/// Reads the builds of `ideas` by idea, the oldest first.
pub(super) async fn of_ideas(
    store: &Store,
    ideas: &[Idea],
) -> Result<BTreeMap<Slug, Vec<Build>>, ReadError> {
    let mut builds: BTreeMap<Slug, Vec<Build>> = BTreeMap::new();
    for part in ideas.chunks(AT_ONCE) {
        let slugs = part.iter().map(|idea| &idea.slug);
        let of_part = Query::new().one_of("idea", slugs).order_by("created_at");
        for build in records(store.list::<Build>(of_part).await?) {
            builds.entry(build.idea.clone()).or_default().push(build);
        }
    }
    Ok(builds)
}

/// Adds to each of `builds` how far it has come.
pub(super) async fn rows(
    store: &Store,
    builds: Vec<Build>,
    providers: &[String],
) -> Result<Vec<BuildRow>, ReadError> {
    let (outage, counts) = futures::try_join!(
        standing_outage(store, providers),
        task_counts(store, &builds)
    )?;
    let rows = builds.into_iter().map(|build| {
        let (tasks_total, tasks_complete) = counts
            .get(&build.id.to_string())
            .copied()
            .unwrap_or_default();
        BuildRow {
            tasks_total,
            tasks_complete,
            outage: holding(&build, outage.as_ref()).cloned(),
            build,
        }
    });
    Ok(rows.collect())
}

/// Returns for each build how many tasks it has, and how many of them are complete.
async fn task_counts(
    store: &Store,
    builds: &[Build],
) -> Result<BTreeMap<String, (u64, u64)>, ReadError> {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for part in builds.chunks(AT_ONCE) {
        let of_part = Query::new().one_of("build", part.iter().map(|build| build.id));
        let counted = store.count_by::<Task>(of_part, ["build", "state"]).await?;
        for ([build, state], count) in counted {
            let (all, complete) = counts.entry(build.unwrap_or_default()).or_default();
            *all += count;
            if state.as_deref() == Some(TaskState::Complete.as_str()) {
                *complete += count;
            }
        }
    }
    Ok(counts)
}

/// Loads what belongs to a build; `providers` are those who build. Questions that are open no more are none.
pub async fn show(
    store: &Store,
    mut build: Build,
    providers: &[String],
) -> Result<BuildView, ReadError> {
    let calls = Query::new().equal("build", build.id.to_string());
    let key = build.id.to_string();
    // On the heap, since so many queries at once are much for the stack of whoever asks.
    let (trace, timeline, spending, owns, outage, wish, review) = futures::try_join!(
        Box::pin(Trace::load(store, &build)),
        Box::pin(timeline(store, &build)),
        Box::pin(store.spending(calls)),
        Box::pin(ownership::kept_by(store, &build)),
        Box::pin(standing_outage(store, providers)),
        Box::pin(store.get::<Wish>(&key)),
        Box::pin(review::of_build(store, build.id)),
    )?;
    let (requirements, whole) = (trace.all(), trace.of_whole());
    let mut tasks = trace.into_tasks();
    let holders = holder::awaited(store, &build, &tasks).await?;
    let asked = tasks.iter_mut().map(|task| &mut task.question);
    question::forget_closed(store, asked.chain([&mut build.question]).collect()).await?;
    Ok(BuildView {
        wish: wish.map(|wish| wish.record),
        timeline,
        spending,
        requirements,
        reviewed: ReviewStanding::of(&build, review.as_ref()),
        objections: review::objections_to(&build, review.as_ref()),
        whole,
        owns,
        holders,
        outage: holding(&build, outage.as_ref()).cloned(),
        build,
        tasks,
    })
}

async fn timeline(store: &Store, build: &Build) -> Result<Vec<AttemptView>, ReadError> {
    let of_build = Query::new().equal("build", build.id.to_string());
    let attempts: Vec<Attempt> = records(store.list(of_build).await?);
    let tried = attempts.into_iter().map(|attempt| AttemptView {
        task: attempt.task,
        number: attempt.number,
        round: attempt.round,
        loop_name: attempt.loop_name,
        state: attempt.state,
        tokens: attempt.tokens,
        started_at: attempt.started_at,
        ended_at: attempt.ended_at,
    });
    let mut timeline: Vec<AttemptView> = tried.collect();
    timeline.sort_by_key(|tried| tried.started_at);
    Ok(timeline)
}

/// Returns the first outage of these providers, if all of them are away.
pub async fn standing_outage(
    store: &Store,
    providers: &[String],
) -> Result<Option<Outage>, ReadError> {
    let mut first = None;
    for provider in providers {
        let row = store.get::<Outage>(provider).await?;
        match row.map(|row| row.record).filter(Outage::stands) {
            Some(outage) => first = first.or(Some(outage)),
            None => return Ok(None),
        }
    }
    Ok(first)
}

/// Returns the outage if `build` stands still for it.
fn holding<'a>(build: &Build, outage: Option<&'a Outage>) -> Option<&'a Outage> {
    let waits = match build.state {
        BuildState::Running => true,
        BuildState::Paused => build.pause_reason == Some(PauseReason::Outage),
        _ => false,
    };
    outage.filter(|_| waits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A build that was quoted `low` to `high` tokens, if at all, and has used `used`.
    fn build(quote: Option<(u64, u64)>, used: u64) -> BuildView {
        let quote =
            quote.map(|(low, high)| json!({ "tokens_low": low, "tokens_high": high, "basis": "" }));
        let id = "01970000-0000-7000-8000-000000000001";
        let build: Build = serde_json::from_value(json!({
            "id": id, "spec": id, "revision": 1, "hash": ropewalk_schemas::ContentHash::of(b"new"),
            "idea": "walks", "user": "ada", "state": "succeeded", "pause_requested": false,
            "branch": "build/walks", "target": "main", "priority": 5, "working_ms": 0,
            "correlation_id": id, "created_at": "2026-03-01T08:00:00Z", "quote": quote,
        }))
        .unwrap();
        BuildView {
            build,
            tasks: Vec::new(),
            timeline: Vec::new(),
            spending: Spending {
                tokens: used,
                ..Spending::default()
            },
            requirements: Vec::new(),
            reviewed: ReviewStanding::Missing,
            objections: Vec::new(),
            owns: Vec::new(),
            holders: Vec::new(),
            outage: None,
            wish: None,
            whole: Vec::new(),
        }
    }

    #[test]
    fn what_counts_as_begun_anew_is_another_conversation_after_a_failure() {
        use AttemptState::{Failed, Interrupted, Landed, Working};
        let rows: [(&[(u32, AttemptState)], usize); 7] = [
            (&[], 0),
            (&[(1, Working)], 0),
            // The conversation goes on: after a crash, or once the network is back.
            (&[(1, Interrupted), (1, Failed), (1, Landed)], 0),
            (&[(1, Failed), (2, Landed)], 1),
            (
                &[(1, Failed), (4, Interrupted), (4, Failed), (6, Working)],
                2,
            ),
            // Somebody ended it, which is no failure.
            (&[(1, Interrupted), (2, Landed)], 0),
            (&[(0, Failed), (0, Landed)], 1),
        ];
        for (attempts, expected) in rows {
            let mut view = build(None, 0);
            let tried = attempts.iter().map(|(round, state)| AttemptView {
                task: TaskId::parse("T-1").unwrap(),
                number: 1,
                round: *round,
                loop_name: ComponentName::parse("loop-1").unwrap(),
                state: *state,
                tokens: 0,
                started_at: DateTime::UNIX_EPOCH,
                ended_at: None,
            });
            view.timeline = tried.collect();
            let found = view.restarts(&TaskId::parse("T-1").unwrap());
            assert_eq!(found, expected, "{attempts:?}");
            assert_eq!(view.restarts(&TaskId::parse("T-2").unwrap()), 0);
        }
    }

    #[test]
    fn only_what_was_used_beyond_what_was_quoted_is_told() {
        for (quote, used, told) in [
            (None, 7, None),
            (Some((1_000, 2_000)), 0, None),
            (Some((1_000, 2_000)), 999, None),
            (Some((1_000, 2_000)), 1_000, None),
            (Some((1_000, 2_000)), 2_000, None),
            (
                Some((1_000, 2_000)),
                2_001,
                Some("less than 1 % more than was quoted at most"),
            ),
            (
                Some((1_000, 2_000)),
                2_500,
                Some("25 % more than was quoted at most"),
            ),
            (
                Some((1_000, 2_000)),
                6_000,
                Some("200 % more than was quoted at most"),
            ),
            (Some((0, 0)), 0, None),
            (Some((0, 0)), 3, Some("300 % more than was quoted at most")),
            (
                Some((1, 1)),
                u64::MAX,
                Some("1844674407370955161400 % more than was quoted at most"),
            ),
        ] {
            let view = build(quote, used);
            assert_eq!(view.against_quote().as_deref(), told, "{quote:?} {used}");
        }
    }
}
