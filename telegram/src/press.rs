//! Takes answers: a press of a button, and words in reply to what was asked.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::phones;
use ropewalk_desk::questions::{self, RefusedAnswer};
use ropewalk_orchestrator::questions::{AnswerError, AnswerInput};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::phone::{Reply, WordsFor};
use ropewalk_schemas::question::{Choice, Question, QuestionState};
use ropewalk_schemas::{ChoiceId, MessageId, QuestionId};
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};

use crate::keyboard::Mark;
use crate::surface::{CHANNEL, PressAnswer, Surface, SurfaceError, Whom};
use crate::words::refusal;
use crate::{builds, drafts, port, starting, talk};

/// How long a button works after it was sent.
const NONCE_LIFE: TimeDelta = TimeDelta::days(14);

/// What words came to where somebody was asked for some.
pub(crate) struct WordsOutcome {
    pub(crate) told: String,
    /// Whether they were those of a choice that was pressed, which waits for none any more.
    pub(crate) of_choice: bool,
}

/// What a press comes to.
enum PressOutcome {
    /// A choice of an open question.
    Chosen(QuestionId, Choice),
    /// Nothing, and why.
    Nothing(String),
}

/// Takes a press.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    message: i32,
    data: &str,
) -> Result<PressAnswer, SurfaceError> {
    let Some(mark) = Mark::read(data) else {
        return Ok("This button means nothing.".to_owned().into());
    };
    if let Some(pressed) = builds::pressed(surface, whom, message, mark).await? {
        return Ok(pressed);
    }
    if let Some(pressed) = starting::pressed(surface, whom, message, mark).await? {
        return Ok(pressed);
    }
    if let Some(told) = drafts::pressed(surface, whom, message, mark).await? {
        return Ok(told.into());
    }
    let (question, choice) = match chosen(surface, whom, message, mark).await? {
        PressOutcome::Chosen(question, choice) => (question, choice),
        PressOutcome::Nothing(why) => return Ok(why.into()),
    };
    if choice.with_words {
        let words_for = WordsFor {
            question,
            choice: choice.id.clone(),
        };
        phones::change(&surface.context(), &whom.person.name, |phone| {
            phone.words_for = Some(words_for.clone());
        })
        .await?;
        let asked = format!("**{}** What exactly?", choice.label);
        return Ok(PressAnswer {
            reply: Some(Reply {
                wants_words: true,
                ..surface.reply(whom.chat, asked)
            }),
            ..PressAnswer::from("Write your words as the next message.".to_owned())
        });
    }
    let given = AnswerInput::Picked(&choice.id, None);
    Ok(answered(surface, whom, question, given).await?.into())
}

/// Finds what a button stands for; one that was altered, is old, or was meant for somebody else stands for nothing.
async fn chosen(
    surface: &Surface,
    whom: &Whom,
    message: i32,
    mark: Mark<'_>,
) -> Result<PressOutcome, SurfaceError> {
    let nothing = |why: &str| Ok(PressOutcome::Nothing(why.to_owned()));
    let store = &surface.services.store;
    let found = Query::new()
        .equal("nonce", mark.nonce)
        .equal("port", port::NAME);
    let Some(notice) = store.list::<Notice>(found).await?.into_iter().next() else {
        return nothing("This button means nothing any more.");
    };
    if notice.receiver != whom.person.name.as_str() {
        return nothing("This was asked of somebody else.");
    }
    let Some(id) = notice.question else {
        return nothing("This button means nothing.");
    };
    let question = store.get::<Question>(&id.to_string()).await?;
    let Some(question) = question else {
        return nothing("The question is gone.");
    };
    let is_open = question.state == QuestionState::Pending;
    let handle = port::handle(whom.chat, message);
    let sent_at = sent_at(&notice, &handle);
    remember(surface, &notice, handle, is_open).await?;
    if is_open && surface.services.clock.now() - sent_at > NONCE_LIFE {
        return nothing("This button is too old; /questions puts the question again.");
    }
    match question.choices.get(mark.place) {
        Some(choice) => Ok(PressOutcome::Chosen(id, choice.clone())),
        None => nothing("This button means nothing."),
    }
}

/// Returns when a message was sent that bears a button of a notice. Of any but the newest it is only known that it was not
/// before the notice was made.
fn sent_at(notice: &Notice, handle: &str) -> DateTime<Utc> {
    let is_newest = notice.messages.last().is_some_and(|last| last == handle);
    let newest_sent = notice.sent_at.filter(|_| is_newest);
    newest_sent.unwrap_or(notice.created_at)
}

