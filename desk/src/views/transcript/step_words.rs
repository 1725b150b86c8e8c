//! Says a step of a model in words, the same on every surface.

use std::borrow::Cow;

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::clip;
use ropewalk_schemas::job_event::{CallUsage, JobEvent};
use ropewalk_schemas::model_call::Compaction;
use serde_json::Value;

/// How much of one line is told.
const WIDTH: usize = 160;

/// A step in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepWords<'a> {
    /// What it is, in a line.
    pub line: String,
    /// What there is to read of it: words, an output, a difference.
    pub more: Cow<'a, str>,
}

impl<'a> StepWords<'a> {
    fn line(line: impl Into<String>) -> Self {
        Self::of(line, "")
    }

    fn of(line: impl Into<String>, more: impl Into<Cow<'a, str>>) -> Self {
        Self {
            line: line.into(),
            more: more.into(),
        }
    }

    /// Tells `event`; nothing where only machines care for it.
    pub fn new(event: &'a JobEvent) -> Option<Self> {
        Some(match event {
            JobEvent::TurnStarted {
                turn,
                replayed: true,
            } => Self::line(format!("turn {turn} again, as it was answered before")),
            JobEvent::MessageEnded { text, usage, .. } => {
                Self::of(format!("says  ({})", cost(usage)), text)
            }
            JobEvent::ToolStarted { name, input, .. } => {
                let line = format!("calls {name} {}", arguments(input));
                Self::line(line.trim_end())
            }
            JobEvent::FileChanged {
                path, difference, ..
            } => Self::of(format!("changed {path}"), difference),
            JobEvent::TodoUpdated { todos, .. } => {
                let list: Vec<String> = todos.iter().map(ToString::to_string).collect();
                Self::of("plans", list.join("\n"))
            }
            JobEvent::ToolEnded {
                name,
                output,
                is_error,
                ..
            } => {
                let result = if *is_error { "failed" } else { "answered" };
                Self::of(format!("{name} {result}"), output)
            }
            JobEvent::ToolSkipped { name, reason, .. } => {
                Self::line(format!("{name} was not run: {}", short(reason)))
            }
            JobEvent::FellBack { from, to, reason } => {
                Self::line(format!("{to} takes over from {from}: {}", short(reason)))
            }
            JobEvent::Compacted { .. } => Self::line(compacted(event)),
            JobEvent::PersonSaid { text } => Self::line(format!("a person says: {}", short(text))),
            JobEvent::Advised { text } => Self::line(format!("is told: {}", short(text))),
            JobEvent::ResultTaken { result, .. } => {
                Self::line(format!("hands in {}", arguments(result)))
            }
            JobEvent::ResultRefused { reason, .. } => {
                Self::line(format!("result not taken: {}", short(reason)))
            }
            JobEvent::Judged { passed: true, .. } => Self::line("the gate took it"),
            JobEvent::Judged {
                asks: true, text, ..
            } => {
                let why = FailureClass::Tampered.in_words();
                Self::of(format!("waits for your answer: {why}"), text)
            }
            JobEvent::Judged { text, .. } => Self::of("the gate sent it back", text),
            JobEvent::TurnEnded { .. } => Self::line(turn_ended(event)?),
            _ => return None,
        })
    }
}

/// Tells what a turn that ended has to say: that a known answer was given to another question, and why the turn failed.
fn turn_ended(event: &JobEvent) -> Option<String> {
    let JobEvent::TurnEnded {
        turn,
        error,
        strayed,
        ..
    } = event
    else {
        return None;
    };
    let strayed = strayed.as_ref().map(|what| {
        let what = short(what);
        format!("turn {turn} was asked otherwise before: {what}")
    });
    let ended = error.as_ref();
    let ended = ended.map(|error| format!("ended: {}", short(error)));
    let told: Vec<String> = strayed.into_iter().chain(ended).collect();
    (!told.is_empty()).then(|| told.join("; "))
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

/// Tells what a tool is given in a line, with every blank of it: an edit may be about those alone.
fn arguments(input: &Value) -> String {
    let whole = match input {
        Value::Object(fields) => {
            let shown = fields.iter().map(|(name, value)| match value {
                Value::String(text) => {
                    let text = plain(text).unwrap_or_else(|| value.to_string());
                    format!("{name}={}", clip::letters(&text, WIDTH / 2))
                }
                other => format!("{name}={other}"),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    };
    clip::letters(&whole, WIDTH).into_owned()
}

/// Returns a text on a line, where a single blank or line break parts its words; any other one is told in quotes.
fn plain(text: &str) -> Option<String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let is_plain = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    let mut words = text.split([' ', '\n']);
    words.all(is_plain).then(|| text.replace('\n', " "))
}

fn short(text: &str) -> String {
    clip::line(text, WIDTH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_blanks_alone_is_seen() {
        for (input, expected) in [
            (
                json!({ "path": "a.txt", "content": "a walk\nand a rest\n" }),
                "path=a.txt content=a walk and a rest",
            ),
            (
                json!({ "old_text": "1,5  1,5", "new_text": "1,5 1,5 " }),
                "old_text=\"1,5  1,5\" new_text=\"1,5 1,5 \"",
            ),
            (
                json!({ "edits": [{ "old_text": "a\n  b", "new_text": "a\n b" }] }),
                "edits=[{\"old_text\":\"a\\n  b\",\"new_text\":\"a\\n b\"}]",
            ),
            (json!({ "text": "" }), "text=\"\""),
        ] {
            assert_eq!(arguments(&input), expected);
        }
        let long = arguments(&json!({ "command": "ls ".repeat(100) }));
        assert!(long.ends_with('…') && long.len() < WIDTH, "{long}");
    }
}
