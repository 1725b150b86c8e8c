//! Finds who said what to the tasks of a build, and when: a task itself holds the words alone.

use chrono::{DateTime, SecondsFormat, Utc};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::question::{About, Answer, Question};
use ropewalk_schemas::{CloudEvent, Event, EventPattern, Payload};
use ropewalk_store::{EventFilter, ReadError, Store};

/// The events by which people speak to tasks.
const SPOKEN: [&str; 2] = ["build.tell", "task.retry"];

/// What a person said to a task.
pub(in crate::improvement) struct Remark {
    words: String,
    by: String,
    at: DateTime<Utc>,
}

impl Remark {
    /// Says whether these are the words, as a task holds them.
    pub(in crate::improvement) fn is(&self, words: &str) -> bool {
        self.words.trim() == words
    }

    /// Names who said it, and when.
    pub(in crate::improvement) fn attribution(&self) -> String {
        format!("{}, {}", self.by, moment(self.at))
    }
}

/// Writes a time as a review is told it.
pub(in crate::improvement) fn moment(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Loads what was said to tasks in the chain of a build, the oldest first: by itself, or as an answer, which may be words to a
/// task as well.
pub(super) async fn load(
    store: &Store,
    build: &Build,
    questions: &[Question],
) -> Result<Vec<Remark>, ReadError> {
    let mut all = Vec::new();
    for event_type in SPOKEN {
        let filter = EventFilter {
            correlation: Some(build.correlation_id),
            pattern: Some(EventPattern::of(event_type)),
            ..EventFilter::default()
        };
        let events = store.events(&filter).await?;
        all.extend(events.iter().filter_map(|stored| spoken(&stored.event)));
    }
    let of_tasks = questions.iter().filter(|question| is_of_a_task(question));
    all.extend(of_tasks.filter_map(|question| question.answer.as_ref().map(answered)));
    all.sort_by_key(|saying| saying.at);
    Ok(all)
}

fn is_of_a_task(question: &Question) -> bool {
    matches!(question.about, About::Task { .. })
}

fn spoken(event: &CloudEvent) -> Option<Remark> {
    let event = Event::try_from(event).ok()?;
    let (words, by) = match event.payload {
        Payload::BuildTell(told) => (told.text, told.said_by),
        Payload::TaskRetry(retry) => (retry.guidance?, retry.requested_by),
        _ => return None,
    };
    Some(Remark {
        words,
        by,
        at: event.time,
    })
}

fn answered(answer: &Answer) -> Remark {
    Remark {
        words: answer.text.clone(),
        by: answer.by.clone(),
        at: answer.at,
    }
}