/// Writes down a message of which nobody knew whether it arrived, so that it is mended with the others.
async fn remember(
    surface: &Surface,
    notice: &Versioned<Notice>,
    handle: String,
    is_open: bool,
) -> Result<(), SurfaceError> {
    if notice.messages.contains(&handle) {
        return Ok(());
    }
    let mut after = notice.record.clone();
    after.messages.insert(0, handle);
    // While the question is open, its answer mends this one too.
    after.outdated |= !is_open && after.state == NoticeState::Sent;
    let mut changes = ChangeSet::new();
    changes.update(notice, &after);
    match surface.services.store.commit(changes).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes words where somebody was asked for some: as those of a choice that was pressed, or in reply to a question.
pub(crate) async fn worded(
    surface: &Surface,
    whom: &Whom,
    reply_to: Option<i32>,
    text: &str,
) -> Result<Option<WordsOutcome>, SurfaceError> {
    let store = &surface.services.store;
    let phone = phones::of(store, &whom.person.name).await?;
    let replied = match reply_to {
        Some(message) => asked_by(surface, whom, message).await?,
        None => None,
    };
    let words_for = phone.words_for.filter(|words| {
        let of_it = |question: &Versioned<Question>| question.id == words.question;
        replied.as_ref().is_none_or(of_it)
    });
    if let Some(WordsFor { question, choice }) = words_for {
        let given = AnswerInput::Picked(&choice, Some(text));
        let told = answered(surface, whom, question, given).await?;
        let of_choice = true;
        return Ok(Some(WordsOutcome { told, of_choice }));
    }
    let Some(question) = replied else {
        return Ok(None);
    };
    if question.consequential && question.state == QuestionState::Pending {
        let refused = "This has consequences, so that words decide nothing: press a button.";
        return Ok(Some(WordsOutcome {
            told: refused.to_owned(),
            of_choice: false,
        }));
    }
    let told = answered(surface, whom, question.id, AnswerInput::Typed(text)).await?;
    Ok(Some(WordsOutcome {
        told,
        of_choice: false,
    }))
}

/// Returns the question that a message put to this person, or a piece of one that came in several.
async fn asked_by(
    surface: &Surface,
    whom: &Whom,
    message: i32,
) -> Result<Option<Versioned<Question>>, SurfaceError> {
    let store = &surface.services.store;
    let handle = port::handle(whom.chat, message);
    let told = Query::new().equal("port", port::NAME);
    let told = store.list::<Notice>(told).await?;
    let asked = told.iter().find(|notice| {
        let is_of_it = notice.messages.contains(&handle) || notice.earlier.contains(&handle);
        notice.receiver == whom.person.name.as_str() && is_of_it
    });
    match asked.and_then(|notice| notice.question) {
        Some(id) => Ok(store.get::<Question>(&id.to_string()).await?),
        None => Ok(None),
    }
}

/// Records an answer; returns what came of it, in words.
async fn answered(
    surface: &Surface,
    whom: &Whom,
    id: QuestionId,
    given: AnswerInput<'_>,
) -> Result<String, SurfaceError> {
    let context = surface.context();
    let since = MessageId(surface.services.ids.next());
    let outcome = questions::answer(&context, id, given, &whom.person, CHANNEL).await;
    match outcome {
        Ok(answered) => {
            talk::goes_on(surface, whom, id, since).await?;
            Ok(format!("Taken: {}", answered.answer))
        }
        Err(RefusedAnswer::Answer(AnswerError::Closed { .. })) => {
            let question = context.store.get::<Question>(&id.to_string()).await?;
            let question = question.as_deref();
            Ok(
                match question.and_then(|question| question.answer.as_ref()) {
                    Some(first)
                        if first.by == whom.person.name.as_str() && is_same(first, given) =>
                    {
                        format!("Taken: {}", first.text)
                    }
                    Some(first) => format!(
                        "Answered already, by {} over {}: {}",
                        first.by, first.channel, first.text
                    ),
                    None => question.map(Question::without_answer).unwrap_or_default(),
                },
            )
        }
        Err(RefusedAnswer::Answer(AnswerError::Read(error))) => Err(error.into()),
        Err(RefusedAnswer::Answer(AnswerError::Commit(error))) => Err(error.into()),
        Err(RefusedAnswer::Answer(refused)) => Ok(refusal::answer(&refused)),
        Err(RefusedAnswer::Forbidden(refused)) => Ok(Words::of(&refused).to_string()),
    }
}

fn is_same(first: &ropewalk_schemas::question::Answer, given: AnswerInput<'_>) -> bool {
    let picked: Option<&ChoiceId> = match given {
        AnswerInput::Picked(choice, _) => Some(choice),
        AnswerInput::Typed(_) => None,
    };
    picked.is_some() && first.choice.as_ref() == picked
}
