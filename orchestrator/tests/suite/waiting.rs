//! How long questions wait, who is told meanwhile, and what reaches the agent in the end.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_orchestrator::Agent;
use ropewalk_orchestrator::questions::{self, AskOutcome, Deadlines, QuestionService};
use ropewalk_runtime::Clock;
use ropewalk_schemas::payload::ScheduleDue;
use ropewalk_schemas::question::{Question, QuestionKind, QuestionState};
use ropewalk_schemas::{EventPattern, Payload, QuestionId, Subject, TimerId};
use ropewalk_store::{ChangeSet, EventFilter};

use crate::questions::asking;
use crate::world::{FrameWorld, Recorder, count, noon};

const HALF_AN_HOUR: Duration = Duration::from_mins(30);

fn service() -> anyhow::Result<Arc<QuestionService>> {
    Ok(Arc::new(QuestionService::new(Deadlines::default())?))
}

async fn world(directory: &Path, clock: &Clock) -> anyhow::Result<FrameWorld> {
    FrameWorld::open(directory, clock.clone(), vec![service()?]).await
}

async fn ask(
    world: &FrameWorld,
    kind: QuestionKind,
    consequential: bool,
) -> anyhow::Result<QuestionId> {
    let mut changes = ChangeSet::new();
    let (context, deadlines) = (world.context("ideation")?, Deadlines::default());
    let asked = questions::ask(
        &mut changes,
        &context,
        &deadlines,
        asking(kind, consequential),
    );
    let AskOutcome::Open(id) = asked.await? else {
        anyhow::bail!("`{kind:?}` was answered before it was asked")
    };
    world.services.store.commit(changes).await?;
    Ok(id)
}

async fn question(world: &FrameWorld, id: QuestionId) -> anyhow::Result<Question> {
    let found = world
        .services
        .store
        .get::<Question>(&id.to_string())
        .await?;
    Ok(found.context("the question is gone")?.into_inner())
}

/// Counts the reminders that are stored.
async fn reminders(world: &FrameWorld) -> anyhow::Result<usize> {
    let reminders = EventFilter {
        pattern: Some(EventPattern::of("question.reminded")),
        ..EventFilter::default()
    };
    Ok(world.services.store.events(&reminders).await?.len())
}

#[tokio::test]
async fn a_reminder_is_stored_with_the_time_that_it_came() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let world = FrameWorld::open(directory.path(), Clock::manual(noon()), Vec::new()).await?;
    let id = ask(&world, QuestionKind::Blocking, false).await?;
    let (service, context) = (service()?, world.context("questions")?);
    let due = Payload::ScheduleDue(ScheduleDue {
        timer_id: TimerId(uuid::Uuid::nil()),
        name: "question.remind".to_owned(),
        target: id.to_string(),
    });
    let event = context.event(Subject::question(id), due);
    let changes = service.handle(&event, &context).await?;
    assert_eq!(reminders(&world).await?, 0, "nothing is stored yet");
    world.services.store.commit(changes).await?;
    assert_eq!(reminders(&world).await?, 1);
    assert_eq!(question(&world, id).await?.reminded_at, Some(noon()));
    world.close().await
}

/// Waits for the reminder of this number and returns when the question says it came. What came before is told by the number and not read here:
/// the reminder may be stored before anybody waits for it. A little time passes with each look: whoever looks for what is due sleeps
/// by this clock.
async fn reminder(
    world: &FrameWorld,
    id: QuestionId,
    number: usize,
) -> anyhow::Result<DateTime<Utc>> {
    world
        .until("a reminder", || async {
            world.clock.advance(Duration::from_millis(50));
            Ok((reminders(world).await? >= number).then_some(()))
        })
        .await?;
    assert_eq!(reminders(world).await?, number);
    let reminded = question(world, id).await?.reminded_at;
    reminded.context("no time was stored")
}

