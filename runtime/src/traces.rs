//! Sends spans to a receiver of OpenTelemetry (OTLP over HTTP), beside the work and never in its way.
//!
//! Whoever knows what was done makes a [`Span`] of it afterwards; a bounded queue takes it without waiting, and one task
//! sends what it holds in batches. A receiver that is slow or gone costs spans, which are counted, and nothing else. Like the log it
//! is the process's own, so that nobody has to pass it on.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

use crate::http::{self, ClientOptions, HttpError};
use crate::{Shutdown, Supervisor, secrets};

/// How many spans wait to be sent; more are lost.
const QUEUE: usize = 4_096;
/// How many are sent at once.
const BATCH: usize = 512;
/// How long is waited for more of them.
const GATHER: Duration = Duration::from_millis(500);
/// How long a receiver may take.
const SEND: Duration = Duration::from_secs(5);
/// The version of the conventions that spans and their attributes are named by: the last in which those for models stood.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// What the process sends to; nothing where nobody wants it.
static EXPORT: OnceLock<Export> = OnceLock::new();

tokio::task_local! {
    /// The trace and the span of what this task works on.
    static WITHIN: Option<(String, String)>;
}

/// Where spans go, and who sends them.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The address of the receiver, without `/v1/traces`.
    pub endpoint: String,
    /// What is sent with each request.
    pub headers: HashMap<String, String>,
    /// Of how many traces in a hundred something is sent.
    pub sample_percent: u32,
    /// What names this process: attributes of its resource.
    pub resource: BTreeMap<String, String>,
}

/// Says why no spans can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// No client.
    #[error(transparent)]
    Client(#[from] HttpError),
    /// No exporter.
    #[error("spans cannot be sent: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// What a span stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work within this process.
    Internal,
    /// A request to somebody else.
    Client,
    /// A request of somebody else.
    Server,
    /// A message that was sent.
    Producer,
    /// A message that was handled.
    Consumer,
}

/// What is said of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text; secrets are struck out of it.
    Text(String),
    /// A number.
    Number(i64),
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace: 32 hexadecimal digits.
    pub trace: String,
    /// The span: 16 hexadecimal digits.
    pub id: String,
    /// The span that it is a part of.
    pub parent: Option<String>,
    /// What whoever asked keeps beside the trace, a `tracestate` of the W3C; one that is none is left out.
    pub state: Option<String>,
    /// What it stands for.
    pub kind: Kind,
    /// What it is called.
    pub name: String,
    /// When it began.
    pub began: DateTime<Utc>,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// What is known of it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Begins to send the spans of this process; the first call counts.
pub fn start(options: TraceOptions) -> Result<(), TracesError> {
    if EXPORT.get().is_none() {
        let export = Export::start(options)?;
        EXPORT.set(export).ok();
    }
    Ok(())
}

/// Says whether spans are sent; who makes none otherwise saves the work.
pub fn are_on() -> bool {
    EXPORT.get().is_some()
}

/// Says whether the spans of `trace` are sent, for whoever is told its name.
pub fn is_sent(trace: &str) -> bool {
    let export = EXPORT.get();
    export.is_some_and(|export| is_sampled(trace, export.sample_percent))
}

/// Takes a span; one for which there is no room is lost, and counted.
pub fn record(span: Span) {
    if let Some(export) = EXPORT.get() {
        export.record(span);
    }
}

/// Waits until everything up to now is sent, but no longer than `limit`.
pub async fn flush(limit: Duration) {
    if let Some(export) = EXPORT.get() {
        export.flush(limit).await;
    }
}

/// Runs `work` as a part of the span `of` (trace and id); with none, as it is.
pub async fn within<Work: Future>(of: Option<(String, String)>, work: Work) -> Work::Output {
    WITHIN.scope(of.or_else(known), work).await
}

/// Returns the span that this task works for, where that is one of `trace`.
pub fn current(trace: &str) -> Option<String> {
    known().and_then(|(of, span)| (of == trace).then_some(span))
}

/// Returns the trace and the span that this task works for.
fn known() -> Option<(String, String)> {
    WITHIN.try_with(Clone::clone).ok().flatten()
}

enum Order {
    Send(Box<Span>),
    Flush(oneshot::Sender<()>),
}

/// Sends spans to one receiver.
struct Export {
    queue: mpsc::Sender<Order>,
    lost: Arc<LossCounter>,
    sample_percent: u32,
    // It ends with the process.
    _tasks: Supervisor,
}

/// How many spans were lost.
#[derive(Default)]
struct LossCounter(AtomicU64);

impl LossCounter {
    /// Counts; the first loss is told, and none after it.
    fn count(&self, spans: usize, why: &str) {
        let spans = u64::try_from(spans).unwrap_or(u64::MAX);
        if self.0.fetch_add(spans, Ordering::Relaxed) == 0 && spans > 0 {
            warn!("spans are lost, and this is told once: {why}");
        }
    }
}

