//! Notices as people see them.

use chrono::{DateTime, Utc};
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::{QuestionId, Subject};
use ropewalk_store::{Query, ReadError, Store, Versioned};
use schemars::JsonSchema;
use serde::Serialize;

/// A notice in the list; what its buttons carry is for its receiver alone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NoticeRow {
    /// Names it.
    pub key: String,
    /// How it is told, for example `telegram`.
    pub port: String,
    /// Who is told.
    pub receiver: String,
    /// The type of the event.
    #[serde(rename = "type")]
    pub event_type: String,
    /// What it is about.
    pub subject: Subject,
    /// The question that it puts.
    pub question: Option<QuestionId>,
    /// What happened; of a question this is written when it is sent.
    pub title: String,
    /// How far it has come.
    pub state: NoticeState,
    /// How often it was handed over in vain, or for nobody knows what.
    pub tries: u32,
    /// How often it may have arrived twice.
    pub repeats: u32,
    /// Why it did not arrive.
    pub error: Option<String>,
    /// When the port is next to do something about it.
    pub due: DateTime<Utc>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl From<Notice> for NoticeRow {
    fn from(notice: Notice) -> Self {
        Self {
            key: notice.key,
            port: notice.port,
            receiver: notice.receiver,
            event_type: notice.event_type,
            subject: notice.subject,
            question: notice.question,
            title: notice.text.title,
            state: notice.state,
            tries: notice.tries,
            repeats: notice.repeats,
            error: notice.error,
            due: notice.due,
            created_at: notice.created_at,
        }
    }
}

/// Lists what people are still to be told or could not be, the oldest first; `all` shows what arrived or was over too.
pub async fn list(store: &Store, all: bool) -> Result<Vec<NoticeRow>, ReadError> {
    let mut notices = store.list::<Notice>(Query::new()).await?;
    notices.sort_by_key(|notice| notice.created_at);
    let shown =
        |notice: &Versioned<Notice>| all || notice.is_open() || notice.state == NoticeState::Dead;
    let shown = notices.into_iter().filter(shown);
    Ok(shown.map(|notice| notice.record.into()).collect())
}