#[tokio::test]
async fn a_blocking_question_reminds_each_half_hour_for_fourteen_hours_and_takes_no_default()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let mut running = world(directory.path(), &clock).await?;
    let id = ask(&running, QuestionKind::Blocking, false).await?;
    let mut last = noon();
    for number in 1..=28 {
        if number % 10 == 0 {
            running.close().await?;
            running = world(directory.path(), &clock).await?;
        }
        clock.advance(HALF_AN_HOUR);
        let at = reminder(&running, id, number).await?;
        let gap = at - last;
        ensure!(
            gap >= TimeDelta::minutes(30) && gap < TimeDelta::minutes(31),
            "{gap}"
        );
        last = at;
    }
    ensure!(clock.now() - noon() >= TimeDelta::hours(14));
    let answered = questions::answer_defaults(&running.context("cli")?, "ada", "cli").await?;
    assert_eq!(answered, [], "\"answer all\" leaves it alone");
    let waiting = question(&running, id).await?;
    assert_eq!(
        (waiting.state, waiting.answer),
        (QuestionState::Pending, None)
    );

    questions::answer(&running.context("cli")?, id, "yes", "ada", "cli").await?;
    let answer = question(&running, id).await?.answer.context("no answer")?;
    assert_eq!(
        (
            answer.text.as_str(),
            answer.by.as_str(),
            answer.channel.as_str(),
            answer.at
        ),
        ("Yes", "ada", "cli", clock.now())
    );
    let told = reminders(&running).await?;
    assert_eq!(told, 28);
    running.pass(Duration::from_hours(2)).await;
    assert_eq!(reminders(&running).await?, told, "nobody is asked any more");
    running.close().await
}

/// Each kind of question that ends by itself, whether its yes has consequences, after how many minutes it ends, and how.
const ENDINGS: [(QuestionKind, bool, i64, QuestionState); 6] = [
    (
        QuestionKind::Clarifying,
        false,
        4 * 60,
        QuestionState::Defaulted,
    ),
    (
        QuestionKind::Confirming,
        false,
        24 * 60,
        QuestionState::Defaulted,
    ),
    (
        QuestionKind::Educational,
        false,
        7 * 24 * 60,
        QuestionState::Dismissed,
    ),
    (
        QuestionKind::Preference,
        false,
        7 * 24 * 60,
        QuestionState::Dismissed,
    ),
    (
        QuestionKind::Celebratory,
        false,
        7 * 24 * 60,
        QuestionState::Dismissed,
    ),
    // Its yes would spend: it waits for a person however long that takes.
    (
        QuestionKind::Confirming,
        true,
        i64::MAX,
        QuestionState::Pending,
    ),
];

#[tokio::test]
async fn each_kind_ends_at_its_own_time_and_not_before_also_after_a_restart() -> anyhow::Result<()>
{
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let running = world(directory.path(), &clock).await?;
    let mut asked = Vec::new();
    for (kind, consequential, _, _) in ENDINGS {
        asked.push(ask(&running, kind, consequential).await?);
    }
    running.close().await?;
    for minutes in [
        30,
        4 * 60 - 1,
        4 * 60,
        24 * 60 - 1,
        24 * 60,
        7 * 24 * 60 - 1,
        7 * 24 * 60,
    ] {
        let running = world(directory.path(), &clock).await?;
        let end = noon() + TimeDelta::minutes(minutes);
        clock.advance((end - clock.now()).to_std()?);
        running.settle().await?;
        ensure!(clock.now() < end + TimeDelta::minutes(1), "time ran away");
        for (id, (kind, consequential, ends, state)) in asked.iter().zip(ENDINGS) {
            let expected = if minutes < ends {
                QuestionState::Pending
            } else {
                state
            };
            let found = question(&running, *id).await?.state;
            let what = format!("{kind:?} {consequential} after {minutes} minutes");
            assert_eq!(found, expected, "{what}");
        }
        running.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_default_reaches_the_agent_that_asked_once() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let mut id = None;
    for expected in [1, 0] {
        let agent = Recorder::new("ideation", "question.defaulted")?;
        let seen = agent.seen();
        let agents: Vec<Arc<dyn Agent>> = vec![service()?, Arc::new(agent)];
        let running = FrameWorld::open(directory.path(), clock.clone(), agents).await?;
        if id.is_none() {
            id = Some(ask(&running, QuestionKind::Clarifying, false).await?);
        }
        clock.advance(Duration::from_hours(4));
        running
            .until("the default", || async {
                running.pass(Duration::from_secs(5)).await;
                Ok((count(&seen) >= expected).then_some(()))
            })
            .await?;
        running.pass(Duration::from_hours(4)).await;
        assert_eq!(count(&seen), expected);
        for event in seen.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let Payload::QuestionDefaulted(told) = &event.payload else {
                anyhow::bail!("{event:?}")
            };
            assert_eq!((Some(told.question_id), told.answer.as_str()), (id, "No"));
            assert_eq!(told.answered_by, "default");
        }
        running.close().await?;
    }
    Ok(())
}
