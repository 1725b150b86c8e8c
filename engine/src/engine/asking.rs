//! Asks the model once, and knows what a reply that never became whole has cost.

use futures::StreamExt;
use ropewalk_llm::{Delta, ModelError, ModelRequest, Reply, Usage};
use ropewalk_runtime::secrets::SecretFilter;
use ropewalk_runtime::{Brake, idle};
use tokio_util::sync::CancellationToken;

use super::early::EarlyCalls;
use super::secrets::strike_reply;
use crate::error::EngineError;
use crate::event::{JobEvent, Observer};
use crate::job::ModelEntry;

/// About so many bytes are a token, where nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// Is a call that came to no whole reply.
#[derive(Debug)]
pub(super) struct CallFailure {
    /// Why.
    pub(super) error: EngineError,
    /// What it used all the same; none when nothing was heard.
    pub(super) usage: Option<Usage>,
}

impl From<EngineError> for CallFailure {
    fn from(error: EngineError) -> Self {
        Self { error, usage: None }
    }
}

/// Asks, and shows `observer` the words of the message `item` as they come; `early` hears what is called. Once the process
/// stops nothing is asked, and what was asked is broken off after a little: whoever hears that goes no further.
pub(super) async fn ask(
    (entry, brake): (&ModelEntry, &Brake),
    request: &ModelRequest,
    cancel: &CancellationToken,
    (item, observer): (&str, &dyn Observer),
    early: &mut EarlyCalls<'_>,
) -> Result<Reply, CallFailure> {
    idle::end_here().await;
    let mut heard = PartialReply::default();
    let told = MessageObserver { item, observer };
    let hearing = (&mut heard, early);
    // Dropping the stream ends the request, so that a provider that hangs cannot hold the job.
    let answered = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ModelError::Cancelled),
        () = idle::cut_off() => Err(ModelError::Cancelled),
        reply = listen((entry, brake), request, cancel, &told, hearing) => reply,
    };
    answered.map_err(|error| {
        let usage = heard.usage(request, &error);
        let error = match error {
            ModelError::Cancelled => EngineError::Cancelled,
            other => other.into(),
        };
        CallFailure { error, usage }
    })
}

async fn listen(
    (entry, brake): (&ModelEntry, &Brake),
    request: &ModelRequest,
    cancel: &CancellationToken,
    told: &MessageObserver<'_>,
    (heard, early): (&mut PartialReply, &mut EarlyCalls<'_>),
) -> Result<Reply, ModelError> {
    // Where nothing answers it asks again and again: that ends while everything is stopped, and begins anew then.
    let mut stream = loop {
        brake.pass(cancel).await;
        tokio::select! {
            biased;
            () = brake.pulled() => {}
            stream = entry.model.stream(request, cancel) => break stream?,
        }
    };
    let mut spoken = SecretFilter::default();
    loop {
        let delta = tokio::select! {
            biased;
            () = early.go_on() => continue,
            delta = stream.next() => delta,
        };
        match delta.unwrap_or(Err(ModelError::Truncated))? {
            Delta::Text(text) => {
                heard.hear(text.len());
                told.words(&spoken.hear(&text));
            }
            Delta::Done(mut reply) => {
                told.words(&spoken.end());
                strike_reply(&mut reply);
                return Ok(reply);
            }
            Delta::ToolUseStarted { id: item, name } => {
                heard.hear(0);
                told.observer.see(JobEvent::ToolAnnounced { item, name });
            }
            Delta::ToolUse(call) => {
                heard.hear(call.input.to_string().len());
                early.hear(&call);
            }
            Delta::Usage(usage) => heard.counted = usage,
        }
    }
}

/// Who is told the words of a message.
struct MessageObserver<'a> {
    item: &'a str,
    observer: &'a dyn Observer,
}

impl MessageObserver<'_> {
    /// Shows words; what is held back, since a secret may begin there, is shown later.
    fn words(&self, words: &str) {
        if !words.is_empty() {
            self.observer.see(JobEvent::MessageUpdated {
                item: self.item.to_owned(),
                text: words.to_owned(),
            });
        }
    }
}

/// Is what was heard of a reply so far.
#[derive(Debug, Default)]
struct PartialReply {
    began: bool,
    bytes: u64,
    counted: Usage,
}

impl PartialReply {
    fn hear(&mut self, bytes: usize) {
        self.began = true;
        self.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }

    /// Counts what is paid for a reply that broke off. Providers count a reply at its end, so where one has not said
    /// it, the bytes stand in: a budget that took it for nothing could be emptied by such replies.
    fn usage(&self, request: &ModelRequest, error: &ModelError) -> Option<Usage> {
        let bytes = match error {
            ModelError::TooLong { limit_bytes } => self.bytes.max(*limit_bytes),
            _ => self.bytes,
        };
        if !self.began && bytes == 0 {
            return None;
        }
        let mut usage = self.counted;
        if usage.total_input_tokens() == 0 {
            let read = u64::try_from(request.text().len()).unwrap_or(u64::MAX);
            usage.input_tokens = read / BYTES_PER_TOKEN;
        }
        usage.output_tokens = usage.output_tokens.max(bytes / BYTES_PER_TOKEN);
        Some(usage)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_llm::Message;

    use super::*;

    #[test]
    fn what_broke_off_costs_what_was_counted_or_else_what_was_heard() {
        let request = ModelRequest::new("m", "", vec![Message::user("x".repeat(400))]);
        let counted = Usage {
            input_tokens: 7,
            output_tokens: 1,
            ..Usage::default()
        };
        let too_long = ModelError::TooLong { limit_bytes: 4_000 };
        let rows = [
            (false, 0, Usage::default(), ModelError::Truncated, None),
            (
                false,
                0,
                Usage::default(),
                too_long.clone(),
                Some((100, 1_000)),
            ),
            (
                true,
                80,
                Usage::default(),
                ModelError::Truncated,
                Some((100, 20)),
            ),
            (true, 80, counted, ModelError::Truncated, Some((7, 20))),
            (true, 0, counted, ModelError::Truncated, Some((7, 1))),
            (true, 80, counted, too_long, Some((7, 1_000))),
        ];
        for (began, bytes, counted, error, expected) in rows {
            let heard = PartialReply {
                began,
                bytes,
                counted,
            };
            let usage = heard.usage(&request, &error);
            let found = usage.map(|usage| (usage.input_tokens, usage.output_tokens));
            assert_eq!(found, expected, "{heard:?} {error}");
        }
    }
}
