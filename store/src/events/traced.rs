//! Shows committed events as spans.

use ropewalk_runtime::traces::{self, Kind, Span};
use ropewalk_schemas::trace;

use super::StoredEvent;

/// Shows what this process has committed, under the ids that the events bear.
pub(crate) fn show(events: &[StoredEvent]) {
    if !traces::are_on() {
        return;
    }
    for stored in events {
        let event = &stored.event;
        if event.traceparent.is_none() {
            continue;
        }
        let trace = trace::trace_id(event.correlationid);
        let worked = traces::current(&trace);
        traces::record(Span {
            id: trace::event_span(event.id),
            parent: worked.or_else(|| event.causationid.map(trace::event_span)),
            state: None,
            trace,
            kind: Kind::Producer,
            name: format!("send {}", event.event_type),
            began: event.time,
            ended: event.time,
            attributes: vec![
                ("messaging.system", "ropewalk".into()),
                ("messaging.operation.type", "send".into()),
                (
                    "messaging.destination.name",
                    event.event_type.as_str().into(),
                ),
                ("messaging.message.id", event.id.to_string().into()),
                ("ropewalk.subject", event.subject.as_str().into()),
                ("ropewalk.source", event.source.as_str().into()),
            ],
            failure: None,
        });
    }
}
