//! People are told once what they have to know, and no longer asked what is answered.

mod conversations;
mod dying;
mod giving_up;
mod halves;
mod overtaken;
mod paper;
mod summaries;
mod webhooks;

use std::time::Duration;

use ropewalk_orchestrator::questions;
use ropewalk_runtime::Clock;
use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::{BuildState, TaskCounts};
use ropewalk_schemas::notice::NoticeState;
use ropewalk_schemas::payload::{
    AlertEscalated, BuildCompleted, BuildStarted, ComponentDown, DeadlockDetected, LockExtended,
    ReviewCompleted, StuckTask, TaskCompleted, TaskFailed, WorkAssigned,
};
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::review::ReviewKind;
use ropewalk_schemas::{
    AttemptId, BuildId, ComponentName, Payload, QuestionId, RepoPath, ReviewId, Slug, SpecId,
    Subject, TaskId,
};
use ropewalk_store::ChangeSet;

use crate::questions::{asking, open};
use crate::world::{FrameWorld, noon};
use paper::{Paper, SentNotice, at_noon, rows, world};

/// Asks something about code that holds work up.
async fn ask(world: &FrameWorld) -> anyhow::Result<QuestionId> {
    let mut asking = asking(QuestionKind::Blocking, false);
    "missing_context".clone_into(&mut asking.trigger);
    open(world, asking).await
}

fn build(world: &FrameWorld) -> BuildId {
    BuildId(world.services.ids.next())
}

async fn tell(world: &FrameWorld, subject: Subject, payload: Payload) -> anyhow::Result<()> {
    let context = world.context("build")?;
    let mut changes = ChangeSet::new();
    changes.emit(context.event(subject, payload));
    world.services.store.commit(changes).await?;
    Ok(())
}

async fn begun(world: &FrameWorld, build: BuildId, idea: &str) -> anyhow::Result<()> {
    let payload = Payload::BuildStarted(BuildStarted {
        build_id: build,
        spec_id: SpecId(world.services.ids.next()),
        idea_slug: Slug::parse(idea)?,
        task_count: 3,
        branch: format!("build/{idea}"),
    });
    tell(world, Subject::build(build), payload).await
}

async fn landed(world: &FrameWorld, build: BuildId, task: &str) -> anyhow::Result<()> {
    landed_of(world, build, task, TaskCounts::default()).await
}

/// Tells that a task landed, which left the tasks of its build so.
async fn landed_of(
    world: &FrameWorld,
    build: BuildId,
    task: &str,
    counts: TaskCounts,
) -> anyhow::Result<()> {
    let task = TaskId::parse(task)?;
    let payload = Payload::TaskCompleted(TaskCompleted {
        build_id: build,
        task_id: task.clone(),
        idea_slug: Slug::parse("walks")?,
        attempts: 1,
        duration_seconds: 3,
        commit_sha: None,
        unblocked: Vec::new(),
        counts,
    });
    tell(world, Subject::task(build, &task), payload).await
}

#[tokio::test]
async fn a_port_that_is_switched_on_tells_nothing_of_what_was_before() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let before = FrameWorld::open(directory.path(), clock.clone(), Vec::new()).await?;
    let old = ask(&before).await?;
    begun(&before, build(&before), "old").await?;
    before.close().await?;
    clock.advance(Duration::from_mins(1));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let new = open(&world, asking(QuestionKind::Blocking, false)).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].question, Some(new));
    world.settle().await?;
    assert_eq!(paper.count(), 1, "nothing of {old}");
    world.close().await
}

