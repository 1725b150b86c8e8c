//! A day is summed up once, for those who want it, with the counts of the store.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_config::settings::TimeOfDay;
use ropewalk_orchestrator::notices::Listener;
use ropewalk_runtime::Clock;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    BuildId, ContentHash, CorrelationId, Priority, RepoPath, Slug, SpecId, Subject, TaskId,
    UserSlug,
};
use ropewalk_store::{ChangeSet, Query};

use super::paper::{Paper, SentNotice, world_of};
use super::{ask, begun, build, completed, landed, tell};
use crate::questions::{asking, open as open_question};
use crate::world::{FrameWorld, noon};

fn person(name: &str, summary: bool) -> anyhow::Result<Listener> {
    Ok(Listener {
        name: UserSlug::parse(name)?,
        roles: [].into(),
        rights: [].into(),
        summary,
    })
}

async fn world(
    directory: &Path,
    clock: &Clock,
    paper: &Paper,
    at: Option<&str>,
) -> anyhow::Result<FrameWorld> {
    let people = vec![person("ada", true)?, person("bob", false)?];
    let at = at
        .map(|at| TimeOfDay::try_from(at.to_owned()))
        .transpose()?;
    world_of(directory, clock, paper, people, at).await
}

/// Waits until so many summaries are told, and returns them.
async fn summaries(
    world: &FrameWorld,
    paper: &Paper,
    count: usize,
) -> anyhow::Result<Vec<SentNotice>> {
    let told = || {
        let all = paper.all().into_iter();
        let told: Vec<SentNotice> = all
            .filter(|said| said.title.starts_with("Summary since "))
            .collect();
        told
    };
    paper.until(world, || told().len() >= count).await?;
    Ok(told())
}

/// Lets what is told besides be told, up to a little before the next summary.
async fn pass_until(world: &FrameWorld, moment: DateTime<Utc>) -> anyhow::Result<()> {
    world.settle().await?;
    world.pass_until(moment - TimeDelta::minutes(1)).await;
    world.settle().await
}

async fn paid(world: &FrameWorld, key: &str, micro_usd: Option<u64>) -> anyhow::Result<()> {
    let mut changes = ChangeSet::new();
    changes.insert(&ModelCall {
        key: key.to_owned(),
        role: "build".to_owned(),
        model: "m".to_owned(),
        provider: None,
        idea: None,
        build: None,
        task: None,
        reply: serde_json::Value::Null,
        compaction: None,
        asked: None,
        refusal: None,
        refusal_kind: None,
        input_tokens: 1_000,
        output_tokens: 234,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        duration_ms: None,
        traceparent: None,
        micro_usd,
        at: world.clock.now(),
    });
    world.services.store.commit(changes).await?;
    Ok(())
}

#[tokio::test]
async fn a_day_is_summed_up_once_for_who_wants_it_also_over_a_restart() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada", "bob"]);
    let first = world(directory.path(), &clock, &paper, Some("13:00")).await?;
    let build = build(&first);
    begun(&first, build, "walks").await?;
    for task in ["T-001", "T-002"] {
        landed(&first, build, task).await?;
    }
    let ended = completed(&first, build)?;
    tell(&first, Subject::build(build), ended).await?;
    paid(&first, "one", Some(1_500_000)).await?;
    paid(&first, "two", None).await?;
    pass_until(&first, noon() + TimeDelta::hours(1)).await?;
    assert_eq!(summaries(&first, &paper, 0).await?, [], "not yet");
    let told = summaries(&first, &paper, 1).await?;
    assert_eq!(told[0].title, "Summary since 2026-11-20 13:00 UTC");
    assert_eq!(
        told[0].body,
        "Builds: 1 begun, 1 stopped.\nTasks: 2 complete.\n\n\
         Models: 2 calls, 2468 tokens, at least $1.50."
    );
    first.close().await?;

    // Nothing runs when the next is due; it is told once, of what happened since and of nothing else.
    clock.advance(Duration::from_hours(30));
    for _ in 0..2 {
        let again = world(directory.path(), &clock, &paper, Some("13:00")).await?;
        let told = summaries(&again, &paper, 2).await?;
        again.pass(Duration::from_hours(1)).await;
        again.settle().await?;
        assert_eq!(told[1].title, "Summary since 2026-11-21 13:00 UTC");
        assert_eq!(told[1].body, "Nothing happened.");
        assert_eq!(summaries(&again, &paper, 2).await?.len(), 2);
        again.close().await?;
    }
    assert!(summaries_to(&paper, "bob").is_empty());
    Ok(())
}

