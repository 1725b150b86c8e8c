//! Tells people by Telegram what they have to know.

use async_trait::async_trait;
use ropewalk_desk::people::{People, Person};
use ropewalk_desk::phones;
use ropewalk_desk::questions::needed;
use ropewalk_desk::specifications::OutlineExtent;
use ropewalk_orchestrator::notices::{Arrival, IDEA_COMPLETE, Notification, Port, SendError};
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{About, Choice, Content, Question};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_store::{ReadError, Store, revision_key};

use crate::api::{Api, Button, Letter};
use crate::client::TelegramClient;
use crate::{keyboard, starting, styled, words};

/// Telegram as a way of telling.
pub struct TelegramPort {
    api: TelegramClient,
    people: People,
}

/// What the port is called.
pub(crate) const NAME: &str = "telegram";
/// What is pressed to have an idea planned that is complete.
const SPECIFY: &str = "Ask for its specification";

impl TelegramPort {
    /// Returns the port of a bot.
    pub const fn new(api: TelegramClient, people: People) -> Self {
        Self { api, people }
    }
}

/// Names a message by its chat and its number there.
pub(crate) fn handle(chat: i64, message: i32) -> String {
    format!("{chat}:{message}")
}

fn parsed(handle: &str) -> Option<(i64, i32)> {
    let (chat, message) = handle.split_once(':')?;
    Some((chat.parse().ok()?, message.parse().ok()?))
}

impl TelegramPort {
    /// Writes what somebody is told, and what of a question is not for them to decide.
    async fn written(
        &self,
        telling: &Notification,
        (question, person): (Option<&Question>, Option<&Person>),
        store: &Store,
    ) -> Result<String, ReadError> {
        let Some(question) = question else {
            return Ok(words::telling(telling));
        };
        let choices = question.choices.iter();
        let beyond =
            choices.filter_map(|choice| Some((choice, lacking(question, choice, person)?)));
        let beyond: Vec<(&Choice, Right)> = beyond.collect();
        let mut telling = telling.clone();
        if beyond.iter().any(|(choice, _)| choice.recommended) {
            telling.text.recommendation = None;
        }
        let told = approval(store, &telling.text.title, question).await?;
        let told = told.unwrap_or_else(|| words::telling(&telling));
        Ok(match words::beyond(&self.people, &beyond) {
            Some(beyond) => format!("{told}\n\n{beyond}"),
            None => told,
        })
    }
}

/// Returns the right that a choice takes and that somebody has not.
fn lacking(question: &Question, choice: &Choice, person: Option<&Person>) -> Option<Right> {
    let right = needed(question, &choice.id)?;
    let may = person.is_some_and(|person| person.demand(right).is_ok());
    (!may).then_some(right)
}

/// Returns the button that does what is best done after what is told, where a command does that.
fn next_step(telling: &Notification) -> Option<Button> {
    let idea = telling.subject.as_str().strip_prefix("idea/")?;
    telling.text.recommendation.as_ref()?;
    if telling.event_type != IDEA_COMPLETE {
        return None;
    }
    keyboard::typing(SPECIFY.to_owned(), &format!("/execute {idea}"))
}

/// Writes the approval that a question asks for, as it is shown where somebody asks for it; nothing for other questions. It is
/// the same however often it is sent.
async fn approval(
    store: &Store,
    title: &str,
    question: &Question,
) -> Result<Option<String>, ReadError> {
    let (About::Specification { spec }, Some(Content::Revision { revision, .. })) =
        (&question.about, &question.content)
    else {
        return Ok(None);
    };
    let found = store.get::<Specification>(&spec.to_string()).await?;
    let key = revision_key(*spec, *revision);
    let asked = store.get::<Revision>(&key).await?;
    let Some((spec, revision)) = found.zip(asked) else {
        return Ok(None);
    };
    let mut choices = question.choices.iter();
    let start = choices.find(|choice| needed(question, &choice.id) == Some(Right::Approve));
    let start = start.map_or("A yes", |choice| choice.label.as_str());
    let title = format!("{title}: build it?");
    let ways = (title.as_str(), start);
    let told = starting::told(store, &spec, Some(&revision), ways, OutlineExtent::Brief);
    told.await.map(Some)
}

#[async_trait]
impl Port for TelegramPort {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn receivers(
        &self,
        people: &[UserSlug],
        store: &Store,
    ) -> Result<Vec<String>, ReadError> {
        let mut reached = Vec::new();
        for name in people {
            if phones::chat(store, &self.people, name).await?.is_some() {
                reached.push(name.to_string());
            }
        }
        Ok(reached)
    }

    async fn send(
        &self,
        receiver: &str,
        telling: &Notification,
        store: &Store,
    ) -> Result<Arrival, SendError> {
        let later = |error: ReadError| SendError::Later {
            after: None,
            reason: Words::of(&error).to_string(),
        };
        let name =
            UserSlug::parse(receiver).map_err(|error| SendError::Refused(error.to_string()))?;
        let chat = phones::chat(store, &self.people, &name)
            .await
            .map_err(later)?;
        let unlinked = || SendError::Refused(format!("`{receiver}` has no linked chat any more"));
        let chat = chat.ok_or_else(unlinked)?;
        let question = match &telling.question {
            Some(put) => store.get::<Question>(&put.id.to_string()).await,
            None => Ok(None),
        };
        let question = question.map_err(later)?;
        let person = self.people.named(name.as_str());
        let whom = (question.as_deref(), person.as_ref());
        let told = self.written(telling, whom, store).await.map_err(later)?;
        let pieces = styled::messages(&told).into_iter();
        let mut left = pieces.skip(telling.pieces as usize);
        let text = left.next().unwrap_or_default();
        if left.next().is_some() {
            let letter = Letter {
                text,
                silent: true,
                ..Letter::default()
            };
            let message = self.api.send(chat, &letter).await?;
            return Ok(Arrival {
                message: Some(handle(chat, message)),
                more: true,
            });
        }
        // Nobody sees a button that they may not press.
        let (question, person) = whom;
        let may = |choice: &Choice| {
            question.is_none_or(|question| lacking(question, choice, person).is_none())
        };
        let choices = telling.question.as_ref();
        let choices = choices.map_or(&[][..], |put| &put.choices);
        let mut buttons = keyboard::buttons(&telling.nonce, choices, may);
        buttons.extend(next_step(telling));
        let letter = Letter {
            text,
            buttons,
            silent: telling.silent,
            wants_words: false,
        };
        let message = self.api.send(chat, &letter).await?;
        Ok(Arrival {
            message: Some(handle(chat, message)),
            more: false,
        })
    }

    async fn edit(&self, message: &str, telling: &Notification) -> Result<(), SendError> {
        let Some((chat, message)) = parsed(message) else {
            return Ok(());
        };
        let mut pieces = styled::messages(&words::telling(telling)).into_iter();
        let text = pieces.next().unwrap_or_default();
        Ok(self.api.edit(chat, message, &text).await?)
    }
}
