//! Keeps what every component of this process does, and writes it to the store now and then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::agent::{AgentState, Component, HEARTBEAT_SECONDS};
use ropewalk_store::{ChangeSet, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::deaths::Suspects;

/// How often a process writes a sign of life for all its components, in one change set.
pub const HEARTBEAT: Duration = Duration::from_secs(HEARTBEAT_SECONDS as u64);

/// How long a change of state may wait so that a burst of changes becomes one write.
const SETTLE: Duration = Duration::from_millis(500);

/// Knows the components of this process: what each does and since when. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Registry {
    clock: Clock,
    process: Arc<str>,
    /// Tells the agents of this process from those of the same role in others.
    ordinal: Option<u32>,
    components: Arc<Mutex<BTreeMap<ComponentName, Component>>>,
    changed: Arc<Notify>,
    suspects: Suspects,
}

impl Registry {
    /// Returns an empty registry for a process of this name.
    pub fn new(clock: Clock, process: &str) -> Self {
        Self {
            clock,
            process: process.into(),
            ordinal: None,
            components: Arc::default(),
            changed: Arc::default(),
            suspects: Suspects::default(),
        }
    }

    /// Counts what the program dies of.
    pub fn counting(mut self, suspects: Suspects) -> Self {
        self.suspects = suspects;
        self
    }

    /// Returns what the program died of, and what is in hand now.
    pub fn suspects(&self) -> &Suspects {
        &self.suspects
    }

    /// Shows the agents of this process under names of their own, since others run the same roles.
    pub fn numbered(mut self, ordinal: u32) -> Self {
        self.ordinal = Some(ordinal);
        self
    }

    /// Adds a component, idle.
    pub fn add(&self, name: &ComponentName, role: &ComponentName) {
        let now = self.clock.now();
        let component = Component {
            name: self.shown(name, role),
            role: role.to_string(),
            process: self.process.to_string(),
            state: AgentState::Idle,
            working_on: None,
            since: now,
            last_seen: now,
            stopped: false,
        };
        self.with(|components| components.insert(name.clone(), component));
        self.changed.notify_one();
    }

    /// The one agent of a role bears its name; workers have names of their own.
    fn shown(&self, name: &ComponentName, role: &ComponentName) -> ComponentName {
        let numbered = self.ordinal.filter(|_| name == role);
        numbered
            .and_then(|ordinal| ComponentName::parse(&format!("{name}-{ordinal}")).ok())
            .unwrap_or_else(|| name.clone())
    }

    /// Records that `name` is in `state`, working on `entity`.
    pub fn set(&self, name: &ComponentName, state: AgentState, entity: Option<&str>) {
        let now = self.clock.now();
        self.with(|components| {
            if let Some(component) = components.get_mut(name) {
                component.state = state;
                component.working_on = entity.map(ToOwned::to_owned);
                component.since = now;
                component.last_seen = now;
            }
        });
        self.changed.notify_one();
    }

    /// Returns what every component of this process does now.
    pub fn snapshot(&self) -> Vec<Component> {
        self.with(|components| components.values().cloned().collect())
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<ComponentName, Component>) -> T) -> T {
        change(
            &mut self
                .components
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Lets those rest whose end was shown in `written`, unless they have begun anew since.
    fn rest(&self, written: &[Component]) {
        let now = self.clock.now();
        let rested = self.with(|components| {
            let mut rested = false;
            for component in components.values_mut() {
                let over = matches!(component.state, AgentState::Complete | AgentState::Error);
                if over && written.contains(component) {
                    component.state = AgentState::Idle;
                    component.working_on = None;
                    component.since = now;
                    rested = true;
                }
            }
            rested
        });
        if rested {
            self.changed.notify_one();
        }
    }

    /// Writes signs of life until `stop`; then marks the components as stopped in order.
    pub(crate) async fn run(self, store: Store, stop: CancellationToken) {
        loop {
            self.write(&store, false).await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.clock.sleep(HEARTBEAT) => {}
                () = self.changed.notified() => {
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = self.clock.sleep(SETTLE) => {}
                    }
                }
            }
        }
        self.write(&store, true).await;
    }

    async fn write(&self, store: &Store, stopped: bool) {
        let now = self.clock.now();
        let mut changes = ChangeSet::new();
        let snapshot = self.snapshot();
        for component in snapshot.clone() {
            changes.put(&Component {
                last_seen: now,
                stopped,
                ..component
            });
        }
        if changes.is_empty() {
            return;
        }
        match store.commit(changes).await {
            Ok(_) => self.rest(&snapshot),
            Err(error) => warn!("no sign of life could be written: {}", Words::of(&error)),
        }
    }
}
