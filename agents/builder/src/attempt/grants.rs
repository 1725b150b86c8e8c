//! Grants more files to a running attempt: at once if they are free, else it waits for them with its locks in hand.

pub(super) mod following;
pub(super) mod links;

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_coordination::locks::{self, LockConflict, LockRequest};
use ropewalk_coordination::ownership::Owner;
use ropewalk_engine::{FileGrants, GrantReply};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::clip;
use ropewalk_schemas::lease::{Holder, Lease};
use ropewalk_schemas::payload::LockExtended;
use ropewalk_schemas::{CommitId, Event, Payload, RepoPath, Subject};
use ropewalk_store::{CONFLICTS, ChangeSet, CommitError, Versioned};

use super::rows::Rows;
use super::work::{Base, Locks, Work, based_on, guard, held_now};
use crate::SharedState;
use crate::claim::obstacles::{give_all, locked, owners};
use crate::claim::waiting::{self, FreedLocks, WaitOutcome};
use crate::context::{self, of_build};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::task::{Input, apply_alone};
use following::FollowerSender;

/// So much of what a model says of its request is kept.
const REASON_LETTERS: usize = 200;

/// Grants files to one attempt.
pub(super) struct Grants {
    shared: Arc<SharedState>,
    context: Context,
    holder: Holder,
    base: Base,
    follow: FollowerSender,
    /// Whether the attempt works from the head of its build, and not from what it makes of two.
    on_head: bool,
    locks: Locks,
}

/// What one look at the files came to.
enum Look {
    Answer(GrantReply),
    /// Others hold them, and the wait is written down.
    Waits,
    /// Somebody changed what was looked at.
    Again,
}

impl Grants {
    /// Makes the grants of an attempt.
    pub(super) fn new(work: &Work<'_>, follow: FollowerSender) -> Self {
        let (build, task, attempt) = work.ids();
        Self {
            shared: Arc::clone(work.shared),
            context: work.context.clone(),
            holder: Holder {
                build,
                task: task.clone(),
                attempt,
                loop_name: work.claim.attempt.loop_name.clone(),
            },
            base: Arc::clone(&work.base),
            follow,
            on_head: work.claim.task.joins.is_none(),
            locks: Arc::clone(&work.locks),
        }
    }

    /// Grants files, as soon as nobody else holds them.
    pub(super) async fn grant(
        &self,
        files: &[RepoPath],
        why: &str,
    ) -> Result<GrantReply, BuilderError> {
        let held = held_now(&self.locks);
        let wanted = files
            .iter()
            .filter(|file| !held.keys().any(|path| path.key() == file.key()));
        let request = LockRequest {
            holder: self.holder.clone(),
            files: wanted.cloned().collect(),
            ttl: self.shared.options.lease,
            reason: reason(&self.holder, why),
            since: self.context.now(),
        };
        let mut freed = FreedLocks::listen(&self.shared, &self.context);
        let mut conflicts = 0;
        while conflicts < CONFLICTS {
            match self.look(&request, why).await? {
                Look::Answer(reply) => return Ok(reply),
                Look::Again => conflicts += 1,
                Look::Waits => {
                    conflicts = 0;
                    freed.next().await;
                }
            }
        }
        Ok(GrantReply::Denied(
            "the files are contested; do the task without them".to_owned(),
        ))
    }

    async fn look(&self, request: &LockRequest, why: &str) -> Result<Look, BuilderError> {
        let (build, task, attempt) = (self.holder.build, &self.holder.task, self.holder.attempt);
        let Some(rows) = Rows::load(&self.context, build, task, attempt).await? else {
            let reason = "the task was taken away".to_owned();
            return Ok(Look::Answer(GrantReply::Ended(reason)));
        };
        let owners = owners(&self.context, &request.files).await?;
        if let Some(refusal) = self.refusal(&owners).await? {
            return self.refuse(&rows, refusal).await;
        }
        let leases = locks::held_on(&self.context.store, &request.files).await?;
        let blocked = locks::blocked_extension(request, &leases);
        if blocked.is_empty() {
            self.take((request, why), &owners, &rows).await
        } else {
            self.wait(request, &rows, &leases, &blocked).await
        }
    }

