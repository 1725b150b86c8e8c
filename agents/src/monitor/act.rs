//! Raises, escalates and clears alerts.

use chrono::{DateTime, Utc};
use ropewalk_coordination::deadlock::{self, Deadlock};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::payload::{AlertCleared, AlertEscalated};
use ropewalk_schemas::wait::Party;
use ropewalk_schemas::{BuildId, ComponentName, Payload, Subject};
use ropewalk_store::{ChangeSet, Versioned};

use super::decide::{self, COMPONENT, Cause, DEADLOCK, Finding, Move, STUCK, StuckCause};
use super::{MonitorOptions, context as load};

/// Looks for stuck tasks and cycles of waits.
pub(super) async fn look_at_work(
    options: &MonitorOptions,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let open = load::open_alerts(&context.store).await?;
    let mut writer = AlertWriter::new(context, &open);
    look_at_tasks(options, &mut writer).await?;
    look_at_waits(&mut writer).await?;
    Ok(writer.changes)
}

async fn look_at_tasks(
    options: &MonitorOptions,
    writer: &mut AlertWriter<'_>,
) -> Result<(), AgentError> {
    let (context, open) = (writer.context, writer.open);
    let tasks = load::work(&context.store).await?;
    let attempts = load::attempts(&context.store, open).await?;
    let causes = decide::stuck(&tasks, &options.stuck_minutes, context.now());
    for step in decide::moves(causes, open.iter().map(|row| &row.record), STUCK) {
        let told = match &step {
            Move::Raise(_) => None,
            Move::Escalate {
                key,
                severity,
                message,
            } => StuckCause::parse(key).map(|cause| {
                let payload = AlertEscalated {
                    cause: key.clone(),
                    message: message.clone(),
                    severity: *severity,
                };
                let subject = Subject::task(cause.build, &cause.task);
                (subject, Payload::StuckTaskEscalated(payload))
            }),
            Move::Clear { key } => StuckCause::parse(key).map(|cause| {
                let message = decide::cleared_attempt(attempts.get(&cause.attempt));
                let payload = AlertCleared {
                    cause: key.clone(),
                    message,
                };
                let subject = Subject::task(cause.build, &cause.task);
                (subject, Payload::StuckTaskCleared(payload))
            }),
        };
        writer.take(step, told).await?;
    }
    Ok(())
}

/// The second net: cycles are found when their last edge appears, and here if that failed.
async fn look_at_waits(writer: &mut AlertWriter<'_>) -> Result<(), AgentError> {
    let (context, open) = (writer.context, writer.open);
    let deadlocks = deadlock::find_all(&context.store, context.now()).await?;
    let causes: Vec<String> = deadlocks.iter().map(Deadlock::cause).collect();
    for deadlock in &deadlocks {
        let first = deadlock.cycle.links.first().map(|link| &link.waiter);
        let context = match first {
            Some(Party::Task { build, .. } | Party::Build { build }) => {
                writer.of_build(Some(*build)).await?
            }
            None => context.clone(),
        };
        deadlock.report(&mut writer.changes, context.now(), &|subject, payload| {
            context.event(subject, payload)
        });
    }
    let standing: Vec<&str> = causes.iter().map(String::as_str).collect();
    for key in decide::gone(&standing, open.iter().map(|row| &row.record), DEADLOCK) {
        writer.clear(&key, None).await?;
    }
    Ok(())
}

/// Looks for components without a sign of life.
pub(super) async fn look_at_components(
    options: &MonitorOptions,
    listening_since: DateTime<Utc>,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let components = load::components(&context.store).await?;
    let open = load::open_alerts(&context.store).await?;
    let limit = options.component_down_after;
    let silent = decide::silent(&components, limit, context.now());
    let causes = decide::down(&components, limit, listening_since, context.now());
    let mut writer = AlertWriter::new(context, &open);
    for step in decide::moves(causes, open.iter().map(|row| &row.record), COMPONENT) {
        if let Move::Clear { key } = &step
            && silent
                .iter()
                .any(|component| key.strip_prefix(COMPONENT) == Some(component.name.as_str()))
        {
            // Not heard again, only not listened to for long enough.
            continue;
        }
        let told = match &step {
            Move::Clear { key } => heard_again(key, &components),
            // Silence is as bad as it was, however long.
            Move::Raise(_) | Move::Escalate { .. } => None,
        };
        writer.take(step, told).await?;
    }
    Ok(writer.changes)
}

/// Raises the alerts of `causes` that do not stand yet, by the very rows that are changed, since others do so, too; only the
/// monitor says that one is over.
pub(super) async fn raise_missing(
    causes: Vec<Cause>,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut writer = AlertWriter::new(context, &[]);
    for cause in causes {
        writer.raise(cause).await?;
    }
    Ok(writer.changes)
}

