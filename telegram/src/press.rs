//! Takes answers: a press of a button, and words for what was asked.

mod late;
mod spoken;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::phones;
use ropewalk_desk::questions::{self, RefusedAnswer};
use ropewalk_orchestrator::questions::{AnswerError, AnswerInput};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::clip;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::phone::{Reply, WordsFor};
use ropewalk_schemas::question::{Choice, ChoiceWords, Question, QuestionState};
use ropewalk_schemas::{ChoiceId, MessageId, QuestionId, UserSlug};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Versioned};

use crate::api::Interaction;
use crate::commands::{self, TextInput};
use crate::keyboard::Mark;
use crate::surface::{Answer, CHANNEL, PressAnswer, Surface, SurfaceError, Whom};
use crate::words::refusal;
use crate::{builds, drafts, orders, port, starting, talk};
use spoken::{BINDS, SpokenAnswer};

/// How long a button works after it was sent.
const NONCE_LIFE: TimeDelta = TimeDelta::days(14);
/// How many letters of a question are told beside the words that were taken for its answer.
const ASKED: usize = 200;

/// What words came to where somebody was asked for some.
pub(crate) struct WordsOutcome {
    pub(crate) told: Answer,
    /// Whether they were those that something which was pressed waited for, which waits for none any more.
    pub(crate) of_choice: bool,
}

impl WordsOutcome {
    /// Words that nothing was pressed for.
    fn bare(told: impl Into<Answer>) -> Self {
        Self {
            told: told.into(),
            of_choice: false,
        }
    }
}

/// What came of an answer.
struct AnswerOutcome {
    /// What is shown for a press.
    line: String,
    /// What is said in the chat, where there is more to say.
    more: Option<Answer>,
    /// Whether it is the one that counts.
    is_taken: bool,
}

impl AnswerOutcome {
    /// Returns what is said in the chat.
    fn into_answer(self) -> Answer {
        self.more.unwrap_or_else(|| self.line.into())
    }
}

impl From<String> for AnswerOutcome {
    fn from(line: String) -> Self {
        Self {
            line,
            more: None,
            is_taken: false,
        }
    }
}

