//! Whom something is told where those whom it concerns cannot be, and what becomes of what nobody can be told.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ropewalk_orchestrator::Agent;
use ropewalk_orchestrator::notices::asked_for;
use ropewalk_orchestrator::questions::{self, Deadlines, QuestionService};
use ropewalk_runtime::Clock;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::notice::NoticeState;
use ropewalk_schemas::payload::{
    BuildRequest, HaltBegun, PhoneLinked, SpecRevisionRefused, TaskFailed,
};
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::{Question, QuestionKind};
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    ContentHash, EventPattern, Payload, QuestionId, RepoPath, Slug, SpecId, Subject, TaskId,
    UserSlug,
};
use ropewalk_store::{ChangeSet, EventFilter, Query};
use serde_json::json;

use super::paper::{Paper, at_noon, listeners, notifier, rows, world};
use super::{ask, begun, build, completed, tell};
use crate::questions::{asking, open, reminded_at};
use crate::world::{FrameWorld, noon};

/// Ada decides what is built, bob how.
const PEOPLE: [(&str, &[Role]); 2] = [("ada", &[Role::Product]), ("bob", &[Role::Technical])];

#[tokio::test]
async fn a_question_of_whom_no_port_reaches_goes_to_everybody_whom_it_does() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &PEOPLE).await?;
    let id = ask(&world).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!((said[0].to.as_str(), said[0].question), ("ada", Some(id)));
    world.close().await
}

#[tokio::test]
async fn a_question_that_cannot_be_told_goes_to_everybody_by_every_port_at_once()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let (paper, slate) = (
        Paper::new(&["ada", "bob"]),
        Paper::named("slate", &["ada", "bob"]),
    );
    let agents: Vec<Arc<dyn Agent>> = vec![
        Arc::new(notifier(&paper, listeners(&PEOPLE)?, None)?),
        Arc::new(notifier(&slate, listeners(&PEOPLE)?, None)?),
        Arc::new(QuestionService::new(Deadlines::default())?),
    ];
    let world = FrameWorld::open(directory.path(), clock.clone(), agents).await?;
    paper.refuses(Some("bob"));
    ask(&world).await?;
    slate.until(&world, || slate.to("bob") == 1).await?;
    slate.until(&world, || slate.to("ada") == 1).await?;
    paper.until(&world, || paper.to("ada") == 1).await?;
    // Long before everybody would have been asked.
    assert!(clock.now() - noon() < chrono::TimeDelta::minutes(30));
    assert_eq!(paper.to("bob"), 0);
    world.close().await
}

#[tokio::test]
async fn what_waits_for_nobody_who_is_here_is_put_to_those_who_are() -> anyhow::Result<()> {
    // The first was told to somebody who left, the second to nobody.
    for reaches in [&["alone"][..], &[]] {
        let directory = tempfile::tempdir()?;
        let clock = Clock::manual(noon());
        let nobody = Paper::new(reaches);
        let before = world(directory.path(), &clock, &nobody, &[("alone", &[])]).await?;
        let id = ask(&before).await?;
        if !reaches.is_empty() {
            nobody.said(&before, 1).await?;
        }
        before.settle().await?;
        before.close().await?;
        clock.advance(Duration::from_mins(1));

        let paper = Paper::new(&["ada", "bob"]);
        let after = world(directory.path(), &clock, &paper, &PEOPLE).await?;
        let said = paper.said(&after, 1).await?;
        assert_eq!((said[0].to.as_str(), said[0].question), ("bob", Some(id)));
        after.close().await?;
    }
    Ok(())
}

/// Lets the paper reach somebody more, whose phone is linked.
async fn comes(world: &FrameWorld, paper: &Paper, name: &str) -> anyhow::Result<()> {
    paper.comes(name);
    let person = UserSlug::parse(name)?;
    let subject = Subject::phone(&person);
    tell(world, subject, Payload::PhoneLinked(PhoneLinked { person })).await
}

/// Asks another thing that holds work up.
async fn ask_another(world: &FrameWorld) -> anyhow::Result<QuestionId> {
    let mut other = asking(QuestionKind::Blocking, false);
    "Another?".clone_into(&mut other.text);
    open(world, other).await
}

/// Counts how often it was time to ask everybody.
async fn escalations(world: &FrameWorld) -> anyhow::Result<usize> {
    let due = EventFilter {
        pattern: Some(EventPattern::of("schedule.due")),
        limit: Some(1_000),
        ..EventFilter::default()
    };
    let due = world.services.store.events(&due).await?;
    let names = due.iter().map(|stored| &stored.event.data["name"]);
    Ok(names.filter(|name| **name == "notices.escalate").count())
}

