//! Lets the next model of a role take over for the rest of a job: from one whose provider is away or has its quota used up,
//! from one that has no room for the conversation, and from one whose replies come to nothing.

use std::sync::Arc;

use tracing::warn;

use super::Session;
use super::asking::CallFailure;
use crate::error::{EngineError, Succession};
use crate::event::{JobEvent, Observer};
use crate::job::{ModelEntry, Models};

/// So many replies to one call break off after their first words before another model is asked, whatever ended them but
/// the end of all their time: whoever takes over is kept, so that what may be chance is asked for again first, after a pause.
const BROKEN_OFF: usize = 3;

impl Session<'_> {
    /// Returns the model that is asked now.
    pub(super) fn asked(&self) -> ModelEntry {
        let ladder = self.models.ladder(self.job.role);
        let entry = ladder.get(self.rung).copied();
        entry
            .unwrap_or_else(|| self.models.of(self.job.role))
            .clone()
    }

    /// Finds who is there: nobody asks a provider that is known to be away.
    pub(super) async fn reach(&mut self, observer: &dyn Observer) -> Result<(), EngineError> {
        while let Err(error) = self.engine.check_outage(&self.asked()).await {
            self.fall_back(error.into(), observer).await?;
        }
        Ok(())
    }

    /// Lets the next model of the role take over for the rest of the job; fails as before where there is none, or where
    /// it would not help, and by the budgets where nothing is left to ask it with.
    pub(super) async fn fall_back(
        &mut self,
        failed: CallFailure,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let Some(to) = self.successor() else {
            return Err(failed.error);
        };
        let from = self.asked();
        let helps = match failed.error.succession(failed.usage.is_some()) {
            Succession::AtOnce => true,
            // The row of this one is among them.
            Succession::OnceRepeated => {
                self.journal.broken_off(self.turn, &from).await? >= BROKEN_OFF
            }
            Succession::Never => false,
        };
        if !helps {
            return Err(failed.error);
        }
        // What broke off was paid.
        self.engine.check_budgets(self.job).await?;
        self.rung += 1;
        let (from, reason) = (from.configured_name(), failed.error.to_string());
        warn!("`{to}` takes over from `{from}`: {reason}");
        observer.see(JobEvent::FellBack { from, to, reason });
        Ok(())
    }

    /// Names who takes over next.
    fn successor(&self) -> Option<String> {
        let ladder = self.models.ladder(self.job.role);
        let next = ladder.get(self.rung + 1).copied();
        next.map(ModelEntry::configured_name)
    }

    /// Takes the models as they are now for the turn that begins. Who took over is kept, unless another was put in its place
    /// or before it: then the first is asked again.
    pub(super) fn take_models(&mut self) {
        let now = self.engine.models.now();
        if Arc::ptr_eq(&now, &self.models) {
            return;
        }
        if self.up_to_asked(&now) != self.up_to_asked(&self.models) {
            self.rung = 0;
        }
        self.models = now;
    }

    /// Names the models of the role up to the one that is asked.
    fn up_to_asked(&self, models: &Models) -> Vec<String> {
        let ladder = models.ladder(self.job.role).into_iter();
        let asked = ladder.take(self.rung + 1);
        asked.map(ModelEntry::configured_name).collect()
    }

    /// Goes on with the model that gave a known answer: it had taken over before a crash. Where the answer bears a name
    /// that nobody was asked by, its provider tells.
    pub(super) fn goes_on_with(&mut self, provider: Option<&str>, model: &str) {
        let ladder = self.models.ladder(self.job.role);
        let is_its = |entry: &&ModelEntry| Some(entry.model.name()) == provider;
        let exact = ladder
            .iter()
            .position(|entry| is_its(entry) && model.starts_with(&entry.name));
        let known = exact.or_else(|| ladder.iter().position(is_its));
        self.rung = known.unwrap_or(self.rung).max(self.rung);
    }
}
