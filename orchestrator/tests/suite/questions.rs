//! Questions wait, remind, default and are answered once.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_orchestrator::questions::{
    self, AnswerError, AnswerInput, AskOutcome, Deadlines, QuestionRequest, QuestionService,
};
use ropewalk_runtime::Clock;
use ropewalk_schemas::question::{
    ANSWER_BYTES, About, Answer, Choice, LATE_ANSWERS, Question, QuestionKind, QuestionState,
};
use ropewalk_schemas::{ChoiceId, QuestionId};
use ropewalk_store::{ChangeSet, EventFilter, Query};

use crate::world::{FrameWorld, noon};

pub(crate) fn id(choice: &str) -> ChoiceId {
    ChoiceId::parse(choice).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn asking(kind: QuestionKind, consequential: bool) -> QuestionRequest {
    let choice = |name: &str, label: &str| Choice {
        recommended: name == "yes",
        ..Choice::new(id(name), label)
    };
    QuestionRequest {
        kind,
        trigger: "before_research".to_owned(),
        text: format!("{kind:?} {consequential}"),
        context: "a test".to_owned(),
        choices: vec![choice("yes", "Yes"), choice("no", "No")],
        free_text: false,
        default: (kind == QuestionKind::Clarifying).then(|| id("no")),
        consequential,
        content: None,
        about: About::Nothing,
        topic: None,
        idea: None,
    }
}

pub(crate) async fn open(
    world: &FrameWorld,
    asking: QuestionRequest,
) -> anyhow::Result<QuestionId> {
    let context = world.context("ideation")?;
    let mut changes = ChangeSet::new();
    let asked = questions::ask(&mut changes, &context, &Deadlines::default(), asking).await?;
    if !changes.is_empty() {
        world.services.store.commit(changes).await?;
    }
    match asked {
        AskOutcome::Open(id) => Ok(id),
        AskOutcome::Reused(answer) => anyhow::bail!("reused `{}`", answer.text),
    }
}

async fn state(
    world: &FrameWorld,
    id: QuestionId,
) -> anyhow::Result<(QuestionState, Option<String>)> {
    let question = world
        .services
        .store
        .get::<Question>(&id.to_string())
        .await?;
    let question = question.ok_or_else(|| anyhow::anyhow!("question `{id}` is gone"))?;
    Ok((
        question.state,
        question.answer.as_ref().map(|answer| answer.text.clone()),
    ))
}

async fn world(directory: &std::path::Path, clock: &Clock) -> anyhow::Result<FrameWorld> {
    let service = Arc::new(QuestionService::new(Deadlines::default())?);
    FrameWorld::open(directory, clock.clone(), vec![service]).await
}

#[tokio::test]
async fn every_kind_ends_in_its_way_and_no_default_has_consequences() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let running = world(directory.path(), &clock).await?;
    let mut asked = Vec::new();
    for (kind, consequential, expected) in [
        (
            QuestionKind::Blocking,
            false,
            (QuestionState::Pending, None),
        ),
        (
            QuestionKind::Clarifying,
            false,
            (QuestionState::Defaulted, Some("No".to_owned())),
        ),
        (
            QuestionKind::Confirming,
            false,
            (QuestionState::Defaulted, Some("Yes".to_owned())),
        ),
        (
            QuestionKind::Confirming,
            true,
            (QuestionState::Pending, None),
        ),
        (
            QuestionKind::Educational,
            false,
            (QuestionState::Dismissed, None),
        ),
        (
            QuestionKind::Preference,
            false,
            (QuestionState::Dismissed, None),
        ),
        (
            QuestionKind::Celebratory,
            false,
            (QuestionState::Dismissed, None),
        ),
    ] {
        asked.push((open(&running, asking(kind, consequential)).await?, expected));
    }
    running.close().await?;
    // The deadlines pass while nothing runs; they apply at the next start, once.
    clock.advance(Duration::from_hours(8 * 24));
    let running = world(directory.path(), &clock).await?;
    for (id, expected) in asked {
        running
            .until("the end of a question", || async {
                running.pass(Duration::from_secs(2)).await;
                Ok((state(&running, id).await? == expected).then_some(()))
            })
            .await?;
    }
    let events = running
        .services
        .store
        .events(&EventFilter::default())
        .await?;
    let of_type = |name| {
        events
            .iter()
            .filter(|stored| stored.event.event_type == name)
            .count()
    };
    assert_eq!(of_type("question.defaulted"), 2);
    assert_eq!(of_type("question.dismissed"), 3);
    running.close().await
}