#[tokio::test]
async fn a_question_of_code_reaches_the_technical_person_and_everybody_when_time_is_over()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada", "bob"]);
    let people: [(&str, &[Role]); 2] = [("ada", &[Role::Product]), ("bob", &[Role::Technical])];
    let world = world(directory.path(), &clock, &paper, &people).await?;
    let id = ask(&world).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!((said[0].to.as_str(), said[0].question), ("bob", Some(id)));
    world.pass_until(noon() + Duration::from_mins(59)).await;
    assert_eq!(paper.to("ada"), 0, "it is not her turn yet");
    world.pass(Duration::from_mins(2)).await;
    paper.until(&world, || paper.to("ada") >= 1).await?;
    // Bob is reminded for the second time about then, and she has only just been asked.
    world.pass_until(noon() + Duration::from_mins(65)).await;
    paper.until(&world, || paper.to("bob") >= 3).await?;
    world.settle().await?;
    assert_eq!((paper.to("ada"), paper.to("bob")), (1, 3));
    world.close().await
}

#[tokio::test]
async fn an_answer_anywhere_mends_what_everybody_was_asked() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[]), ("bob", &[])]).await?;
    let id = ask(&world).await?;
    let said = paper.said(&world, 2).await?;
    assert_ne!(
        said[0].nonce, said[1].nonce,
        "each has a nonce of their own"
    );
    questions::answer(&world.context("cli")?, id, "no", "ada", "cli").await?;
    paper.until(&world, || paper.edits().len() == 2).await?;
    for (_, title) in paper.edits() {
        assert_eq!(title, "Answered by ada over cli: No");
    }
    // Nobody is reminded of it any more.
    world.pass(Duration::from_hours(2)).await;
    world.settle().await?;
    assert_eq!((paper.count(), paper.edits().len()), (2, 2));
    world.close().await
}

#[tokio::test]
async fn who_does_not_answer_is_reminded_with_the_same_nonce() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    ask(&world).await?;
    paper.said(&world, 1).await?;
    world.pass(Duration::from_mins(31)).await;
    let said = paper.said(&world, 2).await?;
    assert_eq!(said[0].nonce, said[1].nonce);
    assert_eq!(said[1].title, "Still waiting for an answer");
    world.close().await
}

#[tokio::test]
async fn after_an_outage_everything_arrives_once_but_what_no_longer_matters() -> anyhow::Result<()>
{
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    paper.away(true);
    let answered = ask(&world).await?;
    paper.until(&world, || paper.tries() > 0).await?;
    world.pass(Duration::from_mins(20)).await;
    let mut later = asking(QuestionKind::Blocking, false);
    later.text = "Another?".to_owned();
    let stands = open(&world, later).await?;
    questions::answer(&world.context("cli")?, answered, "no", "ada", "cli").await?;
    world.pass(Duration::from_mins(10)).await;
    assert_eq!(paper.count(), 0);
    paper.away(false);
    world.pass(Duration::from_mins(6)).await;
    let said = paper.said(&world, 1).await?;
    world.settle().await?;
    assert_eq!(said[0].question, Some(stands));
    assert_eq!(paper.to("ada"), 1, "once, and nothing of what is answered");
    let states: Vec<NoticeState> = rows(&world).await?.iter().map(|row| row.state).collect();
    assert!(states.contains(&NoticeState::Over), "{states:?}");
    world.close().await
}

#[tokio::test]
async fn a_port_that_asks_to_wait_is_left_alone_whatever_else_there_is_to_tell()
-> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    paper.waits(Some(Duration::from_mins(10)));
    ask(&world).await?;
    paper.until(&world, || paper.tries() > 0).await?;
    paper.waits(None);
    for text in ["Another?", "And another?"] {
        let mut later = asking(QuestionKind::Blocking, false);
        later.text = text.to_owned();
        open(&world, later).await?;
        world.settle().await?;
        world.pass(Duration::from_mins(1)).await;
    }
    assert_eq!((paper.tries(), paper.count()), (1, 0));
    world.pass(Duration::from_mins(10)).await;
    paper.said(&world, 3).await?;
    world.settle().await?;
    assert_eq!((paper.tries(), paper.count()), (4, 3));
    world.close().await
}

