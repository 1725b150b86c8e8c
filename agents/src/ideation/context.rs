//! Loads what a message is answered from: the session, its last messages, what it learned, and the idea folder.

use chrono::{DateTime, Utc};
use ropewalk_desk::phones;
use ropewalk_desk::views::idea::progress::{self, IdeaProgress};
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::idea::{Author, Idea, Message, Session};
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::payload::IdeationMessage;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::{MessageId, QuestionId, UserSlug};
use ropewalk_store::{Query, Store, Versioned};

use super::IdeationOptions;
use crate::failure;
use crate::idea_folder::{IdeaFolder, README};

/// The fewest messages that the model gets to read of a long conversation; twice as many are the most.
const RECENT: usize = 20;

/// A message with all that it is answered from.
pub(super) struct MessageContext {
    /// The session.
    pub(super) session: Versioned<Session>,
    /// The idea.
    pub(super) idea: Versioned<Idea>,
    /// The message.
    pub(super) message: Message,
    /// Which message of the person it is, from 1.
    pub(super) number: usize,
    /// When whoever wrote it first said something before it.
    pub(super) talks_since: Option<DateTime<Utc>>,
    /// Whether they have a phone that a bot reaches.
    pub(super) has_phone: bool,
    /// The last messages up to this one, oldest first.
    pub(super) recent: Vec<Message>,
    /// The questions about this session.
    pub(super) questions: Vec<Versioned<Question>>,
    /// What was written, built and asked of the idea.
    pub(super) progress: IdeaProgress,
    /// The idea folder.
    pub(super) folder: IdeaFolder,
    /// Its README.
    pub(super) readme: Option<String>,
    /// What it says of the people it is for.
    pub(super) target_users: Option<String>,
}

impl MessageContext {
    /// Returns the questions that a person has answered, with their answers, oldest first.
    pub(super) fn answers(&self) -> impl Iterator<Item = (&str, String)> {
        self.questions.iter().filter_map(|question| {
            let answer = question.answer_in_full()?;
            Some((question.text.as_str(), answer))
        })
    }

    /// Says whether a question and what was answered to it stand among the last messages, so that neither is told again.
    pub(super) fn is_in_conversation(&self, question: &str, answer: &str) -> bool {
        let said = |author, text: &str| {
            let mut messages = self
                .recent
                .iter()
                .filter(|message| message.author == author);
            messages.any(|message| message.text.contains(text.trim()))
        };
        said(Author::Agent, question) && said(Author::Person, answer)
    }

    /// Returns the question that the session waits for, while it is open.
    pub(super) fn awaited(&self) -> Option<&Versioned<Question>> {
        self.open_questions()
            .find(|question| self.session.waiting_for == Some(question.id))
    }

    /// Returns the questions that are still open.
    pub(super) fn open_questions(&self) -> impl Iterator<Item = &Versioned<Question>> {
        self.questions
            .iter()
            .filter(|question| question.state == QuestionState::Pending)
    }
}

/// Loads the message of `event`.
pub(super) async fn load(
    store: &Store,
    options: &IdeationOptions,
    event: &IdeationMessage,
) -> Result<MessageContext, AgentError> {
    let missing =
        |what: &str, id: &str| AgentError::permanent(format!("there is no {what} `{id}`"));
    let session_id = event.session_id.to_string();
    let session = store.get::<Session>(&session_id).await?;
    let session = session.ok_or_else(|| missing("session", &session_id))?;
    let idea = store.get::<Idea>(session.idea.as_str()).await?;
    let idea = idea.ok_or_else(|| missing("idea", session.idea.as_str()))?;
    let mut messages: Vec<Message> = store
        .list::<Message>(Query::new().equal("session", session_id).order_by("at"))
        .await?
        .into_iter()
        .map(Versioned::into_inner)
        .filter(|message| message.id <= event.message_id || message.author == Author::Agent)
        .collect();
    messages.sort_by_key(in_turn);
    let position = messages
        .iter()
        .position(|message| message.id == event.message_id);
    let position = position.ok_or_else(|| missing("message", &event.message_id.to_string()))?;
    let message = messages[position].clone();
    let persons = messages
        .iter()
        .filter(|message| message.author == Author::Person);
    let number = persons.count();
    let earlier = messages[..position].iter();
    let theirs = earlier.filter(|message| message.user.as_ref() == Some(&event.user_slug));
    let talks_since = theirs.map(|message| message.at).min();
    // An answer to an earlier message may have come after this one was written, so this one goes last.
    messages.remove(position);
    messages.push(message.clone());
    let recent = messages.split_off(left_out(messages.len()));
    let places = &options.places;
    let folder = IdeaFolder::new(places.idea_folder(&session.user, &session.idea));
    let chat = match &options.phones {
        Some(people) => phones::chat(store, people, &event.user_slug).await?,
        None => None,
    };
    let read = |document: &str| {
        folder
            .read(document)
            .map_err(|error| failure::of_folder(&error))
    };
    Ok(MessageContext {
        questions: questions(store, &session).await?,
        progress: progress::of(store, &session.idea).await?,
        readme: read(README)?,
        target_users: read("target-users.md")?,
        folder,
        session,
        idea,
        message,
        number,
        talks_since,
        has_phone: chat.is_some(),
        recent,
    })
}