/// What a press comes to.
enum PressOutcome {
    /// A choice of a question.
    Chosen(Box<Question>, Choice),
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
    if let Some(typed) = mark.command() {
        return ordered(surface, whom, typed).await;
    }
    if let Some(spec) = mark.changes() {
        return orders::revision::pressed(surface, whom, spec).await;
    }
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    if let Some(offer) = phone.landing.filter(|offer| offer.nonce == mark.nonce) {
        return builds::pressed(surface, whom, (message, mark.place), offer).await;
    }
    if let Some(offer) = phone.opening.filter(|offer| offer.nonce == mark.nonce) {
        return talk::pressed(surface, whom, message, offer).await;
    }
    if let Some(offer) = phone.starting.filter(|offer| offer.nonce == mark.nonce) {
        return starting::pressed(surface, whom, (message, mark.place), offer).await;
    }
    if let Some(offer) = phone.abandonment.filter(|offer| offer.nonce == mark.nonce) {
        return orders::giving_up::pressed(surface, whom, (message, mark.place), offer).await;
    }
    if let Some(told) = drafts::pressed(surface, whom, message, mark).await? {
        return Ok(told.into());
    }
    let (question, choice) = match chosen(surface, whom, message, mark).await? {
        PressOutcome::Chosen(question, choice) => (question, choice),
        PressOutcome::Nothing(why) => return Ok(why.into()),
    };
    let needs_words = choice.words == ChoiceWords::Required;
    if needs_words && question.state != QuestionState::Pending {
        // Nobody writes words for nothing.
        let late = late::told(&surface.services.store, &question, None).await?;
        return Ok(shown(surface, whom, late));
    }
    if needs_words {
        let words_for = WordsFor::Choice {
            question: question.id,
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
    let outcome = answered(surface, whom, question.id, given).await?;
    Ok(shown(surface, whom, outcome))
}

/// Shows what came of an answer to whoever pressed it: in the chat where there is more to say, and once.
fn shown(surface: &Surface, whom: &Whom, outcome: AnswerOutcome) -> PressAnswer {
    match outcome.more {
        Some(more) => said(surface, whom, more),
        None => outcome.line.into(),
    }
}

/// Answers a press by what is said in the chat alone.
fn said(surface: &Surface, whom: &Whom, answer: Answer) -> PressAnswer {
    PressAnswer {
        reply: Some(surface.reply(whom.chat, answer)),
        ..PressAnswer::from(String::new())
    }
}

/// Does what the command of a button does, as if it had been typed.
async fn ordered(surface: &Surface, whom: &Whom, typed: &str) -> Result<PressAnswer, SurfaceError> {
    let TextInput::Order(command, rest) = commands::read(typed) else {
        return Ok("This button means nothing.".to_owned().into());
    };
    let answer = orders::carry_out(surface, whom, command, rest).await?;
    Ok(said(surface, whom, answer))
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
    let Some(notice) = notice_with(surface, mark).await? else {
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
    match question.choices.get(mark.place).cloned() {
        Some(choice) => Ok(PressOutcome::Chosen(
            Box::new(question.into_inner()),
            choice,
        )),
        None => nothing("This button means nothing."),
    }
}

/// Returns the notice that bears a button.
async fn notice_with(
    surface: &Surface,
    mark: Mark<'_>,
) -> Result<Option<Versioned<Notice>>, ReadError> {
    let found = Query::new()
        .equal("nonce", mark.nonce)
        .equal("port", port::NAME);
    let found = surface.services.store.list::<Notice>(found).await?;
    Ok(found.into_iter().next())
}

/// Finds the nonce of a button of which a hash was kept; what nobody was shown stays as it is, and means nothing.
pub(crate) async fn reveal(
    surface: &Surface,
    person: &UserSlug,
    did: &mut Interaction,
) -> Result<(), ReadError> {
    let Interaction::Pressed { data, .. } = did else {
        return Ok(());
    };
    let Some(mark) = Mark::read(data).filter(Mark::is_concealed) else {
        return Ok(());
    };
    let store = &surface.services.store;
    let phone = phones::of(store, person).await?;
    let told = Query::new().equal("port", port::NAME);
    let told = store.list::<Notice>(told).await?;
    let told = told.iter().map(|notice| notice.nonce.as_str());
    let mut shown = phone.offers().into_iter().flatten().chain(told);
    let revealed = shown.find_map(|nonce| mark.revealed(nonce));
    if let Some(revealed) = revealed {
        *data = revealed;
    }
    Ok(())
}

/// Says where a button is found again that decides what has consequences, so that it may set work going; nothing of any other.
pub(crate) async fn again(
    surface: &Surface,
    whom: &Whom,
    data: &str,
) -> Result<Option<&'static str>, SurfaceError> {
    let Some(mark) = Mark::read(data) else {
        return Ok(None);
    };
    if let Some(typed) = mark.command() {
        let sets_going =
            matches!(commands::read(typed), TextInput::Order(command, _) if command.sets_going());
        return Ok(sets_going.then_some("it stays where it is"));
    }
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    if phone.landing.is_some_and(|offer| offer.nonce == mark.nonce) {
        return Ok(Some("/land shows it again"));
    }
    if phone
        .starting
        .is_some_and(|offer| offer.nonce == mark.nonce)
    {
        return Ok(Some("/execute shows it again"));
    }
    let notice = notice_with(surface, mark).await?;
    let theirs = notice.filter(|notice| notice.receiver == whom.person.name.as_str());
    let Some(id) = theirs.and_then(|notice| notice.question) else {
        return Ok(None);
    };
    let question = binding(surface, id).await?;
    // One that needs words only asks for them.
    let decides = question.is_some_and(|question| {
        let choice = question.choices.get(mark.place);
        choice.is_some_and(|choice| choice.words != ChoiceWords::Required)
    });
    Ok(decides.then_some("/questions puts its question again"))
}

/// Says whether words are those of what was pressed and has consequences, so that they may set work going.
pub(crate) async fn decides(
    surface: &Surface,
    whom: &Whom,
    reply_to: Option<i32>,
) -> Result<bool, SurfaceError> {
    match target(surface, whom, reply_to).await?.words_for {
        Some(WordsFor::Choice { question, .. }) => Ok(binding(surface, question).await?.is_some()),
        Some(WordsFor::Revision { .. }) => Ok(true),
        None => Ok(false),
    }
}

/// Returns a question that waits for an answer with consequences.
async fn binding(
    surface: &Surface,
    id: QuestionId,
) -> Result<Option<Versioned<Question>>, ReadError> {
    let store = &surface.services.store;
    let question = store.get::<Question>(&id.to_string()).await?;
    Ok(question
        .filter(|question| question.consequential && question.state == QuestionState::Pending))
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

/// Takes words where somebody was asked for some: as those of what was pressed, in reply to a question, or where they answer one
/// that is open by what they say.
pub(crate) async fn worded(
    surface: &Surface,
    whom: &Whom,
    reply_to: Option<i32>,
    text: &str,
) -> Result<Option<WordsOutcome>, SurfaceError> {
    let WordsTarget { words_for, replied } = target(surface, whom, reply_to).await?;
    if let Some(words_for) = words_for {
        let told = match words_for {
            WordsFor::Choice { question, choice } => {
                let given = AnswerInput::Picked(&choice, Some(text));
                let outcome = answered(surface, whom, question, given).await?;
                outcome.into_answer()
            }
            WordsFor::Revision { spec, .. } => orders::revision::wished(surface, whom, spec, text)
                .await?
                .into(),
        };
        let of_choice = true;
        return Ok(Some(WordsOutcome { told, of_choice }));
    }
    let Some(question) = replied else {
        return plain_words(surface, whom, text).await;
    };
    if question.consequential && question.state == QuestionState::Pending {
        return Ok(Some(WordsOutcome::bare(BINDS.to_owned())));
    }
    let outcome = answered(surface, whom, question.id, AnswerInput::Typed(text)).await?;
    Ok(Some(WordsOutcome::bare(outcome.into_answer())))
}

/// Takes plain words where they answer a question that is open.
async fn plain_words(
    surface: &Surface,
    whom: &Whom,
    text: &str,
) -> Result<Option<WordsOutcome>, SurfaceError> {
    let (id, given) = match spoken::find(surface, whom, text).await? {
        None => return Ok(None),
        Some(SpokenAnswer::Choice(id)) => (id, AnswerInput::Typed(text)),
        Some(SpokenAnswer::Words(id)) => (id, AnswerInput::Words(text)),
        Some(SpokenAnswer::Taken(answer)) => {
            return Ok(Some(WordsOutcome::bare(taken(&answer))));
        }
        Some(SpokenAnswer::Nothing(why)) => return Ok(Some(WordsOutcome::bare(why.to_owned()))),
    };
    let outcome = answered(surface, whom, id, given).await?;
    if !outcome.is_taken {
        return Ok(Some(WordsOutcome::bare(outcome.into_answer())));
    }
    let store = &surface.services.store;
    let question = store.get::<Question>(&id.to_string()).await?;
    let asked = question.map_or_else(String::new, |question| clip::line(&question.text, ASKED));
    let told = format!("{}\nIt answers: {asked}", outcome.line);
    Ok(Some(WordsOutcome::bare(told)))
}

/// What words belong to, where somebody was asked for some.
struct WordsTarget {
    /// What was pressed and waits for them.
    words_for: Option<WordsFor>,
    /// The question that they reply to.
    replied: Option<Versioned<Question>>,
}

/// Finds what words belong to: what they reply to goes before anything else that waits for some.
async fn target(
    surface: &Surface,
    whom: &Whom,
    reply_to: Option<i32>,
) -> Result<WordsTarget, SurfaceError> {
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    let replied = match reply_to {
        Some(message) => asked_by(surface, whom, message).await?,
        None => None,
    };
    let now = surface.services.clock.now();
    let words_for = phone.words_for.filter(|words| {
        let of_it = |replied: &Versioned<Question>| match words {
            WordsFor::Choice { question, .. } => replied.id == *question,
            WordsFor::Revision { .. } => false,
        };
        let waits = match words {
            WordsFor::Choice { .. } => true,
            WordsFor::Revision { until, .. } => until.is_some_and(|until| now <= until),
        };
        waits && replied.as_ref().is_none_or(of_it)
    });
    Ok(WordsTarget { words_for, replied })
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

/// Says that an answer counts.
fn taken(answer: &str) -> String {
    format!("Taken: {answer}")
}

/// Records an answer; returns what came of it.
async fn answered(
    surface: &Surface,
    whom: &Whom,
    id: QuestionId,
    given: AnswerInput<'_>,
) -> Result<AnswerOutcome, SurfaceError> {
    let context = surface.context();
    let since = MessageId(surface.services.ids.next());
    let counts = |answer: &str| AnswerOutcome {
        is_taken: true,
        ..AnswerOutcome::from(taken(answer))
    };
    let outcome = questions::answer(&context, id, given, &whom.person, CHANNEL).await;
    let refused = match outcome {
        Ok(answered) => {
            talk::goes_on(surface, whom, id, since).await?;
            return Ok(counts(&answered.answer));
        }
        Err(RefusedAnswer::Answer(AnswerError::Closed {
            kept,
            counts: is_theirs,
            ..
        })) => {
            let question = context.store.get::<Question>(&id.to_string()).await?;
            let Some(question) = question else {
                return Ok(refusal::answer(&AnswerError::Unknown(id)).into());
            };
            let by = whom.person.name.as_str();
            let first = question.answer.as_ref();
            let theirs =
                first.filter(|first| is_theirs || (first.by == by && is_same(first, given)));
            if let Some(first) = theirs {
                talk::went_on(surface, whom, id).await?;
                return Ok(counts(&question.answer_in_words(first)));
            }
            return Ok(late::told(&context.store, &question, Some(kept)).await?);
        }
        Err(RefusedAnswer::Answer(AnswerError::Read(error))) => return Err(error.into()),
        Err(RefusedAnswer::Answer(AnswerError::Commit(error))) => return Err(error.into()),
        Err(RefusedAnswer::Answer(refused)) => refusal::answer(&refused),
        Err(RefusedAnswer::Forbidden(refused)) => refusal::forbidden(&refused, &surface.people),
        Err(RefusedAnswer::TooLong(refused)) => Words::of(&refused).to_string(),
    };
    Ok(refused.into())
}

fn is_same(first: &ropewalk_schemas::question::Answer, given: AnswerInput<'_>) -> bool {
    let picked: Option<&ChoiceId> = match given {
        AnswerInput::Picked(choice, _) => Some(choice),
        AnswerInput::Typed(_) | AnswerInput::Words(_) => None,
    };
    picked.is_some() && first.choice.as_ref() == picked
}