    async fn take(
        &self,
        (request, why): (&LockRequest, &str),
        owners: &[(RepoPath, Option<Owner>)],
        rows: &Rows,
    ) -> Result<Look, BuilderError> {
        let now = self.context.now();
        let mut changes = ChangeSet::new();
        let scene = Scene::new(&self.shared, &self.context, &rows.build);
        let task = scene.task(&mut changes, &rows.task, Input::Extend).await?;
        changes.update(&rows.task, &task);
        locks::acquire(&mut changes, request, now);
        give_all(&mut changes, self.holder.build, owners, now);
        changes.emit(self.told(&request.files, why, rows));
        match self.context.store.commit(changes).await {
            Ok(committed) => {
                let token = committed.token.unwrap_or_default();
                let files = request.files.iter().cloned();
                guard(&self.locks).extend(files.map(|file| (file, token)));
                Ok(Look::Answer(GrantReply::Granted { moved: false }))
            }
            Err(CommitError::Conflict { .. } | CommitError::Held { .. }) => Ok(Look::Again),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells that the attempt got files, and why.
    fn told(&self, files: &[RepoPath], why: &str, rows: &Rows) -> Event {
        let (build, task) = (self.holder.build, &self.holder.task);
        let payload = Payload::LockExtended(LockExtended {
            build_id: build,
            task_id: task.clone(),
            attempt_id: self.holder.attempt,
            files: files.to_vec(),
            reason: clip::line(why, REASON_LETTERS),
        });
        let context = of_build(&self.context, &rows.build).because_of(rows.task.cause);
        context.event(Subject::task(build, task), payload)
    }

    /// Waits with the locks of the attempt in hand: this is what can close a cycle.
    async fn wait(
        &self,
        request: &LockRequest,
        rows: &Rows,
        leases: &[Versioned<Lease>],
        blocked: &[LockConflict],
    ) -> Result<Look, BuilderError> {
        let waiter = locks::party(&self.holder);
        let waits: Vec<_> = blocked
            .iter()
            .map(|each| each.wait(waiter.clone(), request.since))
            .collect();
        let told: Vec<String> = locked(blocked, leases).collect();
        let told = format!("waits for {}", told.join(" and "));
        let task = apply_alone(&rows.task, Input::Await { told }, self.context.now())?;
        let mut changes = ChangeSet::new();
        if task == rows.task.record {
            changes.require(&rows.task);
        } else {
            changes.update(&rows.task, &task);
        }
        for lease in leases {
            changes.require(lease);
        }
        let context = of_build(&self.context, &rows.build).because_of(rows.task.cause);
        let came = waiting::wait(&self.shared, &context, &waiter, changes, &waits).await?;
        Ok(match came {
            WaitOutcome::Written => Look::Waits,
            WaitOutcome::Freed | WaitOutcome::Contended => Look::Again,
            WaitOutcome::GaveWay(cycle) => {
                let reason = format!("it gave way to break a deadlock: {cycle}");
                Look::Answer(GrantReply::Ended(reason))
            }
        })
    }

    /// Says what no waiting would change.
    async fn refusal(
        &self,
        owners: &[(RepoPath, Option<Owner>)],
    ) -> Result<Option<String>, BuilderError> {
        for (file, owner) in owners {
            let Some(owner) = owner else {
                continue;
            };
            if owner.keeps_from(self.holder.build) {
                return Ok(Some(format!("`{file}` belongs to another build")));
            }
            if let Some(earlier) = owner.leaves_to(self.holder.build)
                && !self.stands_on(&earlier.commit).await?
            {
                let other = earlier.build;
                let told = format!("`{file}` is not yet here as build `{other}` left it");
                return Ok(Some(told));
            }
        }
        Ok(None)
    }

    async fn stands_on(&self, commit: &CommitId) -> Result<bool, BuilderError> {
        let base = based_on(&self.base);
        Ok(self.shared.clone.is_ancestor(commit, &base).await?)
    }

    /// Returns the head of the build where it has other contents of `files` than the attempt works from; nobody else can
    /// land on them any more.
    pub(super) async fn later_head(
        &self,
        files: &[RepoPath],
    ) -> Result<Option<CommitId>, BuilderError> {
        let build = context::build(&self.context.store, self.holder.build).await?;
        let head = build.and_then(|build| build.head.clone());
        let Some(head) = head.filter(|_| self.on_head) else {
            return Ok(None);
        };
        let base = based_on(&self.base);
        if head == base {
            return Ok(None);
        }
        let clone = &self.shared.clone;
        let changed = clone.changed_files(base.as_str(), head.as_str()).await?;
        let differs = changed
            .iter()
            .filter_map(|change| RepoPath::parse(&change.path).ok())
            .any(|path| files.iter().any(|file| file.key() == path.key()));
        Ok(differs.then_some(head))
    }

    async fn serve(&self, files: &[RepoPath], why: &str) -> Result<GrantReply, BuilderError> {
        let reply = self.grant(files, why).await?;
        let GrantReply::Granted { .. } = reply else {
            return Ok(reply);
        };
        let Some(head) = self.later_head(files).await? else {
            return Ok(reply);
        };
        Ok(if following::ask(&self.follow, head).await {
            GrantReply::Granted { moved: true }
        } else {
            GrantReply::Ended("the attempt has ended".to_owned())
        })
    }

    /// Refuses, and ends the wait if there was one.
    async fn refuse(&self, rows: &Rows, refusal: String) -> Result<Look, BuilderError> {
        let mut changes = ChangeSet::new();
        let scene = Scene::new(&self.shared, &self.context, &rows.build);
        let task = scene.task(&mut changes, &rows.task, Input::Refrain).await?;
        if !changes.is_empty() {
            changes.update(&rows.task, &task);
            match self.context.store.commit(changes).await {
                Ok(_) => {}
                Err(CommitError::Conflict { .. }) => return Ok(Look::Again),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Look::Answer(GrantReply::Denied(refusal)))
    }
}

/// Says for whom and why a file is locked, as people read it.
fn reason(holder: &Holder, why: &str) -> String {
    let kept = clip::line(why, REASON_LETTERS);
    format!("task {} of {}: {kept}", holder.task, holder.build)
}

#[async_trait]
impl FileGrants for Grants {
    async fn request(&self, files: &[RepoPath], reason: &str) -> GrantReply {
        match self.serve(files, reason).await {
            Ok(reply) => reply,
            Err(error) => GrantReply::Denied(format!("the files cannot be had now: {error}")),
        }
    }
}