/// Returns whether a question was brought to a person, by whatever way of telling.
pub(super) async fn is_told(
    store: &Store,
    question: QuestionId,
    person: &UserSlug,
) -> Result<bool, AgentError> {
    let told = Query::new().equal("question", question);
    let told = store.list::<Notice>(told).await?;
    let mut theirs = told
        .iter()
        .filter(|notice| notice.receiver == person.as_str());
    Ok(theirs.any(|notice| notice.sent_at.is_some()))
}

/// Puts each answer behind the message that it answers: other messages may have waited meanwhile, and a model that reads it behind
/// those takes it for the answer to them.
fn in_turn(message: &Message) -> (MessageId, bool, MessageId) {
    let answered = message.answers.unwrap_or(message.id);
    (answered, message.answers.is_some(), message.id)
}

/// Says how many of the oldest messages are left out. They go by twenties, since one at a time would let each request begin
/// in another way, and a provider keep none of it.
const fn left_out(messages: usize) -> usize {
    messages.saturating_sub(RECENT) / RECENT * RECENT
}

async fn questions(
    store: &Store,
    session: &Session,
) -> Result<Vec<Versioned<Question>>, AgentError> {
    let about = About::Session {
        session: session.id,
    };
    let asked = Query::new()
        .equal("idea", session.idea.as_str())
        .order_by("asked_at");
    let mut questions = store.list::<Question>(asked).await?;
    questions.retain(|question| question.about == about);
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use ropewalk_schemas::{MessageId, SessionId};
    use uuid::Uuid;

    use super::{Author, Message, RECENT, in_turn, left_out};

    #[test]
    fn each_answer_stands_behind_what_it_answers_though_other_messages_waited() {
        let message = |id: u128, answers: Option<u128>| Message {
            id: MessageId(Uuid::from_u128(id)),
            session: SessionId(Uuid::nil()),
            author: answers.map_or(Author::Person, |_| Author::Agent),
            user: None,
            text: id.to_string(),
            attachments: Vec::new(),
            at: DateTime::<Utc>::UNIX_EPOCH,
            answers: answers.map(|id| MessageId(Uuid::from_u128(id))),
            told: None,
        };
        // Three came at once, the first was answered twice, and a fourth waits.
        let mut messages = [
            message(1, None),
            message(2, None),
            message(3, None),
            message(4, Some(1)),
            message(5, Some(1)),
            message(6, None),
            message(7, Some(2)),
            message(8, Some(3)),
        ];
        messages.sort_by_key(in_turn);
        let texts: Vec<&str> = messages
            .iter()
            .map(|message| message.text.as_str())
            .collect();
        assert_eq!(texts, ["1", "4", "5", "2", "7", "3", "8", "6"]);
    }

    #[test]
    fn what_is_read_begins_at_the_same_message_for_twenty_more() {
        let rows = [(0, 0), (1, 0), (39, 0), (40, 20), (59, 20), (60, 40)];
        for (messages, expected) in rows {
            assert_eq!(left_out(messages), expected, "{messages}");
        }
        assert!(
            (RECENT..200).all(|count| (RECENT..2 * RECENT).contains(&(count - left_out(count))))
        );
    }
}