#[tokio::test]
async fn a_question_is_answered_once_and_the_second_person_hears_who_was_first()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let id = open(&running, asking(QuestionKind::Blocking, false)).await?;
    let context = running.context("cli")?;
    let (first, second) = tokio::join!(
        questions::answer(&context, id, "yes", "ada", "cli"),
        questions::answer(&context, id, "2", "bob", "web"),
    );
    let refused = match (first, second) {
        (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
        other => anyhow::bail!("one answer should win: {other:?}"),
    };
    assert!(
        matches!(
            refused,
            AnswerError::Closed {
                state: QuestionState::Answered,
                ..
            }
        ),
        "{refused}"
    );
    assert!(refused.to_string().contains(" by "), "{refused}");
    running.close().await
}

#[tokio::test]
async fn a_default_is_reused_and_the_reuse_is_marked() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let first = open(&running, asking(QuestionKind::Clarifying, false)).await?;
    let defaulted = (QuestionState::Defaulted, Some("No".to_owned()));
    running
        .until("the default", || async {
            running.pass(Duration::from_mins(30)).await;
            Ok((state(&running, first).await? == defaulted).then_some(()))
        })
        .await?;
    let again = open(&running, asking(QuestionKind::Clarifying, false)).await;
    assert_eq!(
        again.map_err(|error| error.to_string()),
        Err("reused `No`".to_owned())
    );
    let all = running
        .services
        .store
        .list::<Question>(Query::new().equal("trigger", "before_research"))
        .await?;
    let reused: Vec<&Question> = all
        .iter()
        .map(|question| &question.record)
        .filter(|question| question.reused_from.is_some())
        .collect();
    assert_eq!(reused.len(), 1);
    assert_eq!(reused[0].reused_from, Some(first));
    assert_eq!(state(&running, reused[0].id).await?, defaulted);
    running.close().await
}

#[tokio::test]
async fn an_answer_is_caused_by_its_question_and_a_default_by_its_timer() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let answered = open(&running, asking(QuestionKind::Blocking, false)).await?;
    questions::answer(&running.context("cli")?, answered, "No", "ada", "cli").await?;
    let ended = open(&running, asking(QuestionKind::Clarifying, false)).await?;
    running
        .until("the default", || async {
            running.pass(Duration::from_mins(30)).await;
            let (state, _) = state(&running, ended).await?;
            Ok((state == QuestionState::Defaulted).then_some(()))
        })
        .await?;
    let events = running
        .services
        .store
        .events(&EventFilter::default())
        .await?;
    for (effect, cause) in [
        ("question.answered", "question.asked"),
        ("question.defaulted", "schedule.due"),
    ] {
        let effect = events
            .iter()
            .find(|stored| stored.event.event_type == effect);
        let id = effect.and_then(|stored| stored.event.causationid);
        let found = events.iter().find(|stored| Some(stored.event.id) == id);
        assert_eq!(
            found.map(|stored| stored.event.event_type.as_str()),
            Some(cause)
        );
    }
    running.close().await
}

#[tokio::test]
async fn the_same_question_within_a_day_is_asked_once_and_its_answer_reused() -> anyhow::Result<()>
{
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let first = open(&running, asking(QuestionKind::Blocking, false)).await?;
    assert_eq!(
        open(&running, asking(QuestionKind::Blocking, false)).await?,
        first
    );
    questions::answer(&running.context("cli")?, first, "No", "ada", "cli").await?;
    let again = open(&running, asking(QuestionKind::Blocking, false)).await;
    assert_eq!(
        again.map_err(|error| error.to_string()),
        Err("reused `No`".to_owned())
    );
    running.clock.advance(Duration::from_hours(25));
    assert_ne!(
        open(&running, asking(QuestionKind::Blocking, false)).await?,
        first
    );
    running.close().await
}