fn summaries_to(paper: &Paper, name: &str) -> Vec<SentNotice> {
    let all = paper.all().into_iter();
    all.filter(|said| said.to == name && said.title.starts_with("Summary since "))
        .collect()
}

#[tokio::test]
async fn a_summary_says_what_stands_and_waits_for_the_end_of_quiet_hours() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + TimeDelta::hours(10) - TimeDelta::minutes(30));
    let paper = Paper::new(&["ada", "bob"]);
    let world = world(directory.path(), &clock, &paper, Some("22:30")).await?;
    underway(&world).await?;
    ask(&world).await?;
    let mut other = asking(QuestionKind::Blocking, false);
    other.text = "Another?".to_owned();
    open_question(&world, other).await?;
    world.pass(Duration::from_hours(2)).await;
    world.settle().await?;
    assert_eq!(summaries(&world, &paper, 0).await?, [], "nobody is woken");
    world.pass_until(noon() + TimeDelta::hours(19)).await;
    let told = summaries(&world, &paper, 1).await?;
    assert_eq!(
        told[0].body,
        "Questions: 2 asked.\n\nUnderway: `walks` is running, 1 of 3 tasks complete.\n\
         No activity for 7 days: T-002 of `walks`.\nOpen: 2 questions."
    );
    world.close().await
}

/// Lays a build of three tasks: one has landed, one nobody touched for long, one moved a day ago.
async fn underway(world: &FrameWorld) -> anyhow::Result<()> {
    let now = world.clock.now();
    let approval = SpecApproved {
        spec_id: SpecId(world.services.ids.next()),
        idea_slug: Slug::parse("walks")?,
        user_slug: UserSlug::parse("ada")?,
        revision: 1,
        hash: ContentHash::of(b"spec"),
        approved_by: UserSlug::parse("ada")?,
        priority: Priority::DEFAULT,
        price: None,
    };
    let id = BuildId(world.services.ids.next());
    let chain = CorrelationId(world.services.ids.next());
    let mut changes = ChangeSet::new();
    changes.insert(&Build {
        state: BuildState::Running,
        ..Build::queued(id, &approval, chain, now - TimeDelta::days(8))
    });
    for (number, state, moved) in [
        (1, TaskState::Complete, None),
        (2, TaskState::Ready, None),
        (3, TaskState::Working, Some(now - TimeDelta::days(1))),
    ] {
        let block = TaskBlock::new(
            TaskId::parse(&format!("T-00{number}"))?,
            "api",
            Action::Create,
            RepoPath::parse(&format!("src/{number}.rs"))?,
            Validation::passes("true"),
        );
        changes.insert(&Task {
            state,
            progress_at: moved,
            ..Task::planned(id, number, block)
        });
    }
    world.services.store.commit(changes).await?;
    Ok(())
}

#[tokio::test]
async fn a_summary_that_is_switched_off_comes_due_no_more() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada", "bob"]);
    let on = world(directory.path(), &clock, &paper, Some("13:00")).await?;
    assert_eq!(timers(&on).await?, 1);
    on.close().await?;
    let off = world(directory.path(), &clock, &paper, None).await?;
    off.pass_until(noon() + TimeDelta::hours(2)).await;
    off.settle().await?;
    assert_eq!(timers(&off).await?, 0);
    assert_eq!(paper.count(), 0);
    off.close().await
}

async fn timers(world: &FrameWorld) -> anyhow::Result<u64> {
    let timers = Query::new().equal("name", "notices.summary");
    Ok(world.services.store.count::<Timer>(timers).await?)
}
