//! What a person said before this process looked, and nobody has answered yet.

use std::collections::BTreeMap;

use ropewalk_schemas::idea::{Author, Message};
use ropewalk_schemas::{EventPattern, MessageId, Slug, Subject};
use ropewalk_store::EventFilter;

use crate::error::CliError;
use crate::wiring::Reach;

/// Returns those of `messages`, which are in their order, that still get a reply. They are answered in their order, one by
/// one; what comes before one that was answered has its reply already, or never gets any.
pub(super) fn unanswered(messages: &[Message]) -> Vec<&Message> {
    let (replies, said): (Vec<&Message>, Vec<&Message>) = messages
        .iter()
        .partition(|message| message.author == Author::Agent);
    // Older replies do not say what they answer: all that had been said.
    let up_to = replies
        .iter()
        .map(|reply| reply.answers.unwrap_or(reply.id))
        .max();
    let waits = |message: &&Message| up_to.is_none_or(|answered| message.id > answered);
    said.into_iter().filter(waits).collect()
}

/// Returns the positions at which the messages of an idea were said.
pub(super) async fn positions(
    reach: &Reach,
    idea: &Slug,
) -> Result<BTreeMap<MessageId, i64>, CliError> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of("ideation.message")),
        subject: Some(Subject::idea(idea)),
        ..EventFilter::default()
    };
    let events = reach.store().events(&filter).await?;
    let said = events.into_iter().filter_map(|stored| {
        let asked = stored.event.data["message_id"].as_str()?.parse().ok()?;
        Some((asked, stored.sequence))
    });
    Ok(said.collect())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    /// A message of a person, or the reply to an earlier one; `None` within is a reply that does not say to which.
    type Said = Option<Option<u32>>;

    fn message(number: u32, said: Said) -> Message {
        let id = |number: u32| {
            let id = format!("00000000-0000-7000-8000-{number:012}");
            id.parse::<MessageId>().unwrap()
        };
        Message {
            id: id(number),
            session: "00000000-0000-7000-8000-999999999999".parse().unwrap(),
            author: said.map_or(Author::Person, |_| Author::Agent),
            user: None,
            text: String::new(),
            attachments: Vec::new(),
            at: DateTime::UNIX_EPOCH,
            answers: said.flatten().map(id),
            told: None,
        }
    }

    #[test]
    fn each_message_after_the_newest_that_was_answered_waits() {
        let person: Said = None;
        let cases: [(&[Said], &[usize]); 7] = [
            (&[], &[]),
            (&[person], &[0]),
            (&[person, person], &[0, 1]),
            (&[person, person, Some(Some(0))], &[1]),
            (&[person, person, Some(Some(1))], &[]),
            (&[person, Some(None), person], &[2]),
            (&[person, person, Some(None)], &[]),
        ];
        for (said, expected) in cases {
            let messages: Vec<Message> = (0..)
                .zip(said)
                .map(|(number, said)| message(number, *said))
                .collect();
            let expected: Vec<&Message> = expected.iter().map(|&at| &messages[at]).collect();
            assert_eq!(unanswered(&messages), expected, "{said:?}");
        }
    }
}
