//! Shows handled deliveries as spans.

use chrono::{DateTime, Utc};
use ropewalk_bus::Delivery;
use ropewalk_runtime::traces::{self, Kind, Span};
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::{ComponentName, trace};

use crate::context::Context;

/// A delivery in hand, before it is known what came of it.
pub(crate) struct DeliverySpan {
    span: Span,
}

impl DeliverySpan {
    /// Notes the beginning; nothing where no spans are sent.
    pub(crate) fn begin(
        role: &ComponentName,
        delivery: &Delivery,
        context: &Context,
    ) -> Option<Self> {
        let event = &delivery.event;
        if !traces::are_on() || event.traceparent.is_none() {
            return None;
        }
        let began = context.now();
        let event_type = event.event_type();
        let name = format!("{role}/{}/{}", event.id, began.timestamp_micros());
        let span = Span {
            trace: trace::trace_id(event.correlation_id),
            id: trace::work_span(&name),
            parent: Some(trace::event_span(event.id)),
            state: None,
            kind: Kind::Consumer,
            name: format!("process {event_type}"),
            began,
            ended: began,
            attributes: vec![
                ("messaging.system", "ropewalk".into()),
                ("messaging.operation.type", "process".into()),
                ("messaging.destination.name", event_type.into()),
                ("messaging.message.id", event.id.to_string().into()),
                ("messaging.consumer.group.name", role.as_str().into()),
                ("ropewalk.subject", event.subject.as_str().into()),
                (
                    "ropewalk.delivery.attempt",
                    u64::from(delivery.attempt).into(),
                ),
            ],
            failure: None,
        };
        Some(Self { span })
    }

    /// Returns its trace and its span.
    pub(crate) fn place(&self) -> (String, String) {
        (self.span.trace.clone(), self.span.id.clone())
    }

    /// Shows how it ended.
    pub(crate) fn end(mut self, shown: AgentState, now: DateTime<Utc>) {
        self.span.ended = now;
        self.span.failure =
            (shown == AgentState::Error).then(|| "it could not be handled".to_owned());
        traces::record(self.span);
    }
}
