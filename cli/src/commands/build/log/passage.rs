//! Shows one step of a model as lines for people.

use ropewalk_schemas::clip;
use ropewalk_schemas::job_event::{CallUsage, JobEvent, Passage};
use ropewalk_schemas::model_call::Compaction;
use serde_json::Value;

/// How much of one line is shown.
const WIDTH: usize = 160;
/// How many lines of an output or a difference are shown.
const LINES: usize = 40;
/// What stands before what a model does, where an event has its number.
const MARGIN: &str = "        ";

/// Returns the lines for people; none for what only machines care for.
pub(super) fn lines(passage: &Passage) -> Vec<String> {
    let task = &passage.task;
    let head = |what: &str| format!("{MARGIN}{task}  {what}").trim_end().to_owned();
    let told = |what: &str, text: &str| {
        let mut lines = vec![head(what)];
        lines.extend(body(text, LINES));
        lines
    };
    match &passage.event {
        JobEvent::TurnStarted {
            turn,
            replayed: true,
        } => {
            vec![head(&format!(
                "turn {turn} again, as it was answered before"
            ))]
        }
        JobEvent::MessageEnded { text, usage, .. } => {
            told(&format!("says  ({})", cost(usage)), text)
        }
        JobEvent::ToolStarted { name, input, .. } => {
            vec![head(&format!("calls {name} {}", short(&arguments(input))))]
        }
        JobEvent::FileChanged {
            path, difference, ..
        } => told(&format!("changed {path}"), difference),
        JobEvent::TodoUpdated { todos, .. } => {
            let list: Vec<String> = todos.iter().map(ToString::to_string).collect();
            told("plans", &list.join("\n"))
        }
        JobEvent::ToolEnded {
            name,
            output,
            is_error,
            ..
        } => {
            let (result, most) = match is_error {
                true => ("failed", LINES),
                false => ("answered", 3),
            };
            let mut lines = vec![head(&format!("{name} {result}"))];
            lines.extend(body(output, most));
            lines
        }
        JobEvent::ToolSkipped { name, reason, .. } => {
            vec![head(&format!("{name} was not run: {}", short(reason)))]
        }
        JobEvent::FellBack { from, to, reason } => {
            let why = short(reason);
            vec![head(&format!("{to} takes over from {from}: {why}"))]
        }
        JobEvent::Compacted { .. } => vec![head(&compacted(&passage.event))],
        JobEvent::PersonSaid { text } => {
            vec![head(&format!("a person says: {}", short(text)))]
        }
        JobEvent::Advised { text } => vec![head(&format!("is told: {}", short(text)))],
        JobEvent::ResultTaken { result, .. } => {
            vec![head(&format!("hands in {}", short(&arguments(result))))]
        }
        JobEvent::ResultRefused { reason, .. } => {
            vec![head(&format!("result not taken: {}", short(reason)))]
        }
        JobEvent::Judged { passed: true, .. } => vec![head("the gate took it")],
        JobEvent::Judged { text, .. } => told("the gate sent it back", text),
        JobEvent::TurnEnded { .. } => turn_ended(&passage.event)
            .iter()
            .map(|what| head(what))
            .collect(),
        _ => Vec::new(),
    }
}

/// Tells what a turn that ended has to say: that a known answer was given to another question,
/// and why the turn failed.
fn turn_ended(event: &JobEvent) -> Vec<String> {
    let JobEvent::TurnEnded {
        turn,
        error,
        strayed,
        ..
    } = event
    else {
        return Vec::new();
    };
    let strayed = strayed.as_ref().map(|what| {
        let what = short(what);
        format!("turn {turn} was asked otherwise before: {what}")
    });
    let ended = error.as_ref();
    let ended = ended.map(|error| format!("ended: {}", short(error)));
    strayed.into_iter().chain(ended).collect()
}

/// Tells what was done about a conversation that had grown too long.
fn compacted(event: &JobEvent) -> String {
    let JobEvent::Compacted {
        how,
        before,
        after,
        warning,
    } = event
    else {
        return String::new();
    };
    let what = match how {
        Compaction::Trimmed => "old results were cut",
        Compaction::Summarised => "older messages were summed up",
        Compaction::Cut => "older messages were left out",
    };
    let why = warning.as_deref().map(|why| format!("; {}", short(why)));
    let why = why.unwrap_or_default();
    format!("{what}: {before} tokens became {after}{why}")
}

fn cost(usage: &CallUsage) -> String {
    let money = usage.micro_usd.map_or_else(
        || "unknown price".to_owned(),
        |micro_usd| {
            format!(
                "${}.{:04}",
                micro_usd / 1_000_000,
                micro_usd % 1_000_000 / 100
            )
        },
    );
    let CallUsage {
        model,
        input_tokens,
        output_tokens,
        ..
    } = usage;
    format!("{model}, {input_tokens} in, {output_tokens} out, {money}")
}

fn arguments(input: &Value) -> String {
    match input {
        Value::Object(fields) => {
            let shown = fields.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}={}", clip::line(text, WIDTH / 2)),
                other => format!("{name}={other}"),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Indents a text, of which at most so many lines are shown.
fn body(text: &str, most: usize) -> Vec<String> {
    let all: Vec<&str> = text.trim().lines().collect();
    let shown = all.iter().take(most);
    let mut lines: Vec<String> = shown
        .map(|line| format!("{MARGIN}  | {}", line.trim_end()))
        .collect();
    if all.len() > most {
        lines.push(format!("{MARGIN}  | … {} more lines", all.len() - most));
    }
    lines
}

fn short(text: &str) -> String {
    clip::line(text, WIDTH)
}
