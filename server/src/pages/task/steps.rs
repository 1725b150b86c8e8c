//! What a model said and did at a task, step by step: a message with its words, a call with all that came of it.

use std::collections::HashMap;

use ropewalk_desk::views::transcript::StepWords;
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::job_event::{JobEvent, Passage};
use serde_json::Value;

use super::shown;

/// How much of one text is shown where not all of it is wanted.
const TEXT_BYTES: usize = 4 * 1024;

/// One step.
#[derive(Default)]
pub(super) struct Step {
    /// Names it on the page, where what comes live finds it; empty for what stands by itself.
    pub(super) key: String,
    /// What it is.
    pub(super) line: String,
    /// How it came out, with the class of its colour.
    pub(super) outcome: Option<(&'static str, &'static str)>,
    /// What was said; nothing where it is no message.
    pub(super) words: Option<String>,
    /// What changed by it.
    pub(super) differences: Vec<StepPart>,
    /// What was asked for, and what came of it.
    pub(super) parts: Vec<StepPart>,
    pub(super) has_ended: bool,
}

/// A text that belongs to a step.
pub(super) struct StepPart {
    pub(super) called: String,
    pub(super) text: String,
}

/// How much of each text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Its two ends.
    Ends,
    /// All that was kept.
    Whole,
}

impl StepPart {
    fn new(called: impl Into<String>, text: &str, extent: Extent) -> Option<Self> {
        let text = cut(text.trim_end(), extent);
        let called = called.into();
        (!text.is_empty()).then_some(Self { called, text })
    }

    fn difference(path: &str, text: &str, extent: Extent) -> Self {
        Self {
            called: format!("changed {path}"),
            text: cut(text, extent),
        }
    }

    /// Returns the lines of a difference, each with its class.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.text.lines().map(|line| (shown::line(line), line))
    }
}

fn cut(text: &str, extent: Extent) -> String {
    match extent {
        Extent::Ends => clip::ends(text, TEXT_BYTES, Weight::Head).into_owned(),
        Extent::Whole => text.to_owned(),
    }
}

/// Puts what belongs together into one step, in the order in which the steps began.
pub(super) fn steps(passages: &[Passage], extent: Extent) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for passage in passages {
        let Some(told) = StepWords::new(&passage.event) else {
            continue;
        };
        let Some(item) = item(&passage.event) else {
            steps.push(alone(&passage.event, told, extent));
            continue;
        };
        let key = format!("{}/{item}", passage.attempt);
        let place = *places.entry(key.clone()).or_insert_with(|| {
            steps.push(Step {
                key,
                line: told.line.clone(),
                ..Step::default()
            });
            steps.len() - 1
        });
        steps[place].take(&passage.event, told, extent);
    }
    steps.retain(|step| !step.is_empty());
    steps
}

/// Returns what an event belongs to.
fn item(event: &JobEvent) -> Option<&str> {
    match event {
        JobEvent::MessageEnded { item, .. }
        | JobEvent::ToolStarted { item, .. }
        | JobEvent::ToolEnded { item, .. }
        | JobEvent::ToolSkipped { item, .. }
        | JobEvent::FileChanged { item, .. }
        | JobEvent::TodoUpdated { item, .. }
        | JobEvent::ResultTaken { item, .. }
        | JobEvent::ResultRefused { item, .. } => Some(item),
        _ => None,
    }
}

/// Returns the step of an event that belongs to nothing else.
fn alone(event: &JobEvent, told: StepWords<'_>, extent: Extent) -> Step {
    Step {
        outcome: match event {
            JobEvent::Judged { passed: true, .. } => Some(("passed", "good")),
            JobEvent::Judged { asks: true, .. } => Some(("waits", "waits")),
            JobEvent::Judged { .. } => Some(("failed", "bad")),
            _ => None,
        },
        parts: StepPart::new("it says", &told.more, extent)
            .into_iter()
            .collect(),
        line: told.line,
        has_ended: true,
        ..Step::default()
    }
}

