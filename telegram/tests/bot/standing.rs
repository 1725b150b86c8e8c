//! A phone is told why what does not run does not, and of whom nothing is heard.

use chrono::TimeDelta;
use ropewalk_runtime::Clock;
use ropewalk_schemas::agent::{AgentState, Component};
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::{BuildId, ComponentName, QuestionId, RepoPath, TaskId};
use ropewalk_store::ChangeSet;

use crate::building::{built, built_on, told};
use crate::phones::Phones;
use crate::world::{ADA, BotWorld};

/// Adds a task to a build, as it stands.
fn task(build: BuildId, number: u32, state: TaskState) -> anyhow::Result<Task> {
    let id = TaskId::parse(&format!("T-{number:03}"))?;
    let file = RepoPath::parse(&format!("src/{number}.rs"))?;
    let block = TaskBlock::new(id, "api", Action::Create, file, Validation::passes("true"));
    Ok(Task {
        state,
        ..Task::planned(build, number, block)
    })
}

fn waiting(task: Task, question: QuestionId) -> Task {
    Task {
        question: Some(question),
        ..task
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_that_does_not_run_says_why_with_its_question() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    // It has one that landed, and one that failed.
    let build = built(&world, "walks", "running").await?;
    let question = world.ask("missing_context", "Which way?").await?;
    let because = |number, state, reason: &str| -> anyhow::Result<Task> {
        Ok(Task {
            reason: Some(reason.to_owned()),
            ..task(build, number, state)?
        })
    };
    let mut changes = ChangeSet::new();
    for task in [
        task(build, 3, TaskState::Working)?,
        waiting(task(build, 4, TaskState::Waiting)?, question),
        because(5, TaskState::Blocked, "needs `T-002`, which failed")?,
        because(6, TaskState::Pending, "waits for `T-004`")?,
        because(7, TaskState::Skipped, "nobody wants it")?,
    ] {
        changes.insert(&task);
    }
    world.services.store.commit(changes).await?;
    phones.message(ADA, "Which way?").await?;
    let status = told(&phones, ADA, "/status").await?.text;
    let expected = "walks: running, 1 of 7 tasks complete\n\
         • T-003 is worked on (working)\n\
         • T-002 is failed\n\
         • T-004 is waiting: waits for an answer: Which way?\n\
         • T-005 is blocked: needs T-002, which failed\n\
         • T-006 is pending: waits for T-004\n\
         1 question is open; /questions puts it again.";
    assert_eq!(status, expected);

    // A build of many tasks still fits on a phone.
    let mut changes = ChangeSet::new();
    for number in 8..=20 {
        changes.insert(&because(number, TaskState::Ready, "waits for a free loop")?);
    }
    world.services.store.commit(changes).await?;
    let status = told(&phones, ADA, "/status").await?.text;
    let tasks = status.lines().filter(|line| line.starts_with("• T-"));
    assert_eq!(tasks.count(), 8, "{status}");
    assert!(status.contains("\n• 10 more tasks\n"), "{status}");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_builds_of_an_idea_are_told_apart_and_nothing_is_told_twice_or_by_an_id()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let first = built(&world, "walks", "running").await?;
    let second = built_on(&world, "walks", "running", "build/walks-2").await?;
    let asked = world.ask("missing_context", "It is red, what now?").await?;
    let with = |task: Task, reason: &str| Task {
        reason: Some(reason.to_owned()),
        ..task
    };
    let failed = with(
        waiting(task(second, 3, TaskState::Failed)?, asked),
        "failed (its check failed): it is red",
    );
    let owned = format!("waits for `a.rs`, which build {first} owns");
    let mut changes = ChangeSet::new();
    changes.insert(&failed);
    changes.insert(&with(task(second, 4, TaskState::Waiting)?, &owned));
    world.services.store.commit(changes).await?;
    phones.message(ADA, "what now?").await?;
    let status = told(&phones, ADA, "/status").await?.text;
    let expected = "walks on build/walks: running, 1 of 2 tasks complete\n\
         • T-002 is failed\n\
         walks on build/walks-2: running, 1 of 4 tasks complete\n\
         • T-002 is failed\n\
         • T-003 is failed (its check failed): it is red; /questions asks about it\n\
         • T-004 is waiting: waits for a.rs, which build/walks owns\n\
         1 question is open; /questions puts it again.";
    assert_eq!(status, expected);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_says_when_it_was_seen_last_and_whether_it_is_silent() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let noon = "2026-03-01T12:00:00Z".parse()?;
    let clock = Clock::manual(noon);
    let world = BotWorld::open_at(directory.path(), &phones.server, &clock).await?;
    let mut changes = ChangeSet::new();
    for (name, minutes, stopped) in [
        ("loop-1", 1, false),
        ("loop-2", 2, false),
        ("loop-3", 2, true),
        ("loop-4", 24 * 60, false),
    ] {
        let seen = noon - TimeDelta::minutes(minutes);
        changes.put(&Component {
            name: ComponentName::parse(name)?,
            role: "loop".to_owned(),
            process: "ropewalk-1".to_owned(),
            state: AgentState::Idle,
            working_on: None,
            since: seen,
            last_seen: seen,
            stopped,
        });
    }
    world.services.store.commit(changes).await?;
    let agents = told(&phones, ADA, "/agents").await?.text;
    for line in [
        "loop-1: idle since 11:59 UTC, last seen 11:59 UTC",
        "loop-2: silent since 11:58 UTC, last seen 11:58 UTC",
        "loop-3: stopped since 11:58 UTC, last seen 11:58 UTC",
        "loop-4: silent since 2026-02-28 12:00 UTC, last seen 2026-02-28 12:00 UTC",
    ] {
        assert!(agents.lines().any(|told| told == line), "{line}: {agents}");
    }
    world.close().await
}
