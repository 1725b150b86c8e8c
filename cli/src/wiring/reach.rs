//! Reaches agents: runs them in this process, or goes beside the process that does.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_bus::{LiveEvents, LiveRelay};
use ropewalk_desk::people::Person;
use ropewalk_desk::views::agent;
use ropewalk_orchestrator::Context;
use ropewalk_runtime::Clock;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::{ComponentName, EventPattern, Slug, Subject};
use ropewalk_store::{EventFilter, Location, Query, Store};

use super::open_project::{LOOK, SOURCE, awake, location};
use super::{Crew, Host, OpenProject, processes};
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::interrupts::{Interrupts, Turn};
use crate::project::Project;

/// What runs on a state in other processes.
struct AgentHost {
    /// The roles that showed a sign of life.
    roles: BTreeSet<String>,
    /// Whether several processes share them.
    shared: bool,
}

impl AgentHost {
    async fn look(opened: &OpenProject) -> Result<Self, CliError> {
        let since = opened.clock.now() - SILENCE;
        let shared = processes::any(opened.project.state())?;
        let rows = opened.store.list::<Component>(Query::new()).await?;
        let shows_life = |row: &Component| !row.stopped && row.last_seen >= since;
        // The only process on a state is one of this machine; those that share it may be elsewhere.
        let is_there = |row: &Component| shared || processes::lives(&row.process);
        let rows = rows.into_iter().map(|row| row.record);
        let rows = rows.filter(|row| shows_life(row) && is_there(row));
        Ok(Self {
            roles: rows.map(|row| row.role).collect(),
            shared,
        })
    }

    fn has(&self, role: &str) -> bool {
        self.roles.contains(role)
    }

    /// Returns whether all roles are known: a process names its own ones in one commit, but another may come to share.
    fn is_known(&self) -> bool {
        !self.shared && !self.roles.is_empty()
    }

    /// Says that nobody runs the agent `role`, and who is in the way of that.
    fn lacks(&self, role: &str) -> CliError {
        if self.shared {
            let message = format!("no process that shares this state runs the agent `{role}`");
            let next = format!("start `ropewalk agent {role}`");
            return CliError::refused(RUNNING, (message, next));
        }
        // Each runs the one and not the other.
        let holder = if self.has("ideation") {
            "`ropewalk idea chat`, which"
        } else if self.has("specification") {
            "`ropewalk spec`, which"
        } else {
            "the process, which"
        };
        let message = format!("{holder} runs on this state, does not run the agent `{role}`");
        CliError::refused(RUNNING, (message, TAKE_TURNS))
    }
}

/// The parts of processes that are gone and could not say so.
pub(crate) struct Gone(BTreeSet<ComponentName>);

impl Gone {
    /// Finds those of `parts`, where all processes of the project are of this machine.
    pub(crate) fn of(project: &Project, parts: &[Component]) -> Result<Self, CliError> {
        // A server is reached by others, whose processes nobody sees here.
        if matches!(location(project)?, Location::Postgres(_)) {
            return Ok(Self(BTreeSet::new()));
        }
        let running = parts.iter().filter(|part| !part.stopped);
        let (seen, unseen): (Vec<&Component>, Vec<&Component>) =
            running.partition(|part| processes::lives(&part.process));
        // Whoever answers and is not seen lives in a container, where processes have other numbers.
        if seen.is_empty() && !unseen.is_empty() && awake(project.state())? {
            return Ok(Self(BTreeSet::new()));
        }
        Ok(Self(
            unseen.into_iter().map(|part| part.name.clone()).collect(),
        ))
    }

    /// Returns whether the process of a part is gone.
    pub(crate) fn has(&self, part: &Component) -> bool {
        self.0.contains(&part.name)
    }

    /// Says in a word what a part does.
    pub(crate) fn state(
        &self,
        part: &Component,
        down_after: Duration,
        now: DateTime<Utc>,
    ) -> &'static str {
        if self.has(part) {
            return "gone";
        }
        agent::state(part, down_after, now)
    }
}

/// What is done about another verb that runs agents.
const TAKE_TURNS: &str =
    "end that one first, then try again; beside `ropewalk up` several verbs run at the same time";

/// A component that was not seen for so long does not run.
const SILENCE: TimeDelta = TimeDelta::seconds(60);

/// So long may a process that has just begun take until its agents are known.
const BEGINNING: TimeDelta = TimeDelta::seconds(15);

/// The way to the agents.
pub enum Reach {
    /// They run in this process.
    Hosted(Box<Host>),
    /// They run in another process.
    Beside(Box<OpenProject>, Interrupts),
}

/// Finds the idea; one that nobody had is refused.
async fn find_idea(app: &App, idea: &IdeaText) -> Result<Slug, CliError> {
    let opened = OpenProject::open(app.project()?).await?;
    let found = idea.find(&opened).await;
    opened.close().await?;
    found
}