/// Tells that the component of an alert is heard again, or was stopped.
fn heard_again(key: &str, components: &[Component]) -> Option<(Subject, Payload)> {
    let name = key.strip_prefix(COMPONENT)?;
    let component = components.iter().find(|row| row.name.as_str() == name);
    let payload = AlertCleared {
        cause: key.to_owned(),
        message: decide::cleared_component(name, component),
    };
    let subject = Subject::component(&ComponentName::parse(name).ok()?);
    Some((subject, Payload::ComponentDownCleared(payload)))
}

/// Writes what becomes of alerts into one change set.
struct AlertWriter<'a> {
    context: &'a Context,
    open: &'a [Versioned<Alert>],
    changes: ChangeSet,
}

impl<'a> AlertWriter<'a> {
    fn new(context: &'a Context, open: &'a [Versioned<Alert>]) -> Self {
        Self {
            context,
            open,
            changes: ChangeSet::new(),
        }
    }

    /// Takes one step; `told` is the event that tells of a cause that has grown worse or is gone, where there is one.
    async fn take(
        &mut self,
        step: Move,
        told: Option<(Subject, Payload)>,
    ) -> Result<(), AgentError> {
        match step {
            Move::Raise(cause) => self.raise(cause).await,
            Move::Escalate {
                key,
                severity,
                message,
            } => self.escalate(&key, (severity, message), told).await,
            Move::Clear { key } => self.clear(&key, told).await,
        }
    }

    async fn raise(&mut self, cause: Cause) -> Result<(), AgentError> {
        let (build, told) = told(cause.finding);
        let alert = Alert {
            cause: cause.key,
            severity: cause.severity,
            message: cause.message,
            build,
            raised_at: self.context.now(),
            escalations: 0,
            acknowledged: None,
            cleared_at: None,
        };
        match self.context.store.get::<Alert>(&alert.cause).await? {
            // Others were faster, and have told of it.
            Some(earlier) if earlier.cleared_at.is_none() => return Ok(()),
            // The same cause, gone once and back: the same row.
            Some(earlier) => self.changes.update(&earlier, &alert),
            None => self.changes.insert(&alert),
        };
        for (subject, payload) in told {
            self.emit(build, subject, payload).await?;
        }
        Ok(())
    }

    async fn escalate(
        &mut self,
        key: &str,
        (severity, message): (Severity, String),
        told: Option<(Subject, Payload)>,
    ) -> Result<(), AgentError> {
        let Some(row) = self.open.iter().find(|row| row.cause == key) else {
            return Ok(());
        };
        let alert = Alert {
            severity,
            message,
            escalations: row.escalations + 1,
            // It is not what was seen any more.
            acknowledged: None,
            ..row.record.clone()
        };
        self.changes.update(row, &alert);
        match told {
            Some((subject, payload)) => self.emit(alert.build, subject, payload).await,
            None => Ok(()),
        }
    }

    async fn clear(
        &mut self,
        key: &str,
        told: Option<(Subject, Payload)>,
    ) -> Result<(), AgentError> {
        let Some(row) = self.open.iter().find(|row| row.cause == key) else {
            return Ok(());
        };
        let alert = Alert {
            cleared_at: Some(self.context.now()),
            ..row.record.clone()
        };
        self.changes.update(row, &alert);
        match told {
            Some((subject, payload)) => self.emit(alert.build, subject, payload).await,
            None => Ok(()),
        }
    }

    async fn emit(
        &mut self,
        build: Option<BuildId>,
        subject: Subject,
        payload: Payload,
    ) -> Result<(), AgentError> {
        let event = self.of_build(build).await?.event(subject, payload);
        self.changes.emit(event);
        Ok(())
    }

    /// Returns the context of an event; one about a build belongs to the chain of that build.
    async fn of_build(&self, build: Option<BuildId>) -> Result<Context, AgentError> {
        let build = match build {
            Some(build) => load::build(&self.context.store, build).await?,
            None => None,
        };
        Ok(match build {
            Some(build) => self
                .context
                .for_claim(build.correlation_id, build.priority)
                .because_of(self.context.cause().or(build.cause)),
            None => self.context.clone(),
        })
    }
}

/// Returns what an alert is about and the events that tell of it.
fn told(finding: Finding) -> (Option<BuildId>, Vec<(Subject, Payload)>) {
    match finding {
        Finding::Stuck(stuck) => {
            let subject = Subject::task(stuck.build_id, &stuck.task_id);
            let build = stuck.build_id;
            (Some(build), vec![(subject, Payload::StuckTask(stuck))])
        }
        Finding::Down(down) => {
            let told = down.into_iter().map(|down| {
                let subject = Subject::component(&down.component);
                (subject, Payload::ComponentDown(down))
            });
            (None, told.collect())
        }
    }
}
