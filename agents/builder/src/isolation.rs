//! Runs a task, or work on a build, alone that the program may have died of, so that the innocent go free.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::Suspects;
use ropewalk_orchestrator::deaths::decide::{Verdict, verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::Task;

use super::SharedState;
use super::context::{Plan, builds_in};
use super::decide::isolation::{Admission, SuspectState, admission};
use super::decide::order::claimable;
use super::error::BuilderError;

/// What of this process is tried alone, if anything is.
#[derive(Debug, Default)]
pub(crate) struct Isolation {
    /// One loop at a time, or the scheduler, looks for work while something is suspected.
    turn: tokio::sync::Mutex<()>,
    trial: Mutex<Option<String>>,
    /// How many pieces of work on builds run.
    works: AtomicUsize,
    /// Whether one of them waits to be tried alone.
    work_waits: AtomicBool,
    /// Whether a task waits for that, as of the last look of a loop.
    task_waits: AtomicBool,
}

/// Who may be claimed in one look, and the right to that look.
pub(crate) struct Turn<'a> {
    isolation: &'a Isolation,
    suspects: Vec<String>,
    pub(crate) admission: Admission,
    _right: Option<tokio::sync::MutexGuard<'a, ()>>,
}

impl Turn<'_> {
    /// Returns whether a task may be claimed.
    pub(crate) fn admits(&self, task: &Task) -> bool {
        match self.admission {
            Admission::Anyone => true,
            Admission::Nobody => false,
            Admission::Suspects => self.suspects.contains(&name(task)),
        }
    }

    /// Notes that a task was claimed.
    pub(crate) fn claimed(&self, task: &Task) {
        if self.admission == Admission::Suspects {
            *self.isolation.trial() = Some(name(task));
        }
    }
}

impl Isolation {
    /// Says who may be claimed now.
    pub(crate) async fn turn<'a>(
        &'a self,
        shared: &SharedState,
        context: &Context,
    ) -> Result<Turn<'a>, BuilderError> {
        let suspects = suspects(context);
        if suspects.is_empty() {
            return Ok(Turn {
                isolation: self,
                suspects,
                admission: Admission::Anyone,
                _right: None,
            });
        }
        let turn = self.turn.lock().await;
        let task_waits = one_is_ready(context, &suspects).await?;
        self.task_waits.store(task_waits, Ordering::Relaxed);
        let standing = self.standing(shared, &suspects, self.one_waits());
        Ok(Turn {
            isolation: self,
            suspects,
            admission: admission(&standing),
            _right: Some(turn),
        })
    }

    /// Notes that an attempt at a task has ended.
    pub(crate) fn end(&self, task: &Task) {
        self.acquit(&name(task));
    }

    /// Notes whether work on a build waits to be tried alone: until then nothing begins. Returns whether that is new.
    pub(crate) fn let_work_wait(&self, waits: bool) -> bool {
        self.work_waits.swap(waits, Ordering::Relaxed) != waits
    }

    /// Notes that no task is looked for, so that none is waited for.
    pub(crate) fn let_no_task_wait(&self) {
        self.task_waits.store(false, Ordering::Relaxed);
    }

    fn one_waits(&self) -> bool {
        self.work_waits.load(Ordering::Relaxed) || self.task_waits.load(Ordering::Relaxed)
    }

    fn standing(&self, shared: &SharedState, suspects: &[String], ready: bool) -> SuspectState {
        let trial = self.trial().clone();
        SuspectState {
            on_trial: trial.is_some_and(|name| suspects.contains(&name)),
            ready,
            running: shared.signals.count() + self.works.load(Ordering::Relaxed),
        }
    }

    fn acquit(&self, suspect: &str) {
        let mut trial = self.trial();
        if trial.as_deref() == Some(suspect) {
            *trial = None;
        }
    }

    fn trial(&self) -> MutexGuard<'_, Option<String>> {
        self.trial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a piece of work on a build is told that wants to begin.
pub(crate) enum WorkAdmission {
    /// It may, and is counted until this is dropped.
    Granted(WorkRight),
    /// It is to be tried alone, once nothing else runs.
    Waits,
    /// Not now.
    Refused,
}

/// The right to do a piece of work on a build.
pub(crate) struct WorkRight {
    shared: Arc<SharedState>,
    suspect: String,
    /// Whether others may wait for its end.
    is_awaited: bool,
}

impl WorkRight {
    /// Asks whether the work that deaths are counted for as `suspect` may begin now.
    pub(crate) fn ask(
        shared: &Arc<SharedState>,
        context: &Context,
        suspect: String,
    ) -> WorkAdmission {
        let deaths = context.registry.suspects().deaths(&suspect);
        let verdict = deaths.map_or(Verdict::Free, |deaths| verdict(deaths.count));
        if verdict == Verdict::Parked {
            return WorkAdmission::Refused;
        }
        let isolation = &shared.isolation;
        let is_suspected = verdict == Verdict::Alone;
        let suspects = suspects(context);
        if !suspects.is_empty() {
            let Ok(_turn) = isolation.turn.try_lock() else {
                return Self::later(is_suspected);
            };
            let ready = is_suspected || isolation.one_waits();
            match admission(&isolation.standing(shared, &suspects, ready)) {
                Admission::Anyone => {}
                Admission::Suspects if is_suspected => {
                    *isolation.trial() = Some(suspect.clone());
                }
                Admission::Suspects | Admission::Nobody => return Self::later(is_suspected),
            }
        }
        isolation.works.fetch_add(1, Ordering::Relaxed);
        WorkAdmission::Granted(Self {
            shared: Arc::clone(shared),
            suspect,
            is_awaited: !suspects.is_empty(),
        })
    }

    const fn later(is_suspected: bool) -> WorkAdmission {
        if is_suspected {
            WorkAdmission::Waits
        } else {
            WorkAdmission::Refused
        }
    }
}

impl Drop for WorkRight {
    fn drop(&mut self) {
        let isolation = &self.shared.isolation;
        isolation.works.fetch_sub(1, Ordering::Relaxed);
        isolation.acquit(&self.suspect);
        if self.is_awaited {
            self.shared.signals.wake_loops();
        }
    }
}

/// Names a task as the counts of deaths do.
pub(crate) fn name(task: &Task) -> String {
    Suspects::task(task.build, &task.id)
}

fn suspects(context: &Context) -> Vec<String> {
    let alone = context.registry.suspects().alone().into_iter();
    alone
        .map(|deaths| deaths.entity)
        .filter(|entity| entity.starts_with("task/") || entity.starts_with("build/"))
        .collect()
}

async fn one_is_ready(context: &Context, suspects: &[String]) -> Result<bool, BuilderError> {
    for build in builds_in(&context.store, &[BuildState::Running]).await? {
        if build.pause_requested || build.exhausted.is_some() || build.head.is_none() {
            continue;
        }
        let Some(plan) = Plan::load(&context.store, build.id).await? else {
            continue;
        };
        let tasks = plan.records();
        let mut ready = claimable(&tasks, context.source(), context.now()).into_iter();
        if ready.any(|task| suspects.contains(&name(task))) {
            return Ok(true);
        }
    }
    Ok(false)
}
