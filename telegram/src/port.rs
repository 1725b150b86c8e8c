//! Tells people by Telegram what they have to know.

use async_trait::async_trait;
use ropewalk_desk::people::People;
use ropewalk_desk::phones;
use ropewalk_desk::questions::needed;
use ropewalk_desk::specifications;
use ropewalk_orchestrator::notices::{Arrival, Notification, Port, SendError};
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::question::{About, Choice, Content, Question};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_store::{ReadError, Store, revision_key};

use crate::api::{Api, Letter};
use crate::client::TelegramClient;
use crate::{keyboard, styled, words};

/// Telegram as a way of telling.
pub struct TelegramPort {
    api: TelegramClient,
    people: People,
}

/// What the port is called.
pub(crate) const NAME: &str = "telegram";

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

/// Tells what the revision asks for whose approval is asked; nothing for other questions. It is the same however often it is sent.
async fn asked_for(
    store: &Store,
    question: Option<&Question>,
) -> Result<Option<String>, ReadError> {
    let Some((About::Specification { spec }, Some(Content::Revision { revision, .. }))) =
        question.map(|question| (&question.about, &question.content))
    else {
        return Ok(None);
    };
    let found = store.get::<Specification>(&spec.to_string()).await?;
    let key = revision_key(*spec, *revision);
    let asked = store.get::<Revision>(&key).await?;
    let Some((spec, revision)) = found.zip(asked) else {
        return Ok(None);
    };
    specifications::outline(store, &spec, &revision)
        .await
        .map(Some)
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
        let mut told = words::telling(telling);
        if let Some(asked) = asked_for(store, question.as_deref()).await.map_err(later)? {
            told.push_str("\n\n");
            told.push_str(&asked);
        }
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
        let person = self.people.named(name.as_str());
        // Nobody sees a button that they may not press.
        let may = |choice: &Choice| {
            let right = question
                .as_ref()
                .and_then(|question| needed(question, &choice.id));
            let person = person.as_ref();
            right.is_none_or(|right| person.is_some_and(|person| person.demand(right).is_ok()))
        };
        let choices = telling.question.as_ref();
        let choices = choices.map_or(&[][..], |put| &put.choices);
        let letter = Letter {
            text,
            buttons: keyboard::buttons(&telling.nonce, choices, may),
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
