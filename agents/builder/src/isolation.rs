//! Runs a task alone that the program may have died of, so that the innocent go free.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::Suspects;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::Task;

use super::SharedState;
use super::context::{Plan, builds_in};
use super::decide::isolation::{Admission, SuspectState, admission};
use super::decide::order::claimable;
use super::error::BuilderError;

/// Which task of this process is tried alone, if one is.
#[derive(Debug, Default)]
pub(crate) struct Isolation {
    /// One loop at a time looks for work while something is suspected.
    turn: tokio::sync::Mutex<()>,
    trial: Mutex<Option<String>>,
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
        let trial = self.trial().clone();
        let standing = SuspectState {
            on_trial: trial.is_some_and(|name| suspects.contains(&name)),
            ready: one_is_ready(context, &suspects).await?,
            running: shared.signals.count(),
        };
        Ok(Turn {
            isolation: self,
            suspects,
            admission: admission(&standing),
            _right: Some(turn),
        })
    }

    /// Notes that an attempt at a task has ended.
    pub(crate) fn end(&self, task: &Task) {
        let mut trial = self.trial();
        if trial.as_deref() == Some(&name(task)) {
            *trial = None;
        }
    }

    fn trial(&self) -> MutexGuard<'_, Option<String>> {
        self.trial.lock().unwrap_or_else(PoisonError::into_inner)
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
        .filter(|entity| entity.starts_with("task/"))
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
