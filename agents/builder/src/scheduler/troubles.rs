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

use super::LOOKED_AFTER;
use super::work::Work;
use crate::SharedState;
use crate::context::{self, builds_in};
use crate::decide::counts::ADDITION;
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
#[derive(Debug, Default)]
struct Trouble {
    count: u32,
    rested: Option<TimeDelta>,
    /// When it may be tried again; at once where it did not fail in this process.
    until: Option<Instant>,
    /// What its build was given to say of it.
    shown: Option<String>,
}

impl Trouble {
    /// A trouble that an earlier process told of, as far as that is known.
    fn told(count: u32, told: &str) -> Self {
        Self {
            count,
            shown: Some(told.to_owned()),
            ..Self::default()
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
            let trouble = Trouble::told(ALERT_AFTER, &alert.message);
            self.0.entry(piece).or_insert(trouble);
        }
        // Of what failed less often nothing but the words in its build is left, and what somebody added to them.
        for build in builds_in(&context.store, &LOOKED_AFTER).await? {
            let told = build.reason.as_deref().unwrap_or_default();
            let told = told.split(ADDITION).next().unwrap_or_default();
            if let Some((work, count)) = Work::that_failed(told, ALERT_AFTER) {
                let trouble = Trouble::told(count, told);
                self.0.entry((build.id, work)).or_insert(trouble);
            }
        }
        Ok(())
    }

    /// Returns whether a piece of work is not to be tried yet.
    pub(super) fn rests(&self, piece: Piece) -> bool {
        let until = self.0.get(&piece).and_then(|trouble| trouble.until);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns how long the next piece of work still rests.
    pub(super) fn due(&self) -> Option<Duration> {
        let now = Instant::now();
        let ends = self.0.values().filter_map(|trouble| trouble.until);
        let left = ends.map(|until| until.saturating_duration_since(now));
        left.filter(|left| !left.is_zero()).min()
    }

    /// Lets a piece of work rest that waits for somebody, which is no failure.
    pub(super) fn wait(&mut self, piece: Piece, rest: Duration) {
        self.0.entry(piece).or_default().until = Some(Instant::now() + rest);
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
        trouble.until = Some(Instant::now() + pause.to_std().unwrap_or_default());
        let told = piece.1.failed(trouble.count, error);
        warn!(build.id = %piece.0, "{told}");
        if trouble.count < SHOWN_FROM {
            return;
        }
        match show(shared, context, piece, trouble, &told).await {
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

/// Returns what somebody added to what was shown, with what parts the two; none where the build does not say that any more.
fn added_to<'a>(reason: Option<&'a str>, shown: &str) -> Option<&'a str> {
    let added = reason?.strip_prefix(shown)?;
    (added.is_empty() || added.starts_with(ADDITION)).then_some(added)
}

/// Returns what the build says with what was added; none where that is nothing.
fn beside(told: Option<&str>, added: &str) -> Option<String> {
    match told {
        Some(told) => Some(format!("{told}{added}")),
        None => added.strip_prefix(ADDITION).map(str::to_owned),
    }
}

/// Writes into the build what keeps it, and alerts people when that has gone on for long.
async fn show(
    shared: &SharedState,
    context: &Context,
    piece: Piece,
    trouble: &Trouble,
    told: &str,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, piece.0, {
        let Some(build) = context::build(&context.store, piece.0).await? else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        let shown = trouble.shown.as_deref();
        let added = shown.and_then(|shown| added_to(build.reason.as_deref(), shown));
        let input = Input::Explain {
            told: beside(Some(told), added.unwrap_or_default()),
        };
        let scene = Scene::new(shared, context, &build);
        let after = scene.build(&mut changes, input).await?;
        if after != build.record {
            changes.update(&build, &after);
        }
        if trouble.count >= ALERT_AFTER {
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
            && let Some(added) = added_to(build.reason.as_deref(), shown)
        {
            let told = beside(next.as_deref(), added);
            let input = Input::Explain { told };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_gives_its_place_and_what_somebody_added_to_it_stays() {
        let shown = Work::Publication.failed(2, "no room; make some");
        let added = format!("{shown}; left by ada");
        for (reason, next, told) in [
            (&shown, None, None),
            (&shown, Some("more"), Some("more")),
            (&added, None, Some("left by ada")),
            (&added, Some("more"), Some("more; left by ada")),
        ] {
            let found = added_to(Some(reason), &shown).unwrap();
            assert_eq!(beside(next, found).as_deref(), told, "{reason}");
        }
        for reason in [None, Some("paused on request")] {
            assert_eq!(added_to(reason, &shown), None);
        }
        // Another process knows of the same words, and how often it was.
        let found = added.split(ADDITION).next();
        assert_eq!(found, Some(&*shown));
        let read = Work::that_failed(&added, ALERT_AFTER);
        assert_eq!(read, Some((Work::Publication, 2)));
    }
}