#[tokio::test]
async fn a_question_that_reaches_nobody_waits_for_somebody_and_not_for_time_to_pass()
-> anyhow::Result<()> {
    let paper = Paper::new(&[]);
    let (_directory, world) = at_noon(&paper, &PEOPLE).await?;
    let id = ask(&world).await?;
    world.settle().await?;
    for hours in [2, 30, 40 * 24] {
        world.pass(Duration::from_hours(hours)).await;
        world.settle().await?;
        assert_eq!(escalations(&world).await?, 1, "after {hours} hours more");
    }
    let noted = rows(&world).await?;
    let [noted] = &noted[..] else {
        anyhow::bail!("not one: {noted:#?}");
    };
    assert_eq!((noted.question, noted.receiver.as_str()), (Some(id), ""));
    assert_eq!((noted.state, noted.is_open()), (NoticeState::Dead, false));
    comes(&world, &paper, "bob").await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!((said[0].to.as_str(), said[0].question), ("bob", Some(id)));
    // Long before another period is over.
    assert_eq!(escalations(&world).await?, 1);
    let told = rows(&world).await?;
    let to: Vec<&str> = told.iter().map(|row| row.receiver.as_str()).collect();
    assert_eq!(to, ["bob"], "it reaches somebody now");
    questions::answer(&world.context("cli")?, id, "no", "bob", "cli").await?;
    world.settle().await?;
    let left = Query::new().equal("name", "notices.escalate");
    assert_eq!(world.services.store.count::<Timer>(left).await?, 0);
    world.close().await
}

#[tokio::test]
async fn of_what_reached_nobody_and_is_closed_nothing_is_left_and_nothing_is_told()
-> anyhow::Result<()> {
    let paper = Paper::new(&[]);
    let (_directory, world) = at_noon(&paper, &PEOPLE).await?;
    let closed = ask(&world).await?;
    world.settle().await?;
    assert_eq!(rows(&world).await?.len(), 1);
    questions::answer(&world.context("cli")?, closed, "no", "bob", "cli").await?;
    world.settle().await?;
    assert_eq!(rows(&world).await?.len(), 0);
    let waiting = ask_another(&world).await?;
    world.settle().await?;
    comes(&world, &paper, "bob").await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!((said.len(), said[0].question), (1, Some(waiting)));
    world.close().await
}

#[tokio::test]
async fn of_what_somebody_asked_for_nobody_says_that_it_reaches_nobody() -> anyhow::Result<()> {
    // Whoever asks has seen that note, or asked in the moment in which it was written.
    for has_seen in [true, false] {
        let paper = Paper::new(&[]);
        let (_directory, world) = at_noon(&paper, &PEOPLE).await?;
        let id = ask(&world).await?;
        world.settle().await?;
        let noted = rows(&world).await?;
        assert_eq!(noted.len(), 1, "{noted:#?}");
        let store = &world.services.store;
        let question = store.get::<Question>(&id.to_string()).await?;
        let question = question.context("no question")?;
        let known = if has_seen { &noted[..] } else { &[] };
        let mut changes = ChangeSet::new();
        asked_for(
            &mut changes,
            known,
            ("paper", &question, "ada"),
            world.clock.now(),
        );
        store.commit(changes).await?;
        comes(&world, &paper, "ada").await?;
        paper.said(&world, 1).await?;
        world.settle().await?;
        let told = rows(&world).await?;
        let to: Vec<&str> = told.iter().map(|row| row.receiver.as_str()).collect();
        assert_eq!(to, ["ada"], "{has_seen}");
        world.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn who_cannot_be_told_is_shown_as_an_alert_until_somebody_can() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    paper.refuses(Some("ada"));
    ask(&world).await?;
    paper
        .until_rows(&world, |rows| {
            rows.iter().any(|row| row.state == NoticeState::Dead)
        })
        .await?;
    let alert = async || {
        let alert = world.services.store.get::<Alert>("notices/paper").await?;
        anyhow::Ok(alert.context("no alert")?.into_inner())
    };
    world
        .until("the alert", async || Ok(alert().await.ok()))
        .await?;
    assert_eq!(alert().await?.cleared_at, None);
    assert!(alert().await?.message.contains("blocked by the user"));
    paper.refuses(None);
    ask_another(&world).await?;
    paper.said(&world, 1).await?;
    world
        .until("the end of the alert", async || {
            Ok(alert().await?.cleared_at)
        })
        .await?;
    world.close().await
}

#[tokio::test]
async fn what_could_not_be_told_for_a_day_is_given_up() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    paper.away(true);
    begun(&world, build(&world), "walks").await?;
    world.settle().await?;
    world.pass(Duration::from_hours(1)).await;
    paper.until(&world, || paper.tries() > 0).await?;
    assert!(rows(&world).await?[0].is_open());
    world.pass(Duration::from_hours(24)).await;
    // Whoever tried shortly before the day was over tries again after an hour.
    world
        .until("the notice that is given up", || async {
            world.pass(Duration::from_hours(1)).await;
            Ok((rows(&world).await?[0].state == NoticeState::Dead).then_some(()))
        })
        .await?;
    let given_up = rows(&world).await?;
    let why = given_up[0].error.as_deref();
    assert_eq!(why, Some("it was not told for a day"));
    world.close().await
}

