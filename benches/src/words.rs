//! Makes the events, tasks and names that the benchmarks move around; ours and raw use the same.

use anyhow::Result;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::{
    BuildId, ComponentName, CorrelationId, Event, EventId, EventPattern, Payload, Priority,
    RepoPath, Subject, TaskId,
};
use ropewalk_store::Subscription;

/// The type of every event here.
pub(crate) const EVENT_TYPE: &str = "task.retry";

/// How many steps a chain has.
pub(crate) const STEPS: usize = 6;

/// As long as it takes for an event of about 700 bytes.
const GUIDANCE_BYTES: usize = 240;

/// Makes what is moved around.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) build: BuildId,
    guidance: String,
}

impl Words {
    pub(crate) fn new() -> Self {
        let clock = Clock::system();
        let ids = Ids::system(clock.clone());
        Self {
            build: ids.next().into(),
            guidance: "try it once more with less. ".repeat(GUIDANCE_BYTES / 28),
            clock,
            ids,
        }
    }

    /// Returns the event that `source` emits about task number `lane`.
    pub(crate) fn event(&self, source: &ComponentName, lane: usize) -> Result<Event> {
        let task = task_id(lane)?;
        Ok(Event {
            id: EventId(self.ids.next()),
            source: source.clone(),
            subject: Subject::task(self.build, &task),
            time: self.clock.now(),
            correlation_id: CorrelationId(self.ids.next()),
            causation_id: Some(EventId(self.ids.next())),
            hop: 3,
            traceparent: None,
            priority: Priority::DEFAULT,
            payload: self.payload(task),
        })
    }

    pub(crate) fn payload(&self, task: TaskId) -> Payload {
        Payload::TaskRetry(TaskRetry {
            build_id: self.build,
            task_id: task,
            requested_by: "ada".to_owned(),
            may_resume: false,
            guidance: Some(self.guidance.clone()),
        })
    }

    /// Returns the state row of lane `lane`.
    pub(crate) fn task(&self, lane: usize) -> Result<Task> {
        let id = task_id(lane)?;
        let file = RepoPath::parse(&format!("src/part_{lane}.rs"))?;
        let check = Validation::passes("cargo test");
        let block = TaskBlock::new(id, "core", Action::Create, file, check);
        Ok(Task {
            state: TaskState::Ready,
            progress_at: Some(self.clock.now()),
            ..Task::planned(self.build, u32::try_from(lane)?, block)
        })
    }
}

pub(crate) fn task_id(lane: usize) -> Result<TaskId> {
    Ok(TaskId::parse(&format!("T-{lane:03}"))?)
}

/// Names step `number`; step 0 is whoever begins the chain.
pub(crate) fn step(number: usize) -> Result<ComponentName> {
    Ok(ComponentName::parse(&format!("step-{number}"))?)
}

/// Returns the pattern of what `source` emits.
pub(crate) fn from(source: &ComponentName) -> EventPattern {
    EventPattern::of(EVENT_TYPE).from_source(source.clone())
}

/// Lets `name` take what `source` emits.
pub(crate) fn subscription(name: &ComponentName, source: &ComponentName) -> Subscription {
    let mut subscription = Subscription::new(name.clone(), []);
    subscription.patterns.push(from(source));
    subscription
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_about_700_bytes() {
        let words = Words::new();
        let event = words.event(&step(1).unwrap(), 7).unwrap();
        let body = serde_json::to_string(&event.to_cloud_event()).unwrap();
        assert!((650..750).contains(&body.len()), "{}", body.len());
    }
}
