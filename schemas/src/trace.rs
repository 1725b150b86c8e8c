//! Names a chain of events and its parts as tools that others wrote know them: by the trace context of the W3C.
//!
//! A trace is a chain: everything that follows from one message of a person, whichever process does it. Its id is that of
//! the chain, so that nobody has to pass anything on; a span is an event, or a call of a model.

use crate::ids::{BuildId, ContentHash, CorrelationId, EventId};

/// Returns the id of the trace of a chain: 32 hexadecimal digits.
pub fn trace_id(chain: CorrelationId) -> String {
    format!("{:032x}", chain.0.as_u128())
}

/// Returns the id of the span of an event: 16 hexadecimal digits.
pub fn event_span(event: EventId) -> String {
    let (_, low) = event.0.as_u64_pair();
    format!("{low:016x}")
}

/// Returns the id of the span of the model call `key`: 16 hexadecimal digits.
pub fn call_span(key: &str) -> String {
    work_span(key)
}

/// Returns the id of the span of a whole build, which its parts can name before it has ended: 16 hexadecimal digits.
pub fn build_span(build: BuildId) -> String {
    work_span(&format!("build/{build}"))
}

/// Returns the id of the span of work that has this name: 16 hexadecimal digits.
pub fn work_span(name: &str) -> String {
    let hash = ContentHash::of(name.as_bytes());
    hash.as_str().chars().take(16).collect()
}

/// Returns the `traceparent` of an event of a chain, whose span may be sent somewhere.
pub fn of_event(chain: CorrelationId, event: EventId, is_sent: bool) -> String {
    traceparent(chain, &event_span(event), is_sent)
}

/// Returns the `traceparent` of the model call `key` in a chain, whose span may be sent somewhere.
pub fn of_call(chain: CorrelationId, key: &str, is_sent: bool) -> String {
    traceparent(chain, &call_span(key), is_sent)
}

/// Version 0; the one flag that there is says whether the span can be found where spans are kept.
fn traceparent(chain: CorrelationId, span: &str, is_sent: bool) -> String {
    let flags = u8::from(is_sent);
    format!("00-{}-{span}-{flags:02x}", trace_id(chain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_a_trace_and_its_parts_are_spans() {
        let chain: CorrelationId = "018f0000-1111-7222-8333-444455556666".parse().unwrap();
        let event: EventId = "018f0000-1111-7222-8aaa-bbbbccccdddd".parse().unwrap();
        for (is_sent, flags) in [(true, "01"), (false, "00")] {
            let span = "00-018f0000111172228333444455556666-8aaabbbbccccdddd";
            assert_eq!(of_event(chain, event, is_sent), format!("{span}-{flags}"));
        }
        let call = of_call(chain, "message/1/1", true);
        assert!(
            call.starts_with("00-018f0000111172228333444455556666-"),
            "{call}"
        );
        assert_eq!(call.len(), 55);
        assert_ne!(call, of_call(chain, "message/1/2", true));
    }
}