#[tokio::test]
async fn what_waits_behind_an_open_question_is_given_up_after_a_day_too() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    paper.away(true);
    let id = ask(&world).await?;
    begun(&world, build(&world), "walks").await?;
    world.settle().await?;
    world.pass(Duration::from_hours(24)).await;
    // The port is still away, and what holds work up is tried first.
    world
        .until("the notice that is given up", || async {
            world.pass(Duration::from_hours(1)).await;
            let rows = rows(&world).await?;
            let of_build = rows.iter().find(|row| row.question.is_none());
            Ok(of_build
                .filter(|row| row.state == NoticeState::Dead)
                .map(|_| ()))
        })
        .await?;
    let left = rows(&world).await?;
    let asked = left.iter().find(|row| row.question == Some(id));
    assert!(asked.is_some_and(|row| row.is_open()), "{left:#?}");
    assert!(world.clock.now() - noon() < chrono::TimeDelta::hours(30));
    paper.away(false);
    world
        .until("the question", || async {
            world.pass(Duration::from_mins(5)).await;
            // A reminder may follow within the same minutes.
            Ok((paper.to("ada") >= 1).then_some(()))
        })
        .await?;
    world.close().await
}

#[tokio::test]
async fn what_is_told_in_pieces_goes_on_behind_the_last_that_arrived() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada"]);
    let people: [(&str, &[Role]); 1] = [("ada", &[])];
    let first = world(directory.path(), &clock, &paper, &people).await?;
    paper.tells_in(3);
    paper.hangs(true);
    ask(&first).await?;
    paper.said(&first, 1).await?;
    first.abort().await?;

    // Nobody knows whether the first piece arrived before the death, nor after it.
    paper.hangs(false);
    paper.loses_one();
    let second = world(directory.path(), &clock, &paper, &people).await?;
    paper.said(&second, 2).await?;
    ask_another(&second).await?;
    paper.said(&second, 8).await?;
    paper
        .until_rows(&second, |rows| {
            rows.iter().all(|row| row.state == NoticeState::Sent)
        })
        .await?;
    let said = paper.all();
    let of = |question| -> Vec<u32> {
        let of_it = said.iter().filter(|said| said.question == question);
        of_it.map(|said| said.piece).collect()
    };
    assert_eq!(of(said[0].question), [0, 0, 0, 1, 2], "{said:#?}");
    let rows = rows(&second).await?;
    let repeats: Vec<u32> = rows.iter().map(|row| row.repeats).collect();
    assert_eq!(repeats.iter().sum::<u32>(), 2, "{rows:#?}");
    assert!(rows.iter().all(|row| row.pieces == 0));
    second.close().await
}

#[tokio::test]
async fn who_heard_of_a_question_late_is_not_reminded_within_minutes() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    paper.away(true);
    let id = ask(&world).await?;
    paper.until(&world, || paper.tries() > 0).await?;
    world.pass_until(noon() + Duration::from_mins(22)).await;
    paper.away(false);
    world
        .until("the question", || async {
            world.pass(Duration::from_mins(1)).await;
            world.settle().await?;
            Ok((paper.to("ada") == 1).then_some(()))
        })
        .await?;
    let told = world.clock.now();
    assert!(told < noon() + Duration::from_mins(30), "{told}");
    world.pass_until(noon() + Duration::from_mins(30)).await;
    // Who waits for it may have begun to wait only after the time had passed. Little passes for each look: ten minutes after ada heard of
    // it she would rightly be reminded.
    world
        .until("the reminder", || async {
            world.pass(Duration::from_millis(100)).await;
            reminded_at(&world, id).await
        })
        .await?;
    world.settle().await?;
    assert_eq!(paper.to("ada"), 1, "told at {told}");
    world.pass_until(noon() + Duration::from_mins(65)).await;
    paper.until(&world, || paper.to("ada") >= 2).await?;
    world.close().await
}

