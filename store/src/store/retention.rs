//! Forgets old events, but none that an open delivery or the timeline of something unfinished needs.

use chrono::{DateTime, Utc};
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::{Phase, Session};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{ContentHash, CorrelationId};
use tokio::sync::oneshot;

use crate::command::{Command, Step};
use crate::database::dialect::{Dialect, Statement, json};
use crate::error::{CommitError, ReadError};
use crate::query::Query;
use crate::store::Store;

/// How many hashes one select looks for.
const HASHES: usize = 500;

/// Says why old events could not be forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// What is unfinished could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The writer refused.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The data of forgotten events could not be removed.
    #[error("cannot remove data of forgotten events: {0}")]
    Blobs(#[from] std::io::Error),
}

impl Advice for ForgetError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
            Self::Blobs(_) => None,
        }
    }
}

/// Says what was forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionReport {
    /// Events, with their deliveries.
    pub events: u64,
    /// Files with data that no event refers to any more.
    pub blobs: u64,
}

impl Store {
    /// Forgets chains of events whose newest is older than `before`, and the data that only they referred to.
    ///
    /// An event stays whatever its age while a delivery of it is open, dead or parked, and while an idea, a
    /// specification, a build or a question of its chain is unfinished.
    pub async fn forget(&self, before: DateTime<Utc>) -> Result<RetentionReport, ForgetError> {
        let unfinished = self.unfinished().await?;
        let mut forgotten = RetentionReport::default();
        let mut next = Some(0);
        while let Some(after) = next {
            let step = Step {
                after,
                before,
                unfinished: unfinished.clone(),
            };
            let (reply, answer) = oneshot::channel();
            // Step by step, so that commits come in between.
            self.send(Command::Forget(step, reply)).await?;
            let stepped = answer.await.map_err(|_| CommitError::Closing)??;
            forgotten.events += stepped.events;
            next = stepped.next;
        }
        forgotten.blobs = self.remove_unused_blobs().await?;
        Ok(forgotten)
    }

    /// Lists the chains of what is not finished.
    async fn unfinished(&self) -> Result<Vec<CorrelationId>, ReadError> {
        let mut chains = Vec::new();
        // What has ended begins again only by an answer, whose question is pending until then, or by a verb.
        let ended = |state| matches!(state, BuildState::Succeeded | BuildState::Failed);
        let open = BuildState::ALL.iter().filter(|state| !ended(**state));
        let builds = Query::new().one_of("state", open.copied());
        let builds = self.list::<Build>(builds).await?;
        chains.extend(builds.iter().map(|build| build.correlation_id));
        let sessions = Query::new().not_equal("phase", Phase::Complete);
        let sessions = self.list::<Session>(sessions).await?;
        chains.extend(sessions.iter().map(|session| session.correlation_id));
        let specs = Query::new().one_of("state", [SpecState::Draft, SpecState::Generated]);
        let specs = self.list::<Specification>(specs).await?;
        chains.extend(specs.iter().map(|spec| spec.correlation_id));
        let questions = Query::new().equal("state", QuestionState::Pending);
        let questions = self.list::<Question>(questions).await?;
        chains.extend(questions.iter().map(|question| question.correlation_id));
        chains.sort_unstable();
        chains.dedup();
        Ok(chains)
    }

    async fn remove_unused_blobs(&self) -> Result<u64, ForgetError> {
        let Some(files) = self.database.blobs().cloned() else {
            return Ok(0);
        };
        let now = self.clock.now().into();
        let listed = files.clone();
        let old = blocking(move || listed.old(now)).await?;
        let mut unused = Vec::new();
        for hashes in old.chunks(HASHES) {
            let select = select_used(self.database.dialect(), hashes);
            let rows = self.database.read(select).await.map_err(ReadError::from)?;
            let used: Vec<String> = rows
                .into_iter()
                .flatten()
                .filter_map(crate::value::Value::into_text)
                .collect();
            let free = hashes
                .iter()
                .filter(|hash| !used.iter().any(|used| used == hash.as_str()));
            unused.extend(free.cloned());
        }
        Ok(blocking(move || files.remove(&unused, now)).await?)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|stopped| Err(stopped.into()))
}

/// Returns a select of those of `hashes` that an event refers to.
pub(crate) fn select_used(dialect: Dialect, hashes: &[ContentHash]) -> Statement {
    let mut statement = Statement::new("SELECT DISTINCT hash FROM blobs WHERE hash IN (SELECT ");
    statement.push(dialect.scalar()).push(" FROM ");
    statement.rows(dialect, json(&hashes)).push(")");
    statement
}