#[tokio::test]
async fn an_hour_of_outage_changes_nothing_and_everything_is_told_once_after_it()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada", "bob"]);
    let people: [(&str, &[Role]); 2] = [("ada", &[]), ("bob", &[])];
    let world = world(directory.path(), &clock, &paper, &people).await?;
    let mended = ask(&world).await?;
    paper.said(&world, 2).await?;
    paper.away(true);
    let mut texts = Vec::new();
    for number in 0..6 {
        let mut asking = asking(QuestionKind::Blocking, false);
        asking.text = format!("Question {number}?");
        texts.push(open(&world, asking).await?);
        landed(&world, build(&world), &format!("T-00{number}")).await?;
        world.pass(Duration::from_mins(10)).await;
    }
    // An answer elsewhere counts, and is no news to whoever was never asked.
    for answered in [mended, texts[0]] {
        questions::answer(&world.context("cli")?, answered, "no", "ada", "cli").await?;
    }
    world.settle().await?;
    assert_eq!(paper.count(), 2);
    paper.away(false);
    // The longest pause is over, and nobody is reminded yet of what was asked in the meantime.
    world.pass(Duration::from_mins(6)).await;
    let landings = |number: u32| {
        let landings = paper.all().into_iter();
        let told: String = landings
            .filter(|said| said.question.is_none())
            .map(|said| said.title + &said.body)
            .collect();
        told.matches(&format!("Task T-00{number} of")).count()
    };
    paper
        .until_rows(&world, |rows| rows.iter().all(|row| !row.is_open()))
        .await?;
    let of = |name: &str| -> Vec<QuestionId> {
        let said = paper.all().into_iter().filter(|said| said.to == name);
        let mut asked: Vec<_> = said.filter_map(|said| said.question).skip(1).collect();
        asked.sort();
        asked
    };
    assert_eq!(of("ada"), texts[1..]);
    assert_eq!(of("bob"), texts[1..]);
    for number in 0..6 {
        assert_eq!(landings(number), 2, "T-00{number}");
    }
    assert_eq!(paper.edits().len(), 2, "what was asked before is mended");
    world.close().await
}

#[tokio::test]
async fn what_holds_nothing_up_is_gathered_and_waits_for_the_end_of_quiet_hours()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + chrono::TimeDelta::hours(11));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let build = build(&world);
    begun(&world, build, "walks").await?;
    for task in ["T-001", "T-002", "T-003"] {
        landed(&world, build, task).await?;
    }
    let blocking = ask(&world).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].question, Some(blocking), "at eleven at night");
    questions::answer(&world.context("cli")?, blocking, "no", "ada", "cli").await?;
    world.pass(Duration::from_hours(7)).await;
    assert_eq!(paper.count(), 1, "nobody is woken");
    world.pass(Duration::from_hours(2)).await;
    let said: Vec<SentNotice> = paper.said(&world, 2).await?;
    assert_eq!(said[1].title, "4 things happened");
    for part in ["The build of `walks` began", "T-001", "T-002", "T-003"] {
        assert!(said[1].body.contains(part), "{part} in {}", said[1].body);
    }
    world.close().await
}

#[tokio::test]
async fn an_alert_says_how_bad_it_is_and_only_what_stops_work_is_told_at_night()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + chrono::TimeDelta::hours(11));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let component = ComponentName::parse("loop-1-2")?;
    let down = ComponentDown {
        component: component.clone(),
        silent_seconds: 90,
        severity: Some(Severity::Error),
    };
    let subject = Subject::component(&component);
    tell(&world, subject, Payload::ComponentDown(down)).await?;
    let deadlock = DeadlockDetected {
        cycle: vec!["one".to_owned(), "two".to_owned()],
        victim: None,
        resolved: false,
        severity: Some(Severity::Critical),
    };
    let build = build(&world);
    let payload = Payload::DeadlockDetected(deadlock);
    tell(&world, Subject::build(build), payload).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].title, "Critical: Tasks wait for each other");
    world.pass(Duration::from_hours(7)).await;
    assert_eq!(paper.count(), 1, "nobody is woken for a component");
    world.pass(Duration::from_hours(2)).await;
    let said = paper.said(&world, 2).await?;
    assert_eq!(said[1].title, "Error: `loop-1-2` gives no sign of life");
    world.close().await
}

