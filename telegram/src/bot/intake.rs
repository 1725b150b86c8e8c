//! Does what was asked for in its order, but for files: they are fetched beside it, so that nobody waits for the file of somebody
//! else. Whoever sent one is heard again once it is kept, and until then Telegram forgets nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use ropewalk_desk::phones;
use ropewalk_schemas::UserSlug;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::presses;
use crate::api::Update;
use crate::files;
use crate::surface::Surface;

/// How many files are there at once that are not kept yet.
const AT_ONCE: usize = 3;
/// How long is waited for a file before Telegram is asked again.
const LOOK: Duration = Duration::from_millis(500);

/// What was asked for, and how far it is done.
#[derive(Default)]
pub(super) struct Intake {
    /// The first update that is not done; those before it Telegram forgets.
    next: i64,
    /// The updates behind it that are done.
    done: BTreeSet<i64>,
    /// The files that are fetched or were, by the update that brings each.
    files: BTreeMap<i64, String>,
    fetches: JoinSet<()>,
    /// Whether an update waits for a file.
    waits: bool,
}

impl Intake {
    /// Returns the update from which on is asked.
    pub(super) const fn offset(&self) -> i64 {
        self.next
    }

    /// Does what `updates` are, all but those that wait for a file. Returns whether the process goes on.
    pub(super) async fn settle(
        &mut self,
        surface: &Surface,
        updates: &[Update],
        stop: &CancellationToken,
    ) -> bool {
        let mut held = BTreeSet::new();
        let mut first = None;
        for (place, update) in updates.iter().enumerate() {
            if self.done.contains(&update.id) {
                continue;
            }
            if self.is_held(surface, update, &mut held).await {
                first = first.or(Some(update.id));
                presses::put_off(surface, slice::from_ref(update)).await;
                continue;
            }
            if !presses::settle_first(surface, &updates[place..], stop).await {
                return false;
            }
            self.done.insert(update.id);
            if let Some(file) = self.files.remove(&update.id) {
                surface.fetched.take(&file);
            }
        }
        self.waits = first.is_some();
        let behind = updates.last().map(|last| last.id + 1);
        let next = first.or(behind).unwrap_or(self.next);
        self.next = next;
        self.done.retain(|id| *id >= next);
        true
    }

    /// Waits until a file is there, for a moment, where one is waited for: Telegram brings again at once what is not done.
    pub(super) async fn rest(&mut self) {
        if self.waits {
            tokio::select! {
                Some(_) = self.fetches.join_next() => {}
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Returns whether an update waits for a file, its own or one that its sender sent before: what one person does is done in its
    /// order. `held` names those who wait.
    async fn is_held(
        &mut self,
        surface: &Surface,
        update: &Update,
        held: &mut BTreeSet<UserSlug>,
    ) -> bool {
        let file = files::to_fetch(&update.did);
        if file.is_none() && held.is_empty() {
            return false;
        }
        let Some(from) = update.from else {
            return false;
        };
        let person = match phones::whose(&surface.services.store, &surface.people, from).await {
            Ok(Some(person)) => person,
            Ok(None) => return false,
            // Done before what is held, that would never be done.
            Err(_) => return true,
        };
        if held.contains(&person.name) {
            return true;
        }
        let Some(file) = file.filter(|file| !surface.fetched.has(&file.id)) else {
            return false;
        };
        held.insert(person.name);
        if !self.files.contains_key(&update.id) && self.files.len() < AT_ONCE {
            self.files.insert(update.id, file.id.clone());
            let (surface, file) = (surface.clone(), file.clone());
            self.fetches
                .spawn(async move { files::fetch_ahead(&surface, &file).await });
        }
        true
    }
}
