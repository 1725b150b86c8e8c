//! Grants more files to a running attempt: free ones of nobody or of its own build.

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_engine::{FileGrants, GrantReply};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::lease::Holder;
use ropewalk_schemas::{AttemptId, BuildId, RepoPath, TaskId};
use ropewalk_store::{ChangeSet, CommitError};

use super::{Locks, Work, guard, held_now};
use crate::build::Shop;
use crate::build::claim::{lease, own};
use crate::build::context::{CONFLICTS, granted_lease, owner_of};
use crate::build::ending::Rows;
use crate::build::gate::tamper::is_test;
use crate::build::trouble::Trouble;

/// Grants files to one attempt.
pub(super) struct Grants {
    shop: Arc<Shop>,
    context: Context,
    ids: (BuildId, TaskId, AttemptId),
    locks: Locks,
}

impl Grants {
    /// Makes the grants of an attempt.
    pub(super) fn new(work: &Work<'_>) -> Self {
        let (build, task, attempt) = work.ids();
        Self {
            shop: Arc::clone(work.shop),
            context: work.context.clone(),
            ids: (build, task.clone(), attempt),
            locks: Arc::clone(&work.locks),
        }
    }

    async fn grant(&self, files: &[RepoPath]) -> Result<GrantReply, Trouble> {
        let mut wanted: Vec<RepoPath> = files.to_vec();
        wanted.sort_by_key(RepoPath::key);
        let held = held_now(&self.locks);
        wanted.retain(|file| !held.keys().any(|path| path.key() == file.key()));
        for _ in 0..CONFLICTS {
            let (build, task, attempt) = (self.ids.0, &self.ids.1, self.ids.2);
            let Some(rows) = Rows::load(&self.context, build, task, attempt).await? else {
                return Ok(GrantReply::Ended);
            };
            if let Some(refusal) = self.refusal(&wanted).await? {
                return Ok(GrantReply::Denied(refusal));
            }
            let mut changes = ChangeSet::new();
            changes.require(&rows.task);
            let holder = Holder {
                build,
                task: task.clone(),
                attempt,
                loop_name: rows.attempt.loop_name.clone(),
            };
            let now = self.context.now();
            for file in &wanted {
                changes.grant(lease(&self.shop, file, holder.clone(), &rows.task, now));
                own(&self.context, &mut changes, build, file).await?;
            }
            match self.context.store.commit(changes).await {
                Ok(committed) => {
                    let token = committed.token.unwrap_or_default();
                    let mut locks = guard(&self.locks);
                    locks.extend(wanted.into_iter().map(|file| (file, token)));
                    return Ok(GrantReply::Granted);
                }
                Err(CommitError::Conflict { .. } | CommitError::Held { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(GrantReply::Denied(
            "the files are contested; do the task without them".to_owned(),
        ))
    }

    /// Nobody waits with locks in hand: a file that is taken is refused, and so no ring of waits can close.
    async fn refusal(&self, files: &[RepoPath]) -> Result<Option<String>, Trouble> {
        for file in files {
            if is_test(file.as_str()) {
                return Ok(Some(format!("`{file}` is a test, which is not granted")));
            }
            if let Some(owned) = owner_of(&self.context.store, file).await?
                && owned.live
                && owned.row.build != self.ids.0
            {
                return Ok(Some(format!("`{file}` belongs to another build")));
            }
            if let Some(lease) = granted_lease(&self.context.store, file).await?
                && lease.holder.attempt != self.ids.2
            {
                let task = &lease.holder.task;
                return Ok(Some(format!("`{file}` is locked by task `{task}`")));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl FileGrants for Grants {
    async fn request(&self, files: &[RepoPath], _reason: &str) -> GrantReply {
        match self.grant(files).await {
            Ok(reply) => reply,
            Err(trouble) => GrantReply::Denied(format!("the files cannot be had now: {trouble}")),
        }
    }
}