#[tokio::test]
async fn an_alert_that_grows_worse_is_told_once_more_and_at_night_where_work_stands_still()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + chrono::TimeDelta::hours(9));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let (build, task) = (build(&world), TaskId::parse("T-001")?);
    let subject = Subject::task(build, &task);
    let stuck = Payload::StuckTask(StuckTask {
        build_id: build,
        task_id: task,
        attempt_id: AttemptId(world.services.ids.next()),
        loop_name: ComponentName::parse("loop-1-1")?,
        idle_minutes: 11,
        severity: Some(Severity::Warning),
    });
    let worse = |severity| {
        Payload::StuckTaskEscalated(AlertEscalated {
            cause: "stuck".to_owned(),
            message: "task `T-001` has made no progress".to_owned(),
            severity,
        })
    };
    tell(&world, subject.clone(), stuck).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].title, "Task T-001 makes no progress");
    world.pass(Duration::from_hours(2)).await;
    tell(&world, subject.clone(), worse(Severity::Error)).await?;
    world.settle().await?;
    assert_eq!(paper.count(), 1, "nobody is woken for an error");
    tell(&world, subject, worse(Severity::Critical)).await?;
    let said = paper.said(&world, 2).await?;
    let told = "Critical: task `T-001` has made no progress";
    assert_eq!(said[1].title, told);
    world.pass(Duration::from_hours(9)).await;
    world.settle().await?;
    assert_eq!(paper.count(), 2, "what was so before is not told any more");
    world.close().await
}

#[tokio::test]
async fn who_gets_work_or_files_beyond_the_plan_is_told_with_the_reason() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    let task = TaskId::parse("T-001")?;
    let given = WorkAssigned {
        build_id: build(&world),
        task_id: task.clone(),
        from: Some(ComponentName::parse("loop-1-2")?),
        to: ComponentName::parse("loop-1-1")?,
        reason: Some("`loop-1-2` gives no sign of life".to_owned()),
    };
    let subject = Subject::task(given.build_id, &task);
    let got = |file: &str| {
        anyhow::Ok(Payload::LockExtended(LockExtended {
            build_id: given.build_id,
            task_id: task.clone(),
            attempt_id: AttemptId(world.services.ids.next()),
            files: vec![RepoPath::parse(file)?],
            reason: format!("{file} is called from there"),
        }))
    };
    let (one, other) = (got("one.rs")?, got("two.rs")?);
    tell(&world, subject.clone(), Payload::WorkAssigned(given)).await?;
    world.pass(Duration::from_mins(6)).await;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].title, "Task T-001 goes to `loop-1-1`");
    assert_eq!(said[0].body, "`loop-1-2` gives no sign of life");
    for got in [one, other] {
        tell(&world, subject.clone(), got).await?;
    }
    world.pass(Duration::from_mins(6)).await;
    let said = paper.said(&world, 2).await?;
    assert_eq!(said[1].title, "2 things happened");
    for part in [
        "asked for `one.rs` and got it",
        "two.rs is called from there",
    ] {
        assert!(said[1].body.contains(part), "{part} in {}", said[1].body);
    }
    world.close().await
}

