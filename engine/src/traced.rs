//! Shows jobs, the calls of models and those of tools as spans, in the words of the conventions for generative models.

use chrono::{DateTime, Utc};
use ropewalk_llm::ToolUse;
use ropewalk_runtime::Clock;
use ropewalk_runtime::traces::{self, AttributeValue, Kind, Span};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::trace;

use crate::error::EngineError;
use crate::job::{Job, Outcome, UsageScope};
use crate::tool::ToolOutput;

/// Runs a job, or goes on with it, as a part of what its caller does.
pub(crate) async fn job<Work>(job: &Job, clock: &Clock, work: Work) -> Work::Output
where
    Work: Future<Output = Result<Outcome, EngineError>>,
{
    let chain = job.scope.chain.filter(|_| traces::are_on());
    let Some(chain) = chain else {
        return work.await;
    };
    let (trace, began) = (trace::trace_id(chain), clock.now());
    let name = format!("{}/{}", job.journal_key, began.timestamp_micros());
    let id = trace::work_span(&name);
    let outcome = traces::within(Some((trace.clone(), id.clone())), work).await;
    let agent = job.script.agent.as_str();
    let mut attributes = vec![
        ("gen_ai.operation.name", "invoke_agent".into()),
        ("gen_ai.agent.name", agent.into()),
        ("gen_ai.conversation.id", job.journal_key.as_str().into()),
    ];
    attributes.extend(scope(&job.scope));
    traces::record(Span {
        parent: traces::current(&trace),
        state: None,
        trace,
        id,
        kind: Kind::Internal,
        name: format!("invoke_agent {agent}"),
        began,
        ended: clock.now(),
        attributes,
        failure: outcome.as_ref().err().map(ToString::to_string),
    });
    outcome
}

/// Shows a call that stands in the journal; `asked` is the model as it was asked for.
pub(crate) fn call(job: &Job, call: &ModelCall, asked: &str) {
    let chain = job.scope.chain.filter(|_| traces::are_on());
    let Some(chain) = chain else {
        return;
    };
    let trace = trace::trace_id(chain);
    let took = call.duration_ms.and_then(|took| i64::try_from(took).ok());
    let took = chrono::TimeDelta::milliseconds(took.unwrap_or_default());
    let mut attributes = vec![
        ("gen_ai.operation.name", AttributeValue::from("chat")),
        ("gen_ai.request.model", asked.into()),
        ("gen_ai.response.model", call.model.as_str().into()),
        ("gen_ai.usage.input_tokens", call.input_tokens.into()),
        ("gen_ai.usage.output_tokens", call.output_tokens.into()),
        (
            "gen_ai.usage.cache_read.input_tokens",
            call.cache_read_tokens.into(),
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            call.cache_write_tokens.into(),
        ),
        ("gen_ai.agent.name", job.script.agent.as_str().into()),
        ("ropewalk.role", call.role.as_str().into()),
    ];
    let provider = call.provider.as_deref();
    attributes.extend(provider.map(|name| ("gen_ai.provider.name", name.into())));
    attributes.extend(
        call.micro_usd
            .map(|cost| ("ropewalk.micro_usd", cost.into())),
    );
    attributes.extend(scope(&job.scope));
    traces::record(Span {
        id: trace::call_span(&call.key),
        parent: traces::current(&trace),
        state: None,
        trace,
        kind: Kind::Client,
        name: format!("chat {asked}"),
        began: call.at - took,
        ended: call.at,
        attributes,
        failure: call.refusal.clone(),
    });
}

/// Runs a tool call as a part of its job. What it is called with and what comes of it are nobody's but the model's.
pub(crate) async fn tool<Work>(
    job: &Job,
    (call, called_at): (&ToolUse, DateTime<Utc>),
    clock: &Clock,
    work: Work,
) -> Work::Output
where
    Work: Future<Output = Result<(String, ToolOutput), EngineError>>,
{
    let chain = job.scope.chain.filter(|_| traces::are_on());
    let Some(chain) = chain else {
        return work.await;
    };
    let (trace, began) = (trace::trace_id(chain), clock.now());
    // Some providers name the calls of every reply alike.
    let name = format!(
        "{}/{}/{}/{}",
        job.journal_key,
        call.id,
        called_at.timestamp_micros(),
        began.timestamp_micros()
    );
    let id = trace::work_span(&name);
    let outcome = traces::within(Some((trace.clone(), id.clone())), work).await;
    let error_type = match &outcome {
        Ok((_, output)) => output.is_error.then_some("tool_error"),
        Err(EngineError::Cancelled) => Some("cancelled"),
        Err(_) => Some("ended"),
    };
    // A model may call by any name.
    let tool = job.tools.name_of(call).unwrap_or("unknown");
    let mut attributes = vec![
        (
            "gen_ai.operation.name",
            AttributeValue::from("execute_tool"),
        ),
        ("gen_ai.tool.name", tool.into()),
        ("gen_ai.tool.call.id", call.id.as_str().into()),
        ("gen_ai.tool.type", "function".into()),
        ("gen_ai.agent.name", job.script.agent.as_str().into()),
    ];
    attributes.extend(error_type.map(|error| ("error.type", error.into())));
    attributes.extend(scope(&job.scope));
    traces::record(Span {
        parent: traces::current(&trace),
        state: None,
        trace,
        id,
        kind: Kind::Internal,
        name: format!("execute_tool {tool}"),
        began,
        ended: clock.now(),
        attributes,
        failure: error_type.map(str::to_owned),
    });
    outcome
}

fn scope(scope: &UsageScope) -> impl Iterator<Item = (&'static str, AttributeValue)> {
    let parts = [
        (
            "ropewalk.idea",
            scope.idea.as_ref().map(ToString::to_string),
        ),
        ("ropewalk.build", scope.build.map(|build| build.to_string())),
        (
            "ropewalk.task",
            scope.task.as_ref().map(ToString::to_string),
        ),
    ];
    parts
        .into_iter()
        .filter_map(|(key, value)| Some((key, AttributeValue::from(value?))))
}