impl Export {
    fn start(options: TraceOptions) -> Result<Self, TracesError> {
        let client = http::client(ClientOptions {
            connect_timeout: SEND,
            idle_timeout: SEND,
            total_timeout: Some(SEND),
        })?;
        let address = format!("{}/v1/traces", options.endpoint.trim_end_matches('/'));
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(address)
            .with_headers(options.headers)
            .with_timeout(SEND)
            .build()?;
        let named = options.resource.into_iter();
        let named = named.map(|(key, value)| KeyValue::new(key, value));
        let resource = Resource::builder_empty().with_attributes(named).build();
        exporter.set_resource(&resource);
        let (queue, orders) = mpsc::channel(QUEUE);
        let (lost, tasks) = (
            Arc::new(LossCounter::default()),
            Supervisor::new(Shutdown::new()),
        );
        tasks.spawn("traces", send(exporter, orders, Arc::clone(&lost)));
        Ok(Self {
            queue,
            lost,
            sample_percent: options.sample_percent,
            _tasks: tasks,
        })
    }

    fn record(&self, span: Span) {
        if !is_sampled(&span.trace, self.sample_percent) {
            return;
        }
        if self.queue.try_send(Order::Send(Box::new(span))).is_err() {
            self.lost.count(1, "the receiver is too slow");
        }
    }

    async fn flush(&self, limit: Duration) {
        let (done, is_done) = oneshot::channel();
        let flushed = timeout(limit, async {
            if self.queue.send(Order::Flush(done)).await.is_ok() {
                is_done.await.ok();
            }
        });
        if flushed.await.is_err() {
            self.lost
                .count(1, "the receiver did not take the last of them in time");
        }
    }
}

/// Says whether a trace is among those that are sent, the same in every process: by the digits of its id that are random.
fn is_sampled(trace: &str, percent: u32) -> bool {
    let random = trace.get(20..).unwrap_or_default();
    let random = u64::from_str_radix(random, 16).unwrap_or_default();
    random % 100 < u64::from(percent)
}

/// Sends what comes, in batches, until nobody can say anything any more.
async fn send(exporter: SpanExporter, mut orders: mpsc::Receiver<Order>, lost: Arc<LossCounter>) {
    while let Some(first) = orders.recv().await {
        let (mut batch, mut waiting) = (Vec::new(), None);
        match first {
            Order::Send(span) => batch.extend(data(*span)),
            Order::Flush(done) => waiting = Some(done),
        }
        let until = Instant::now() + GATHER;
        while waiting.is_none() && batch.len() < BATCH {
            match timeout_at(until, orders.recv()).await {
                Ok(Some(Order::Send(span))) => batch.extend(data(*span)),
                Ok(Some(Order::Flush(done))) => waiting = Some(done),
                Ok(None) | Err(_) => break,
            }
        }
        let spans = batch.len();
        if spans > 0 {
            match timeout(SEND, exporter.export(batch)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => lost.count(spans, &error.to_string()),
                Err(_) => lost.count(spans, "the receiver does not answer"),
            }
        }
        if let Some(done) = waiting {
            done.send(()).ok();
        }
    }
}

/// Makes of a span what is sent; none where its names are no names.
fn data(span: Span) -> Option<SpanData> {
    let trace = TraceId::from_hex(&span.trace).ok()?;
    let id = SpanId::from_hex(&span.id).ok()?;
    let parent = span.parent.as_deref().map(SpanId::from_hex);
    let parent = parent.transpose().ok()?.unwrap_or(SpanId::INVALID);
    let struck = |text: &str| secrets::strike(text).into_owned();
    let attributes = span.attributes.into_iter().map(|(key, said)| match said {
        AttributeValue::Text(text) => KeyValue::new(key, struck(&text)),
        AttributeValue::Number(number) => KeyValue::new(key, number),
    });
    // Beside the resource: some receivers keep no resources.
    let process = KeyValue::new("process.pid", i64::from(std::process::id()));
    let status = span.failure.as_deref().map(struck);
    let state = span.state.as_deref().map(struck);
    let state = state.and_then(|state| TraceState::from_str(&state).ok());
    Some(SpanData {
        span_context: SpanContext::new(
            trace,
            id,
            TraceFlags::SAMPLED,
            false,
            state.unwrap_or_default(),
        ),
        parent_span_id: parent,
        parent_span_is_remote: false,
        span_kind: match span.kind {
            Kind::Internal => SpanKind::Internal,
            Kind::Client => SpanKind::Client,
            Kind::Server => SpanKind::Server,
            Kind::Producer => SpanKind::Producer,
            Kind::Consumer => SpanKind::Consumer,
        },
        name: struck(&span.name).into(),
        start_time: span.began.into(),
        end_time: span.ended.into(),
        attributes: attributes.chain([process]).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: status.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder("ropewalk")
            .with_schema_url(SCHEMA)
            .build(),
    })
}

#[cfg(test)]
mod tests;
