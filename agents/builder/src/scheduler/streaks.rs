//! Counts what fails again and again in the work on builds: it rests longer each time, and people are told.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::build::{Build, FailingWork};
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

/// What failed when it was tried last, each how often in a row.
///
/// A streak that a program told of in the reason alone, before builds noted what fails, is not known to a later program. That is
/// accepted: its words stay until the next input that sets the reason of the build.
#[derive(Debug, Default)]
pub(super) struct FailureStreaks(HashMap<Piece, FailureStreak>);

/// So many failures of a piece of work in a row; none where it only waits.
#[derive(Debug, Default)]
struct FailureStreak {
    count: u32,
    rested: Option<TimeDelta>,
    /// When it may be tried again; at once where it did not fail in this process.
    until: Option<Instant>,
    /// What its build was given to say of it.
    shown: Option<String>,
}

impl FailureStreak {
    /// One that an earlier process counted, as far as that is known.
    fn counted_before(count: u32, shown: &str) -> Self {
        Self {
            count,
            shown: Some(shown.to_owned()),
            ..Self::default()
        }
    }
}

impl FailureStreaks {
    /// Takes up the streaks that an earlier process told of, so that their end is told, too.
    pub(super) async fn take_up(&mut self, context: &Context) -> Result<(), BuilderError> {
        for build in builds_in(&context.store, &LOOKED_AFTER).await? {
            for failing in &build.failing {
                // A later program may have known of other work.
                let Some(work) = Work::parse(&failing.work) else {
                    continue;
                };
                let streak = FailureStreak::counted_before(failing.count, &failing.shown);
                self.0.entry((build.id, work)).or_insert(streak);
            }
        }
        // A build that has ended says nothing of it.
        for alert in open_alerts(context).await? {
            let Some(piece) = piece_of(&alert.cause) else {
                continue;
            };
            let streak = FailureStreak::counted_before(ALERT_AFTER, &alert.message);
            self.0.entry(piece).or_insert(streak);
        }
        Ok(())
    }

    /// Returns whether a piece of work is not to be tried yet.
    pub(super) fn rests(&self, piece: Piece) -> bool {
        let until = self.0.get(&piece).and_then(|streak| streak.until);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns how long the next piece of work still rests.
    pub(super) fn due(&self) -> Option<Duration> {
        let now = Instant::now();
        let ends = self.0.values().filter_map(|streak| streak.until);
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
        let streak = self.0.entry(piece).or_default();
        streak.count += 1;
        let pause = rest(streak.rested, &shared.options.tries);
        streak.rested = Some(pause);
        streak.until = Some(Instant::now() + pause.to_std().unwrap_or_default());
        let told = piece.1.failed(streak.count, error);
        warn!(build.id = %piece.0, "{told}");
        if streak.count < SHOWN_FROM {
            return;
        }
        match show(shared, context, piece, streak, &told).await {
            Ok(()) => streak.shown = Some(told),
            Err(error) => {
                warn!(build.id = %piece.0, "build `{}` cannot say what keeps it: {error}", piece.0);
            }
        }
    }

    /// Takes back what was told of a piece of work that is done.
    pub(super) async fn over(&mut self, shared: &SharedState, context: &Context, piece: Piece) {
        let Some(streak) = self.0.remove(&piece) else {
            return;
        };
        let mut of_build = self.0.iter().filter(|(other, _)| other.0 == piece.0);
        let next = of_build.find_map(|(_, other)| other.shown.clone());
        if let Err(error) = take_back(shared, context, piece, &streak, next).await {
            warn!(build.id = %piece.0, "build `{}` still says what kept it: {error}", piece.0);
            // It is taken back at the next end of the same work, or once nobody wants it.
            self.0.insert(piece, streak);
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

/// Notes in a build what its reason says of work that failed so often, so that a later process knows of it.
fn note(build: &mut Build, work: Work, count: u32, shown: &str) {
    build.failing.retain(|one| one.work != work.as_str());
    if added_to(build.reason.as_deref(), shown).is_some() {
        build.failing.push(FailingWork {
            work: work.as_str().to_owned(),
            count,
            shown: shown.to_owned(),
        });
    }
}

/// Writes into the build what keeps it, and alerts people when that has gone on for long.
async fn show(
    shared: &SharedState,
    context: &Context,
    piece: Piece,
    streak: &FailureStreak,
    told: &str,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, piece.0, {
        let Some(build) = context::build(&context.store, piece.0).await? else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        let shown = streak.shown.as_deref();
        let added = shown.and_then(|shown| added_to(build.reason.as_deref(), shown));
        let input = Input::Explain {
            told: beside(Some(told), added.unwrap_or_default()),
        };
        let scene = Scene::new(shared, context, &build);
        let mut after = scene.build(&mut changes, input).await?;
        note(&mut after, piece.1, streak.count, told);
        if after != build.record {
            changes.update(&build, &after);
        }
        if streak.count >= ALERT_AFTER {
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
    streak: &FailureStreak,
    next: Option<String>,
) -> Result<(), BuilderError> {
    if streak.count < SHOWN_FROM {
        return Ok(());
    }
    retry_on_conflict!(BuilderError, piece.0, {
        let mut changes = ChangeSet::new();
        if let Some(build) = context::build(&context.store, piece.0).await? {
            let mut after = build.record.clone();
            let shown = streak.shown.as_deref();
            if let Some(added) = shown.and_then(|shown| added_to(build.reason.as_deref(), shown)) {
                let told = beside(next.as_deref(), added);
                let scene = Scene::new(shared, context, &build);
                after = scene.build(&mut changes, Input::Explain { told }).await?;
            }
            after.failing.retain(|one| one.work != piece.1.as_str());
            if after != build.record {
                changes.update(&build, &after);
            }
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
    use crate::decide::fixture;

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
    }

    #[test]
    fn what_the_reason_says_is_noted_once_for_each_work() {
        let mut build = Build {
            reason: Some("broken; left by ada".to_owned()),
            ..fixture::build()
        };
        let noted = |build: &Build| {
            let failing = build.failing.iter();
            let failing = failing.map(|one| (one.work.clone(), one.count, one.shown.clone()));
            failing.collect::<Vec<_>>()
        };
        let of = |work: &str, count: u32, shown: &str| (work.to_owned(), count, shown.to_owned());
        note(&mut build, Work::Publication, 2, "broken");
        note(&mut build, Work::Check, 3, "red");
        assert_eq!(noted(&build), [of("publication", 2, "broken")]);
        build.reason = Some("red".to_owned());
        note(&mut build, Work::Check, 4, "red");
        let both = [of("publication", 2, "broken"), of("check", 4, "red")];
        assert_eq!(noted(&build), both, "what other words hide is known still");
        note(&mut build, Work::Publication, 3, "broken");
        assert_eq!(noted(&build), [of("check", 4, "red")], "it is said no more");
    }
}