impl Step {
    fn take(&mut self, event: &JobEvent, told: StepWords<'_>, extent: Extent) {
        match event {
            // After a crash, what was done again stands in the place of what was cut off.
            JobEvent::ToolStarted { input, .. } => {
                *self = Self {
                    key: std::mem::take(&mut self.key),
                    parts: StepPart::new("arguments", &arguments(input), extent)
                        .into_iter()
                        .collect(),
                    line: told.line,
                    ..Self::default()
                };
            }
            JobEvent::MessageEnded { text, .. } => {
                self.words = Some(cut(text.trim(), extent));
                self.line = told.line;
                self.has_ended = true;
            }
            JobEvent::FileChanged {
                path, difference, ..
            } => self
                .differences
                .push(StepPart::difference(path, difference, extent)),
            JobEvent::ToolEnded { is_error, .. } => {
                self.outcome = is_error.then_some(("failed", "bad"));
                self.parts
                    .extend(StepPart::new("answer", &told.more, extent));
                self.has_ended = true;
            }
            JobEvent::ToolSkipped { .. } => self.end("not run", &told.line, extent),
            JobEvent::ResultTaken { .. } => {
                self.outcome = Some(("taken", "good"));
                self.has_ended = true;
            }
            JobEvent::ResultRefused { .. } => self.end("not taken", &told.line, extent),
            _ => self
                .parts
                .extend(StepPart::new(told.line, &told.more, extent)),
        }
    }

    fn end(&mut self, outcome: &'static str, why: &str, extent: Extent) {
        self.outcome = Some((outcome, "bad"));
        self.parts.extend(StepPart::new("why", why, extent));
        self.has_ended = true;
    }

    /// Returns whether it is a message that says nothing beside its calls.
    fn is_empty(&self) -> bool {
        self.words.as_ref().is_some_and(String::is_empty)
    }
}

/// Returns the arguments of a call, each with its text as it is.
fn arguments(input: &Value) -> String {
    let Value::Object(fields) = input else {
        return input.to_string();
    };
    let shown = fields.iter().map(|(name, value)| match value {
        Value::String(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn passages(events: &[Value]) -> Vec<Passage> {
        let attempt = "0190f5fe-7c00-7000-8000-000000000001";
        let passage = |event: &Value| {
            let mut passage =
                json!({ "attempt": attempt, "task": "T-1", "at": "2026-03-01T08:00:00Z" });
            let fields = passage.as_object_mut().unwrap();
            fields.extend(event.as_object().unwrap().clone());
            serde_json::from_value(passage).unwrap()
        };
        events.iter().map(passage).collect()
    }

    #[test]
    fn a_call_is_one_step_with_its_difference_and_what_came_of_it() {
        let usage = json!({ "model": "m", "input_tokens": 1, "output_tokens": 1 });
        let told = steps(
            &passages(&[
                json!({ "kind": "turn_started", "turn": 1 }),
                json!({ "kind": "message_ended", "item": "message-1", "text": "I write.", "calls": ["write", "bash"], "usage": usage }),
                json!({ "kind": "tool_started", "item": "a", "name": "write", "input": { "content": "one\ntwo", "path": "a.txt" } }),
                json!({ "kind": "tool_started", "item": "b", "name": "bash", "input": { "command": "ls" } }),
                json!({ "kind": "file_changed", "item": "a", "path": "a.txt", "difference": "@@ -0,0 +1 @@\n+one" }),
                json!({ "kind": "tool_ended", "item": "a", "name": "write", "output": "Wrote it.", "is_error": false }),
                json!({ "kind": "message_ended", "item": "message-2", "text": " ", "calls": [], "usage": usage }),
                json!({ "kind": "judged", "passed": false, "text": "one\ntwo" }),
            ]),
            Extent::Ends,
        );
        let lines: Vec<&str> = told.iter().map(|step| step.line.as_str()).collect();
        assert_eq!(
            lines,
            [
                "says  (m, 1 in, 1 out, unknown price)",
                "calls write content=one two path=a.txt",
                "calls bash command=ls",
                "the gate sent it back"
            ]
        );
        assert_eq!(told[0].words.as_deref(), Some("I write."));
        let difference = told[1].differences[0].lines();
        assert_eq!(
            difference.collect::<Vec<_>>(),
            [("place", "@@ -0,0 +1 @@"), ("added", "+one")]
        );
        let called = told[1].parts.iter().map(|part| part.called.as_str());
        assert_eq!(called.collect::<Vec<_>>(), ["arguments", "answer"]);
        assert_eq!((told[1].has_ended, told[2].has_ended), (true, false));
        assert_eq!(told[3].outcome, Some(("failed", "bad")));
    }
}