#[tokio::test]
async fn words_to_what_has_consequences_ask_back_and_change_nothing() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let question = open(&running, asking(QuestionKind::Blocking, true)).await?;
    let context = running.context("cli")?;
    for prose in ["ok, but not yet", "yes please", "3"] {
        let refused = questions::answer(&context, question, prose, "ada", "cli").await;
        let Err(AnswerError::NotAChoice { id, text, choices }) = refused else {
            panic!("`{prose}` decides nothing");
        };
        assert_eq!((id, text.as_str()), (question, prose));
        assert_eq!(choices, "`yes` (Yes) or `no` (No)");
    }
    assert_eq!(
        state(&running, question).await?,
        (QuestionState::Pending, None)
    );
    assert_eq!(times(&running, "question.answered").await?, 0);
    let taken = questions::answer(&context, question, "yes", "ada", "cli").await?;
    assert_eq!(
        (taken.choice, taken.answer),
        (Some(id("yes")), "Yes".to_owned())
    );
    running.close().await
}

#[tokio::test]
async fn a_late_answer_is_kept_and_changes_nothing() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let question = open(&running, asking(QuestionKind::Clarifying, false)).await?;
    let defaulted = (QuestionState::Defaulted, Some("No".to_owned()));
    running
        .until("the default", || async {
            running.pass(Duration::from_mins(30)).await;
            Ok((state(&running, question).await? == defaulted).then_some(()))
        })
        .await?;
    let context = running.context("cli")?;
    for _ in 0..2 {
        let refused = questions::answer(&context, question, "yes", "ada", "cli").await;
        assert!(
            matches!(&refused, Err(AnswerError::Closed { id, .. }) if *id == question),
            "{refused:?}"
        );
    }
    let kept = running
        .services
        .store
        .get::<Question>(&question.to_string())
        .await?;
    let late = kept.map(|row| row.late.clone()).unwrap_or_default();
    let said: Vec<(Option<ChoiceId>, &str)> = late
        .iter()
        .map(|answer| (answer.choice.clone(), answer.by.as_str()))
        .collect();
    assert_eq!(said, [(Some(id("yes")), "ada")]);
    assert_eq!(state(&running, question).await?, defaulted);
    assert_eq!(times(&running, "question.answered").await?, 0);
    running.close().await
}

#[tokio::test]
async fn who_answers_what_no_longer_matters_hears_why() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let asked = open(&running, asking(QuestionKind::Blocking, false)).await?;
    let context = running.context("cli")?;
    let row = context.store.get::<Question>(&asked.to_string()).await?;
    let row = row.ok_or_else(|| anyhow::anyhow!("the question is gone"))?;
    let mut changes = ChangeSet::new();
    let why = "revision 2 was asked for by ada";
    questions::supersede(&mut changes, &context, &row, why);
    context.store.commit(changes).await?;
    let late = questions::answer(&context, asked, "yes", "bob", "cli").await;
    let told = late.err().map(|error| error.to_string());
    let told = told.unwrap_or_default();
    assert!(
        told.ends_with(&format!("is already superseded: {why}")),
        "{told}"
    );
    running.close().await
}

/// Answers a question that is closed; returns whether the answer is kept beside it.
async fn is_kept(
    world: &FrameWorld,
    id: QuestionId,
    given: AnswerInput<'_>,
    by: &str,
) -> anyhow::Result<bool> {
    match questions::answer(&world.context("cli")?, id, given, by, "cli").await {
        Err(AnswerError::Closed { kept, .. }) => Ok(kept),
        other => anyhow::bail!("it should be closed: {other:?}"),
    }
}

