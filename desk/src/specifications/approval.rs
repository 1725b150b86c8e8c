//! What it takes to approve a revision: somebody who may, and the hash of what was shown.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::{Approval, Price, SpecState, Specification};
use ropewalk_schemas::{ContentHash, Payload, Priority, Slug, SpecId, Subject, UserSlug};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, ReadError, Store, Versioned, retry_on_conflict,
};

use super::close_questions;
use super::plan::{self, IdeaPlan};
use crate::people::{PermissionError, Person};
use crate::views::specification::number_of;

/// Says why an approval was refused.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// There is no such specification.
    #[error("no specification has the id `{0}`")]
    Unknown(SpecId),
    /// Somebody was first.
    #[error("specification `{spec}` was already approved by {by} at {at}")]
    Already {
        /// The specification.
        spec: SpecId,
        /// Who was first.
        by: UserSlug,
        /// When.
        at: String,
    },
    /// It was put away, and an earlier revision is approved.
    #[error(
        "revision {revision} of specification `{spec}` was rejected, and revision {approved} stands approved"
    )]
    PutAway {
        /// The specification.
        spec: SpecId,
        /// The revision that was put away.
        revision: u32,
        /// The one that is approved.
        approved: u32,
    },
    /// The hash is not that of the newest revision.
    #[error("`{given}` is not the newest revision of specification `{spec}`")]
    Stale {
        /// The specification.
        spec: SpecId,
        /// The hash as given.
        given: ContentHash,
        /// The newest revision.
        revision: u32,
    },
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// The idea was given up.
    #[error("the idea `{0}` was abandoned, and nothing of it is built any more")]
    Abandoned(Slug),
    /// The idea is built by another specification.
    #[error(
        "specification `{spec}` is not that by which the idea `{idea}` is built: that is `{}`, {}",
        .plan.spec, .plan.progress
    )]
    Elsewhere {
        /// The specification.
        spec: SpecId,
        /// The idea.
        idea: Slug,
        /// The other specification, and how far it has come.
        plan: IdeaPlan,
    },
    /// There is nothing to approve.
    #[error("specification `{spec}` is {state}, and only a generated one can be approved")]
    NotReady {
        /// The specification.
        spec: SpecId,
        /// Its state.
        state: SpecState,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CommitFailure for ApproveError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

/// What was approved.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovedRevision {
    /// The specification.
    pub spec: SpecId,
    /// The revision.
    pub revision: u32,
    /// Its hash.
    pub hash: ContentHash,
    /// The price that was shown.
    pub price: Option<Price>,
}

/// Says why what was asked about a specification is closed that somebody approved.
pub fn approved_by(by: &UserSlug) -> String {
    format!("the specification was approved by {by}")
}

/// Approves one revision by its hash, exactly once, for somebody who may.
pub async fn approve(
    context: &Context,
    spec: SpecId,
    hash: &ContentHash,
    by: &Person,
    priority: Priority,
) -> Result<ApprovedRevision, ApproveError> {
    by.demand(Right::Approve)?;
    retry_on_conflict!(ApproveError, spec, {
        let found = context
            .store
            .get::<Specification>(&spec.to_string())
            .await?;
        let found = found.ok_or(ApproveError::Unknown(spec))?;
        let context = context
            .for_claim(found.correlation_id, Priority::URGENT)
            .because_of_newest(Subject::specification(spec), "spec.generated")
            .await?;
        let mut changes = ChangeSet::new();
        let approved =
            add_approval(&mut changes, &context, &found, hash, (&by.name, priority)).await?;
        let reason = approved_by(&by.name);
        close_questions(&mut changes, &context, &found, &reason).await?;
        // Where somebody was faster, who it was is told.
        context.store.commit(changes).await?;
        Ok(Some(approved))
    })
}

/// Adds to `changes` that a revision is approved, if it may be.
pub async fn add_approval(
    changes: &mut ChangeSet,
    context: &Context,
    spec: &Versioned<Specification>,
    hash: &ContentHash,
    (by, priority): (&UserSlug, Priority),
) -> Result<ApprovedRevision, ApproveError> {
    let idea = context.store.get::<Idea>(spec.idea.as_str()).await?;
    if idea
        .as_ref()
        .is_some_and(|idea| idea.state == IdeaState::Abandoned)
    {
        return Err(ApproveError::Abandoned(spec.idea.clone()));
    }
    check(&context.store, spec, hash).await?;
    if let Some(idea) = idea.filter(|_| spec.approval.is_none()) {
        // Approvals of two specifications at once would both find no other: the idea is what they both hold.
        changes.update(&idea, &idea.record);
    }
    let now = context.now();
    let approval = Approval {
        by: by.clone(),
        at: now,
        hash: hash.clone(),
        revision: spec.revision,
        price: spec.price.clone(),
    };
    changes.update(
        spec,
        &Specification {
            state: SpecState::Approved,
            approval: Some(approval),
            updated_at: now,
            ..spec.record.clone()
        },
    );
    changes.emit(context.event(
        Subject::specification(spec.id),
        Payload::SpecApproved(SpecApproved {
            spec_id: spec.id,
            idea_slug: spec.idea.clone(),
            user_slug: spec.user.clone(),
            revision: spec.revision,
            hash: hash.clone(),
            approved_by: by.clone(),
            priority,
            price: spec.price.clone(),
        }),
    ));
    Ok(ApprovedRevision {
        spec: spec.id,
        revision: spec.revision,
        hash: hash.clone(),
        price: spec.price.clone(),
    })
}

/// Refuses what is not the newest revision, or not that by which its idea is built, or not to be approved any more.
async fn check(
    store: &Store,
    spec: &Specification,
    hash: &ContentHash,
) -> Result<(), ApproveError> {
    if let Some(approval) = spec.approval_of_newest() {
        let meant = number_of(store, spec, hash).await?;
        if let Some(revision) = meant.filter(|revision| *revision > approval.revision) {
            return Err(ApproveError::PutAway {
                spec: spec.id,
                revision,
                approved: approval.revision,
            });
        }
        return Err(ApproveError::Already {
            spec: spec.id,
            by: approval.by.clone(),
            at: approval.at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        });
    }
    let newest = match (spec.state, &spec.hash) {
        (SpecState::Generated, Some(newest)) => newest,
        (state, _) => {
            return Err(ApproveError::NotReady {
                spec: spec.id,
                state,
            });
        }
    };
    if newest != hash {
        return Err(ApproveError::Stale {
            spec: spec.id,
            given: hash.clone(),
            revision: spec.revision,
        });
    }
    if let Some(plan) = plan::in_place_of(store, spec).await? {
        return Err(ApproveError::Elsewhere {
            spec: spec.id,
            idea: spec.idea.clone(),
            plan,
        });
    }
    Ok(())
}