#[tokio::test]
async fn a_start_a_landing_and_a_failure_are_told_with_what_they_mean() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    let build = build(&world);
    begun(&world, build, "walks").await?;
    world.pass(Duration::from_mins(6)).await;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].title, "The build of `walks` began");
    assert_eq!(said[0].body, "3 tasks on build/walks.");
    landed(&world, build, "T-001").await?;
    world.pass(Duration::from_mins(6)).await;
    let said = paper.said(&world, 2).await?;
    assert_eq!(said[1].title, "Task T-001 of `walks` is complete");
    let task = TaskId::parse("T-002")?;
    let failed = |will_retry, error: &str| TaskFailed {
        build_id: build,
        task_id: task.clone(),
        idea_slug: Slug::parse("walks").unwrap_or_else(|_| unreachable!("a slug")),
        attempt: 3,
        category: FailureClass::ValidationFailed,
        error: error.to_owned(),
        will_retry,
        blocked: 1,
        continuing: 2,
        recommended: Some("give guidance".to_owned()),
    };
    let subject = Subject::task(build, &task);
    let again = Payload::TaskFailed(failed(true, "it fails"));
    tell(&world, subject.clone(), again).await?;
    let for_good = Payload::TaskFailed(failed(false, "the list is empty"));
    tell(&world, subject, for_good).await?;
    let said = paper.said(&world, 3).await?;
    assert_eq!(said[2].title, "Task T-002 of `walks` failed");
    let told = "the list is empty\n\n1 blocked by it, 2 go on without it.";
    assert_eq!(said[2].body, told);
    world.settle().await?;
    assert_eq!(paper.count(), 3, "nobody hears of what is tried again");
    world.close().await
}

#[tokio::test]
async fn the_newest_state_of_a_matter_is_told_and_what_was_so_before_is_not() -> anyhow::Result<()>
{
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    let build = build(&world);
    begun(&world, build, "walks").await?;
    let payload = completed(&world, build)?;
    tell(&world, Subject::build(build), payload).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].title, "The build of `walks` is stopped");
    let counts = "3 completed, 1 failed, 1 blocked of 5 tasks.";
    assert!(said[0].body.contains(counts), "{}", said[0].body);
    world.pass(Duration::from_mins(10)).await;
    world.settle().await?;
    assert_eq!(paper.count(), 1);
    world.close().await
}

fn completed(world: &FrameWorld, build: BuildId) -> anyhow::Result<Payload> {
    Ok(Payload::BuildCompleted(BuildCompleted {
        build_id: build,
        spec_id: SpecId(world.services.ids.next()),
        idea_slug: Slug::parse("walks")?,
        status: BuildState::Stopped,
        reason: None,
        counts: TaskCounts {
            total: 5,
            complete: 3,
            failed: 1,
            blocked: 1,
            ..TaskCounts::default()
        },
        duration_seconds: 61,
        quote: None,
        spent: None,
        branch: "build/walks".to_owned(),
        commits: Vec::new(),
    }))
}

#[tokio::test]
async fn that_a_build_was_reviewed_does_not_stand_for_how_it_ended() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    // Both are known before anybody is told of either.
    let clock = Clock::manual(noon() + chrono::TimeDelta::hours(11));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let build = build(&world);
    begun(&world, build, "walks").await?;
    let ended = completed(&world, build)?;
    tell(&world, Subject::build(build), ended).await?;
    // One that found and changed nothing is told to nobody, and takes no place.
    let nothing = ReviewCompleted {
        review_id: ReviewId(world.services.ids.next()),
        kind: ReviewKind::Build,
        idea_slug: Slug::parse("walks")?,
        patterns_found: 0,
        gotchas_found: 0,
        improvements_made: 0,
        requirements_missed: 0,
        deviations: 0,
    };
    let reviewed = Payload::ReviewCompleted(ReviewCompleted {
        patterns_found: 1,
        improvements_made: 1,
        requirements_missed: 2,
        deviations: 1,
        ..nothing.clone()
    });
    let nothing = Payload::ReviewCompleted(nothing);
    for payload in [reviewed, nothing] {
        tell(&world, Subject::build(build), payload).await?;
    }
    world.settle().await?;
    world.pass(Duration::from_hours(9)).await;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].title, "2 things happened");
    for part in [
        "The build of `walks` is stopped",
        "`walks` was reviewed",
        "holds 2 requirements for missed",
        "read it with `ropewalk review show ",
    ] {
        assert!(said[0].body.contains(part), "{part} in {}", said[0].body);
    }
    world.close().await
}
