//! Shows requests as spans.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, StatusCode};
use ropewalk_runtime::traces::{self, Kind, Span};

use crate::shared::ServerState;

/// A request before it is answered.
pub(crate) struct RequestSpan(Span);

impl RequestSpan {
    /// Notes the beginning; nothing where no spans are sent. Who asks may name its trace and span in `traceparent`, and what it keeps
    /// beside them in `tracestate`.
    pub(crate) fn begin(shared: &ServerState, request: &Request) -> Option<Self> {
        if !traces::are_on() {
            return None;
        }
        let services = &shared.services;
        let began = services.clock.now();
        let named = request.headers().get("traceparent");
        let named = named.and_then(|text| caller(text.to_str().ok()?));
        let state = named.is_some().then(|| state(request.headers()));
        let (trace, parent) = named.unzip();
        let (_, low) = services.ids.next().as_u64_pair();
        let path = request.extensions().get::<MatchedPath>();
        let path = path.map_or("unknown", MatchedPath::as_str);
        let method = request.method().as_str();
        Some(Self(Span {
            trace: trace.unwrap_or_else(|| services.ids.next().as_simple().to_string()),
            id: format!("{low:016x}"),
            parent,
            state,
            kind: Kind::Server,
            name: format!("{method} {path}"),
            began,
            ended: began,
            attributes: vec![
                ("http.request.method", method.into()),
                ("http.route", path.into()),
            ],
            failure: None,
        }))
    }

    /// Shows how it was answered.
    pub(crate) fn end(mut self, status: StatusCode, shared: &ServerState) {
        self.0.ended = shared.services.clock.now();
        let code = u64::from(status.as_u16());
        self.0
            .attributes
            .push(("http.response.status_code", code.into()));
        self.0.failure = status.is_server_error().then(|| status.to_string());
        traces::record(self.0);
    }
}

/// Reads the trace and the span of a `traceparent`.
fn caller(text: &str) -> Option<(String, String)> {
    let mut parts = text.trim().split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length| {
        let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == length && text.as_bytes().iter().all(hex)
    };
    let is_some = |text: &str| text.bytes().any(|byte| byte != b'0');
    let fits = is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && is_hex(span, 16)
        && is_some(trace)
        && is_some(span);
    fits.then(|| (trace.to_owned(), span.to_owned()))
}

/// Returns the `tracestate` of whoever asks; it may come in several headers.
fn state(headers: &HeaderMap) -> String {
    let parts = headers.get_all("tracestate").iter();
    let parts: Vec<&str> = parts.filter_map(|part| part.to_str().ok()).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_known_by_a_traceparent_that_is_one() {
        let (trace, span) = ("018f0000111172228333444455556666", "8aaabbbbccccdddd");
        let known = caller(&format!("00-{trace}-{span}-01"));
        assert_eq!(known, Some((trace.to_owned(), span.to_owned())));
        for wrong in [
            String::new(),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}"),
        ] {
            assert_eq!(caller(&wrong), None, "{wrong}");
        }
    }
}