#[tokio::test]
async fn whose_late_answer_is_one_too_many_is_told_that_it_is_not_kept() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let running = world(directory.path(), &Clock::manual(noon())).await?;
    let asked = open(&running, asking(QuestionKind::Blocking, false)).await?;
    questions::answer(&running.context("cli")?, asked, "yes", "ada", "cli").await?;
    let no = id("no");
    let no = AnswerInput::Picked(&no, None);
    for number in 0..=LATE_ANSWERS {
        let by = format!("late-{number}");
        let kept = is_kept(&running, asked, no, &by).await?;
        assert_eq!(kept, number < LATE_ANSWERS, "{by}");
    }
    // Who gave the answer that counts hears so, however it is said again.
    let yes = id("yes");
    for given in [AnswerInput::Picked(&yes, None), AnswerInput::Typed("1")] {
        let context = running.context("cli")?;
        let again = questions::answer(&context, asked, given, "ada", "cli").await;
        assert!(
            matches!(again, Err(AnswerError::Closed { counts: true, .. })),
            "{again:?}"
        );
    }
    // What is there already is no other answer.
    assert!(is_kept(&running, asked, no, "late-0").await?);
    let store = &running.services.store;
    let row = store.get::<Question>(&asked.to_string()).await?;
    let row = row.ok_or_else(|| anyhow::anyhow!("the question is gone"))?;
    assert_eq!(row.late.len(), LATE_ANSWERS);

    // A row of before answers were bound has no room for another, and is read as before.
    let long = Answer {
        choice: None,
        text: "x".repeat(1_046_000),
        says_why: false,
        by: "eve".to_owned(),
        channel: "api".to_owned(),
        at: noon(),
    };
    let full = Question {
        late: vec![long],
        ..row.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&row, &full);
    store.commit(changes).await?;
    let words = "y".repeat(ANSWER_BYTES);
    assert!(!is_kept(&running, asked, AnswerInput::Words(&words), "bob").await?);
    let row = store.get::<Question>(&asked.to_string()).await?;
    assert_eq!(row.map(|row| row.record), Some(full));
    running.close().await
}

/// Counts the events of a type about a question.
async fn times(world: &FrameWorld, event_type: &str) -> anyhow::Result<usize> {
    let events = world.services.store.events(&EventFilter::default()).await?;
    Ok(events
        .iter()
        .filter(|stored| stored.event.event_type == event_type)
        .count())
}

pub(crate) async fn reminded_at(
    world: &FrameWorld,
    id: QuestionId,
) -> anyhow::Result<Option<DateTime<Utc>>> {
    let question = world
        .services
        .store
        .get::<Question>(&id.to_string())
        .await?;
    Ok(question.and_then(|question| question.reminded_at))
}

#[tokio::test]
async fn a_clarifying_question_reminds_once_and_defaults_no_earlier_than_after_four_hours()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let running = world(directory.path(), &clock).await?;
    let id = open(&running, asking(QuestionKind::Clarifying, false)).await?;
    running.pass(Duration::from_mins(29)).await;
    assert_eq!(reminded_at(&running, id).await?, None);
    running.pass(Duration::from_mins(1)).await;
    let reminded = running
        .until("the reminder", || async {
            running.pass(Duration::from_secs(1)).await;
            reminded_at(&running, id).await
        })
        .await?;
    assert!(reminded >= noon() + TimeDelta::minutes(30), "{reminded}");

    let nearly = noon() + TimeDelta::hours(4) - TimeDelta::minutes(1);
    running.pass((nearly - clock.now()).to_std()?).await;
    assert_eq!(reminded_at(&running, id).await?, Some(reminded));
    assert_eq!(state(&running, id).await?, (QuestionState::Pending, None));
    running.pass(Duration::from_mins(1)).await;
    running
        .until("the default", || async {
            running.pass(Duration::from_secs(1)).await;
            let ended = state(&running, id).await?;
            Ok((ended == (QuestionState::Defaulted, Some("No".to_owned()))).then_some(()))
        })
        .await?;
    assert_eq!(times(&running, "question.reminded").await?, 1);
    running.close().await?;

    // Whoever starts again, early or late, finds nothing left to apply.
    for _ in 0..2 {
        clock.advance(Duration::from_hours(5));
        let running = world(directory.path(), &clock).await?;
        running.pass(Duration::from_hours(5)).await;
        assert_eq!(times(&running, "question.defaulted").await?, 1);
        assert_eq!(reminded_at(&running, id).await?, Some(reminded));
        running.close().await?;
    }
    Ok(())
}
