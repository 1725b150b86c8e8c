//! Gives an agent what it may use: the store, the clock, ids, and events that carry on the chain of causes.

use chrono::{DateTime, Utc};
use ropewalk_bus::Bus;
use ropewalk_runtime::{Clock, Ids, traces};
use ropewalk_schemas::{
    ComponentName, CorrelationId, Event, EventId, EventPattern, Payload, Priority, Subject, trace,
};
use ropewalk_store::{EventFilter, ReadError, Store};

use crate::registry::Registry;

/// What every part of the frame works with. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    /// The truth.
    pub store: Store,
    /// The deliverer.
    pub bus: Bus,
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
    /// What every component works on.
    pub registry: Registry,
}

/// The cause that events made in this context carry on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cause {
    correlation: CorrelationId,
    event: Option<EventId>,
    hop: u32,
    priority: Priority,
}

/// What an agent may use while it handles one event or runs one claim. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The truth.
    pub store: Store,
    /// The deliverer; for live events only, what must not be lost goes into a change set.
    pub bus: Bus,
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
    /// What every component works on.
    pub registry: Registry,
    source: ComponentName,
    cause: Cause,
}

impl Context {
    /// Returns a context in which `source` begins a chain of its own.
    pub fn new(services: &Services, source: ComponentName) -> Self {
        let cause = Cause {
            correlation: CorrelationId(services.ids.next()),
            event: None,
            hop: 0,
            priority: Priority::DEFAULT,
        };
        Self {
            store: services.store.clone(),
            bus: services.bus.clone(),
            clock: services.clock.clone(),
            ids: services.ids.clone(),
            registry: services.registry.clone(),
            source,
            cause,
        }
    }

    /// Returns this context with `event` as the cause of what follows.
    pub fn caused_by(&self, event: &Event) -> Self {
        let cause = Cause {
            correlation: event.correlation_id,
            event: Some(event.id),
            hop: event.hop + 1,
            priority: event.priority,
        };
        Self {
            cause,
            ..self.clone()
        }
    }

    /// Returns this context for work that a claim, a timer or a person began: hops count from zero again.
    ///
    /// The cause stays what it was: the handled event, or none outside of a handler.
    pub fn for_claim(&self, correlation: CorrelationId, priority: Priority) -> Self {
        Self {
            cause: Cause {
                correlation,
                event: self.cause.event,
                hop: 0,
                priority,
            },
            ..self.clone()
        }
    }

    /// Returns this context with the event `cause` as the cause of what follows; without one, as it is.
    pub fn because_of(&self, cause: Option<EventId>) -> Self {
        let mut context = self.clone();
        context.cause.event = cause.or(self.cause.event);
        context
    }

    /// Returns this context with the newest event of one type about `subject` as the cause, unless it has a cause.
    pub async fn because_of_newest(
        &self,
        subject: Subject,
        event_type: &'static str,
    ) -> Result<Self, ReadError> {
        if self.cause.event.is_some() {
            return Ok(self.clone());
        }
        let filter = EventFilter {
            pattern: Some(EventPattern::of(event_type)),
            subject: Some(subject),
            limit: Some(1),
            newest_first: true,
            ..EventFilter::default()
        };
        let found = self.store.events(&filter).await?;
        Ok(self.because_of(found.first().map(|stored| stored.event.id)))
    }

    /// Returns this context speaking as another component, such as a build loop.
    pub fn speaking_as(&self, source: ComponentName) -> Self {
        Self {
            source,
            ..self.clone()
        }
    }

    /// Returns the time.
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Returns who speaks.
    pub fn source(&self) -> &ComponentName {
        &self.source
    }

    /// Returns the chain of events that this context carries on.
    pub fn correlation(&self) -> CorrelationId {
        self.cause.correlation
    }

    /// Returns the event that caused what follows, if one did.
    pub fn cause(&self) -> Option<EventId> {
        self.cause.event
    }

    /// Makes an event that carries on the chain of causes.
    pub fn event(&self, subject: Subject, payload: Payload) -> Event {
        let (id, chain) = (EventId(self.ids.next()), self.cause.correlation);
        let is_sent = traces::is_sent(&trace::trace_id(chain));
        Event {
            id,
            source: self.source.clone(),
            subject,
            time: self.now(),
            correlation_id: chain,
            causation_id: self.cause.event,
            hop: self.cause.hop,
            traceparent: Some(trace::of_event(chain, id, is_sent)),
            priority: self.cause.priority,
            payload,
        }
    }
}