#[tokio::test]
async fn an_answer_that_nothing_follows_from_is_told_to_who_decides_what_is_built()
-> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let (_directory, world) = at_noon(&paper, &PEOPLE).await?;
    let spec = SpecId(world.services.ids.next());
    let payload = Payload::SpecRevisionRefused(SpecRevisionRefused {
        spec_id: spec,
        idea_slug: Slug::parse("walks")?,
        requested_by: UserSlug::parse("bob")?,
        question_id: QuestionId(world.services.ids.next()),
        reason: "revision 2 is being written; say it once that is there".to_owned(),
    });
    tell(&world, Subject::specification(spec), payload).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].to, "ada");
    assert_eq!(
        said[0].title,
        "Nothing follows for the plan of `walks` from what bob answered"
    );
    assert!(said[0].body.contains("revision 2 is being written"));
    world.close().await
}

#[tokio::test]
async fn who_stops_everything_is_told_to_the_others_alone_and_at_any_hour() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + chrono::TimeDelta::hours(11));
    let paper = Paper::new(&["ada", "bob"]);
    // It is no matter of a role: who is there for nothing hears it, too.
    let people: [(&str, &[Role]); 2] = [("ada", &Role::ALL), ("bob", &[])];
    let world = world(directory.path(), &clock, &paper, &people).await?;
    begun(&world, build(&world), "walks").await?;
    let halt = Payload::HaltBegun(HaltBegun {
        by: UserSlug::parse("ada")?,
        reason: Some("the disk burns".to_owned()),
    });
    tell(&world, Subject::project(), halt).await?;
    let said = paper.said(&world, 1).await?;
    // It stands alone, so that it is what a phone shows.
    assert_eq!(
        (said[0].to.as_str(), said[0].title.as_str()),
        ("bob", "ada stopped everything")
    );
    world.settle().await?;
    let rows = rows(&world).await?;
    let of_halt: Vec<_> = rows
        .iter()
        .filter(|row| row.event_type == "halt.begun")
        .map(|row| (row.receiver.as_str(), row.urgent))
        .collect();
    assert_eq!(of_halt, [("bob", true)]);
    world.close().await
}

#[tokio::test]
async fn who_stopped_a_build_is_not_told_that_it_is_stopped() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[]), ("bob", &[])]).await?;
    let (id, store) = (build(&world), &world.services.store);
    let stopped: Build = serde_json::from_value(json!({
        "id": id, "spec": id, "revision": 1, "hash": ContentHash::of(b"walks"), "idea": "walks", "user": "ada",
        "state": "stopped", "stop": "person", "pause_requested": false, "branch": "build/walks", "target": "main",
        "priority": 5, "working_ms": 0, "correlation_id": id, "created_at": noon(), "completed_at": noon(),
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&stopped);
    store.commit(changes).await?;
    let wish = Payload::BuildStop(BuildRequest {
        build_id: id,
        requested_by: "ada".to_owned(),
        reason: None,
    });
    tell(&world, Subject::build(id), wish).await?;
    tell(&world, Subject::build(id), completed(&world, id)?).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].to, "bob");
    assert!(said[0].title.contains("`walks`"), "{said:?}");
    world.settle().await?;
    assert_eq!(paper.to("ada"), 0);
    world.close().await
}

#[tokio::test]
async fn a_failure_that_a_question_is_asked_about_is_told_by_that_alone() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
    let (build, task) = (build(&world), TaskId::parse("T-002")?);
    let question = ask(&world).await?;
    let check = Validation::passes("true");
    let file = RepoPath::parse("a.rs")?;
    let block = TaskBlock::new(task.clone(), "api", Action::Create, file, check);
    let mut changes = ChangeSet::new();
    changes.insert(&Task {
        state: TaskState::Failed,
        question: Some(question),
        ..Task::planned(build, 2, block)
    });
    world.services.store.commit(changes).await?;
    let failed = Payload::TaskFailed(TaskFailed {
        build_id: build,
        task_id: task.clone(),
        idea_slug: Slug::parse("walks")?,
        attempt: 3,
        category: FailureClass::ValidationFailed,
        error: "the list is empty".to_owned(),
        will_retry: false,
        blocked: 0,
        continuing: 0,
        recommended: None,
    });
    tell(&world, Subject::task(build, &task), failed).await?;
    world.settle().await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].question, Some(question));
    assert_eq!(paper.count(), 1, "{:?}", paper.all());
    world.close().await
}
