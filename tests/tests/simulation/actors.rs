//! Agents that only do what the director lets them do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_schemas::payload::{AlertCleared, BuildRequest, TaskRetry};
use ropewalk_schemas::{
    BuildId, ComponentName, Event, EventId, EventPattern, Payload, Subject, TaskId,
};
use ropewalk_store::ChangeSet;
use tokio::sync::oneshot;

/// The type of the event that is the effect of a chain.
pub(crate) const EFFECT: &str = "alert.component_down.cleared";

/// Who takes what.
pub(crate) const ROLES: &[(&str, &[&str])] = &[
    ("one", &["build.pause"]),
    ("two", &["build.resume", "build.pause"]),
    ("three", &["task.retry"]),
];

/// What the director lets a handler do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cue {
    GoOn,
    Fail,
    Panic,
}

/// Who waits for a cue, by role and event.
#[derive(Debug, Default)]
pub(crate) struct Stage(Mutex<BTreeMap<(String, EventId), oneshot::Sender<Cue>>>);

impl Stage {
    pub(crate) fn waiting(&self) -> Vec<(String, EventId)> {
        self.lock().keys().cloned().collect()
    }

    /// Gives a cue to one who waits; answers whether somebody took it.
    pub(crate) fn cue(&self, who: &(String, EventId), cue: Cue) -> bool {
        let waiting = self.lock().remove(who);
        waiting.is_some_and(|waiting| waiting.send(cue).is_ok())
    }

    async fn enter(&self, role: &str, event: EventId) -> Cue {
        let (sender, cue) = oneshot::channel();
        self.lock().insert((role.to_owned(), event), sender);
        // The stage is gone when the process is: nobody waits for this any more.
        cue.await.unwrap_or(Cue::Fail)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, EventId), oneshot::Sender<Cue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One agent.
pub(crate) struct Actor {
    pub(crate) role: &'static str,
    pub(crate) profile: Profile,
    pub(crate) stage: Arc<Stage>,
}

impl Actor {
    pub(crate) fn all(stage: &Arc<Stage>) -> anyhow::Result<Vec<Arc<dyn Agent>>> {
        ROLES
            .iter()
            .map(|(role, patterns)| {
                let profile = Profile {
                    role: ComponentName::parse(role)?,
                    patterns: patterns.iter().map(|name| EventPattern::of(name)).collect(),
                    in_flight: 64,
                    schedules: Vec::new(),
                };
                let stage = Arc::clone(stage);
                Ok(Arc::new(Self {
                    role,
                    profile,
                    stage,
                }) as Arc<dyn Agent>)
            })
            .collect()
    }
}

#[async_trait]
impl Agent for Actor {
    fn profile(&self) -> Profile {
        self.profile.clone()
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        match self.stage.enter(self.role, event.id).await {
            Cue::GoOn => react(self.role, event, context).map_err(AgentError::permanent),
            Cue::Fail => Err(AgentError::transient("the director says so")),
            Cue::Panic => panic!("the director says so"),
        }
    }
}

/// Says what follows an event: pause → resume → retry → effect, and an effect of each pause.
fn react(role: &str, event: &Event, context: &Context) -> anyhow::Result<ChangeSet> {
    let mut changes = ChangeSet::new();
    let next = match (role, &event.payload) {
        ("one", Payload::BuildPause(request)) => Some((
            Subject::build(request.build_id),
            Payload::BuildResume(request.clone()),
        )),
        ("two", Payload::BuildResume(request)) => {
            let task_id = TaskId::parse("T-001")?;
            let subject = Subject::task(request.build_id, &task_id);
            let retry = TaskRetry {
                build_id: request.build_id,
                task_id,
                requested_by: "two".to_owned(),
                may_resume: false,
                guidance: None,
            };
            Some((subject, Payload::TaskRetry(retry)))
        }
        _ => {
            let effect = AlertCleared {
                cause: format!("{role} {} {}", event.event_type(), event.subject),
                message: "done".to_owned(),
            };
            let subject = Subject::component(&ComponentName::parse(role)?);
            Some((subject, Payload::ComponentDownCleared(effect)))
        }
    };
    if let Some((subject, payload)) = next {
        changes.emit(context.event(subject, payload));
    }
    Ok(changes)
}

/// Begins a chain.
pub(crate) fn opening(context: &Context, build: BuildId) -> Event {
    let request = BuildRequest {
        build_id: build,
        requested_by: "pat".to_owned(),
        reason: None,
    };
    context.event(Subject::build(build), Payload::BuildPause(request))
}