impl Reach {
    /// Runs the agents of `crew` here, unless another process runs agents on the same state; an unknown `idea` is
    /// refused before that. Returns the whole name of the idea, too.
    pub async fn open(app: &App, crew: Crew, idea: &IdeaText) -> Result<(Self, Slug), CliError> {
        let project = app.project()?;
        // Without a state there is nothing to look into, and a look should not make one.
        let known = project.state().exists();
        let slug = if known {
            Box::pin(find_idea(app, idea)).await?
        } else {
            idea.clone().into()
        };
        let reach = if known && awake(project.state())? {
            Self::beside(app, Box::pin(OpenProject::open(project)).await?)
        } else {
            Self::host(app, (crew, slug.clone())).await?
        };
        Ok((reach, slug))
    }

    async fn host(app: &App, what: (Crew, Slug)) -> Result<Self, CliError> {
        let project = app.project()?;
        match Box::pin(Host::start_for(app, project, what)).await {
            Ok(host) => Ok(Self::Hosted(Box::new(host))),
            // Another process was a moment faster, and listens soon.
            Err(error) if error.report().code == RUNNING => {
                let opened = Box::pin(OpenProject::open(app.project()?)).await?;
                Ok(Self::beside(app, opened))
            }
            Err(error) => Err(error),
        }
    }

    fn beside(app: &App, opened: OpenProject) -> Self {
        Self::Beside(Box::new(opened), app.interrupts.clone())
    }

    /// Returns the truth.
    pub fn store(&self) -> &Store {
        match self {
            Self::Hosted(host) => &host.services.store,
            Self::Beside(opened, _) => &opened.store,
        }
    }

    /// Returns the time.
    pub fn clock(&self) -> &Clock {
        match self {
            Self::Hosted(host) => &host.services.clock,
            Self::Beside(opened, _) => &opened.clock,
        }
    }

    /// Returns who sits at the keyboard.
    pub fn person(&self) -> Result<&Person, CliError> {
        match self {
            Self::Hosted(host) => host.project.person(),
            Self::Beside(opened, _) => opened.person(),
        }
    }

    /// Returns a context in which a person begins a chain of events.
    pub fn context(&self) -> Result<Context, CliError> {
        Ok(match self {
            Self::Hosted(host) => host.context(ComponentName::parse(SOURCE)?),
            Self::Beside(opened, _) => opened.context(),
        })
    }

    /// Listens to ephemeral events; none when several processes share the agents.
    pub async fn live(&self) -> Option<LiveEvents> {
        match self {
            Self::Hosted(host) => Some(host.services.bus.live().subscribe()),
            Self::Beside(opened, _) => LiveRelay::listen(opened.project.state()).await,
        }
    }

    /// Tells the agents that something was committed.
    pub fn wake(&self) -> Result<(), CliError> {
        match self {
            // The store tells a bus of its own process.
            Self::Hosted(_) => Ok(()),
            Self::Beside(opened, _) => opened.poke().map(drop),
        }
    }

    /// Returns whether nobody runs agents any more.
    pub fn is_left(&self) -> Result<bool, CliError> {
        match self {
            Self::Hosted(_) => Ok(false),
            Self::Beside(opened, _) => Ok(!awake(opened.project.state())?),
        }
    }

    /// Refuses to wait for an agent that nobody runs; a process which begins just now is waited for until it has named
    /// its agents.
    pub async fn require(&self, role: &str) -> Result<(), CliError> {
        let Self::Beside(opened, _) = self else {
            return Ok(());
        };
        let patience = opened.clock.now() + BEGINNING;
        let mut running = AgentHost::look(opened).await?;
        while !running.has(role) {
            if running.is_known() || opened.clock.now() >= patience {
                return Err(running.lacks(role));
            }
            self.pause().await?;
            running = AgentHost::look(opened).await?;
        }
        Ok(())
    }

    /// Returns the position of the newest event of a type about `subject`, 1 when there is none.
    pub async fn newest(&self, event_type: &str, subject: &Subject) -> Result<i64, CliError> {
        let filter = EventFilter {
            pattern: Some(EventPattern::of(event_type)),
            subject: Some(subject.clone()),
            newest_first: true,
            limit: Some(1),
            ..EventFilter::default()
        };
        let events = self.store().events(&filter).await?;
        Ok(events.first().map_or(1, |event| event.sequence))
    }

    /// Waits a moment before the next look; an error when the process was asked to stop.
    pub async fn pause(&self) -> Result<(), CliError> {
        tokio::select! {
            () = self.clock().sleep(LOOK) => Ok(()),
            () = self.stopped() => Err(CliError::Cancelled),
        }
    }

    /// Waits until the process is asked to stop.
    pub async fn stopped(&self) {
        match self {
            Self::Hosted(host) => host.stopped().await,
            Self::Beside(_, interrupts) => interrupts.requested().await,
        }
    }

    /// Begins a turn of a conversation, which the next interrupt ends.
    pub fn turn(&self) -> Turn {
        match self {
            Self::Hosted(host) => host.turn(),
            Self::Beside(_, interrupts) => interrupts.turn(),
        }
    }

    /// Puts everything away.
    pub async fn close(self) -> Result<(), CliError> {
        match self {
            Self::Hosted(host) => host.drain().await,
            Self::Beside(_, interrupts) => interrupts.outcome(),
        }
    }
}

/// The code of the error that says that another process runs agents.
const RUNNING: &str = "running";
