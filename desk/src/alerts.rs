//! What people say about alerts: that they have seen them.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::alert::{Acknowledgement, Alert};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, Query, ReadError, Store, Versioned, retry_on_conflict,
};

use crate::people::Person;

/// Says why an alert was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum AcknowledgeError {
    /// No alert that stands is called so.
    #[error("no alert that stands is called `{0}`")]
    Unknown(String),
    /// More than one alert begins so.
    #[error("`{cause}` fits {count} alerts")]
    Ambiguous {
        /// What was given.
        cause: String,
        /// How many it fits.
        count: usize,
    },
    /// Somebody was first.
    #[error("the alert `{cause}` was acknowledged by {by} at {at}")]
    Already {
        /// The alert.
        cause: String,
        /// Who was first.
        by: String,
        /// When.
        at: String,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CommitFailure for AcknowledgeError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

/// Records that `person` has seen an alert, named by its cause or the beginning of that; who was first stays.
pub async fn acknowledge(
    context: &Context,
    cause: &str,
    person: &Person,
) -> Result<Alert, AcknowledgeError> {
    retry_on_conflict!(AcknowledgeError, cause, {
        let before = find(&context.store, cause).await?;
        if let Some(seen) = &before.acknowledged {
            return Err(AcknowledgeError::Already {
                cause: before.cause.clone(),
                by: seen.by.to_string(),
                at: seen.at.to_rfc3339(),
            });
        }
        let after = Alert {
            acknowledged: Some(Acknowledgement {
                by: person.name.clone(),
                at: context.now(),
            }),
            ..before.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&before, &after);
        // It may grow worse, or somebody be faster, in the same moment.
        context.store.commit(changes).await?;
        Ok(Some(after))
    })
}

async fn find(store: &Store, cause: &str) -> Result<Versioned<Alert>, AcknowledgeError> {
    let mut open = store
        .list::<Alert>(Query::new().equal("cleared", 0))
        .await?;
    if let Some(exact) = open.iter().position(|alert| alert.cause == cause) {
        return Ok(open.swap_remove(exact));
    }
    open.retain(|alert| !cause.is_empty() && alert.cause.starts_with(cause));
    let count = open.len();
    match (open.pop(), count) {
        (Some(only), 1) => Ok(only),
        (None, _) => Err(AcknowledgeError::Unknown(cause.to_owned())),
        (Some(_), count) => Err(AcknowledgeError::Ambiguous {
            cause: cause.to_owned(),
            count,
        }),
    }
}
