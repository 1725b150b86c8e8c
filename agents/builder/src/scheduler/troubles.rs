//! Counts what fails again and again in the work on builds: it rests longer each time, and people are told.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_store::{ChangeSet, Query, Versioned, retry_on_conflict};
use tokio::time::Instant;
use tracing::warn;

use super::work::Work;
use crate::SharedState;
use crate::context;
use crate::decide::failure::rest;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::Input;

/// From so many failures in a row on the build says what keeps it.
const SHOWN_FROM: u32 = 2;
/// After so many people are alerted.
const ALERT_AFTER: u32 = 5;
/// How the causes of these alerts begin.
const FAMILY: &str = "work/";

/// A piece of work on a build.
pub(super) type Piece = (BuildId, Work);

/// What failed when it was tried last.
#[derive(Debug, Default)]
pub(super) struct Troubles(HashMap<Piece, Trouble>);

/// A piece of work that failed so often in a row.
#[derive(Debug)]
struct Trouble {
    count: u32,
    rested: Option<TimeDelta>,
    /// When it may be tried again.
    until: Instant,
    /// What its build was given to say of it.
    shown: Option<String>,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            count: 0,
            rested: None,
            until: Instant::now(),
            shown: None,
        }
    }
}

impl Troubles {
    /// Takes up the troubles that an earlier process told of, so that their end is told, too.
    pub(super) async fn take_up(&mut self, context: &Context) -> Result<(), BuilderError> {
        for alert in open_alerts(context).await? {
            let Some(piece) = piece_of(&alert.cause) else {
                continue;
            };
            let trouble = Trouble {
                count: ALERT_AFTER,
                shown: Some(alert.message.clone()),
                ..Trouble::default()
            };
            self.0.entry(piece).or_insert(trouble);
        }
        Ok(())
    }

    /// Returns whether a piece of work is not to be tried yet.
    pub(super) fn rests(&self, piece: Piece) -> bool {
        let trouble = self.0.get(&piece);
        trouble.is_some_and(|trouble| Instant::now() < trouble.until)
    }

    /// Returns how long the next piece of work still rests.
    pub(super) fn due(&self) -> Option<Duration> {
        let now = Instant::now();
        let resting = self.0.values().filter(|trouble| now < trouble.until);
        resting.map(|trouble| trouble.until - now).min()
    }

    /// Lets a piece of work rest that waits for somebody, which is no failure.
    pub(super) fn wait(&mut self, piece: Piece, rest: Duration) {
        self.0.entry(piece).or_default().until = Instant::now() + rest;
    }

    /// Counts a failure, and tells of it when it is not the first in a row.
    pub(super) async fn failed(
        &mut self,
        shared: &SharedState,
        context: &Context,
        piece: Piece,
        error: &str,
    ) {
        let trouble = self.0.entry(piece).or_default();
        trouble.count += 1;
        let pause = rest(trouble.rested, &shared.options.tries);
        trouble.rested = Some(pause);
        trouble.until = Instant::now() + pause.to_std().unwrap_or_default();
        let told = piece.1.failed(trouble.count, error);
        warn!(build.id = %piece.0, "{told}");
        if trouble.count < SHOWN_FROM {
            return;
        }
        match show(shared, context, piece, trouble.count, &told).await {
            Ok(()) => trouble.shown = Some(told),
            Err(error) => {
                warn!(build.id = %piece.0, "build `{}` cannot say what keeps it: {error}", piece.0);
            }
        }
    }

    /// Takes back what was told of a piece of work that is done.
    pub(super) async fn over(&mut self, shared: &SharedState, context: &Context, piece: Piece) {
        let Some(trouble) = self.0.remove(&piece) else {
            return;
        };
        let mut of_build = self.0.iter().filter(|(other, _)| other.0 == piece.0);
        let next = of_build.find_map(|(_, other)| other.shown.clone());
        if let Err(error) = take_back(shared, context, piece, &trouble, next).await {
            warn!(build.id = %piece.0, "build `{}` still says what kept it: {error}", piece.0);
            // It is taken back at the next end of the same work, or once nobody wants it.
            self.0.insert(piece, trouble);
        }
    }

    /// Takes back what was told of work that nobody wants any more.
    pub(super) async fn forget_unless(
        &mut self,
        shared: &SharedState,
        context: &Context,
        is_wanted: impl Fn(&Piece) -> bool,
    ) {
        let all = self.0.keys().copied();
        let gone: Vec<Piece> = all.filter(|piece| !is_wanted(piece)).collect();
        for piece in gone {
            self.over(shared, context, piece).await;
        }
    }
}

/// Writes into the build what keeps it, and alerts people when that has gone on for long.
async fn show(
    shared: &SharedState,
    context: &Context,
    piece: Piece,
    count: u32,
    told: &str,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, piece.0, {
        let Some(build) = context::build(&context.store, piece.0).await? else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        let input = Input::Explain {
            told: Some(told.to_owned()),
        };
        let scene = Scene::new(shared, context, &build);
        let after = scene.build(&mut changes, input).await?;
        if after != build.record {
            changes.update(&build, &after);
        }
        if count >= ALERT_AFTER {
            let standing = context.store.get::<Alert>(&cause_of(piece)).await?;
            // Somebody may acknowledge it at the same time.
            if let Some(standing) = standing.filter(|alert| alert.cleared_at.is_none()) {
                let after = Alert {
                    message: told.to_owned(),
                    ..standing.record.clone()
                };
                changes.update(&standing, &after);
            } else {
                changes.put(&raised(piece, told, context));
            }
        }
        if !changes.is_empty() {
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

/// Lets the build say what else keeps it, unless it says something of its own by now, and clears the alert.
async fn take_back(
    shared: &SharedState,
    context: &Context,
    piece: Piece,
    trouble: &Trouble,
    next: Option<String>,
) -> Result<(), BuilderError> {
    if trouble.count < SHOWN_FROM {
        return Ok(());
    }
    retry_on_conflict!(BuilderError, piece.0, {
        let mut changes = ChangeSet::new();
        let build = context::build(&context.store, piece.0).await?;
        if let (Some(build), Some(shown)) = (build, &trouble.shown)
            && build.reason.as_ref() == Some(shown)
        {
            let input = Input::Explain { told: next.clone() };
            let scene = Scene::new(shared, context, &build);
            let after = scene.build(&mut changes, input).await?;
            changes.update(&build, &after);
        }
        if let Some(alert) = context.store.get::<Alert>(&cause_of(piece)).await?
            && alert.cleared_at.is_none()
        {
            let after = Alert {
                cleared_at: Some(context.now()),
                ..alert.record.clone()
            };
            changes.update(&alert, &after);
        }
        if !changes.is_empty() {
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

fn raised(piece: Piece, told: &str, context: &Context) -> Alert {
    Alert {
        cause: cause_of(piece),
        severity: Severity::Error,
        message: told.to_owned(),
        build: Some(piece.0),
        raised_at: context.now(),
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    }
}

async fn open_alerts(context: &Context) -> Result<Vec<Versioned<Alert>>, BuilderError> {
    let open = Query::new().equal("cleared", 0);
    Ok(context.store.list::<Alert>(open).await?)
}

fn cause_of((build, work): Piece) -> String {
    format!("{FAMILY}{build}/{}", work.as_str())
}

fn piece_of(cause: &str) -> Option<Piece> {
    let named = cause.strip_prefix(FAMILY)?;
    Work::of(&format!("build/{named}"))
}
