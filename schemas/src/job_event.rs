//! Defines what happens in a job of a model, step by step: words, tools, differences, verdicts and costs.
//!
//! Such an event is seen live and kept in the transcript of an attempt; the truth of a job stays in its model calls.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AttemptId, TaskId};
use crate::model_call::{Compaction, ModelCall};

/// Is one step of a job. Every turn begins with [`JobEvent::TurnStarted`] and ends with [`JobEvent::TurnEnded`]; what
/// belongs to one message or one call has one `item`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JobEvent {
    /// The model is about to be asked.
    TurnStarted {
        /// Which time it is, from 1.
        turn: u32,
        /// Whether the answer is known from before a crash.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    },
    /// What the turn brought has been done, or it broke off.
    TurnEnded {
        /// Which time it was.
        turn: u32,
        /// Why the model stopped; none where it never came to an end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<String>,
        /// What ended the job here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What differs where the answer that is known was given to another question: what was done since the one before it
        /// came to something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strayed: Option<String>,
    },
    /// The model begins to answer.
    MessageStarted {
        /// The message.
        item: String,
    },
    /// The model wrote more text.
    MessageUpdated {
        /// The message.
        item: String,
        /// What came.
        text: String,
    },
    /// The model has ended its answer, and the journal has it.
    MessageEnded {
        /// The message.
        item: String,
        /// All its words.
        text: String,
        /// The tools that it calls, in order.
        #[serde(default)]
        calls: Vec<String>,
        /// What it cost.
        usage: CallUsage,
    },
    /// The model writes the arguments of a call.
    ToolAnnounced {
        /// The call.
        item: String,
        /// The tool.
        name: String,
    },
    /// A tool begins.
    ToolStarted {
        /// The call.
        item: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
    },
    /// A tool says more of what it found or wrote.
    ToolUpdated {
        /// The call.
        item: String,
        /// What came.
        text: String,
    },
    /// A tool has ended.
    ToolEnded {
        /// The call.
        item: String,
        /// The tool.
        name: String,
        /// What the model gets to read.
        output: String,
        /// Whether it failed.
        is_error: bool,
        /// What only watchers get to see.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        metadata: Value,
    },
    /// A call is not run.
    ToolSkipped {
        /// The call.
        item: String,
        /// The tool.
        name: String,
        /// Why.
        reason: String,
    },
    /// A tool changed a file.
    FileChanged {
        /// The call.
        item: String,
        /// The file.
        path: String,
        /// The difference, as `diff -u` shows it.
        difference: String,
    },
    /// The model changed its list of what is to be done.
    TodoUpdated {
        /// The call.
        item: String,
        /// The whole list.
        todos: Vec<Todo>,
    },
    /// The work has moved: a file changed, a command gave a result that was not seen before, or a part of the code
    /// base was read for the first time. Words alone are no progress.
    Progressed,
    /// A person spoke into the job.
    PersonSaid {
        /// The words.
        text: String,
    },
    /// The model called nothing and was told how to go on.
    Advised {
        /// What it was told.
        text: String,
    },
    /// The model handed in a result of the right form.
    ResultTaken {
        /// The call.
        item: String,
        /// The result.
        result: Value,
    },
    /// The model handed in something else.
    ResultRefused {
        /// The call.
        item: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another model takes over for the rest of the job.
    FellBack {
        /// Who was asked.
        from: String,
        /// Who is asked from now on.
        to: String,
        /// Why.
        reason: String,
    },
    /// The conversation had grown too long, and something was done about it.
    Compacted {
        /// What.
        how: Compaction,
        /// About how many tokens it had.
        before: u64,
        /// About how many it has.
        after: u64,
        /// Why there is no summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    /// The gate looked at the work.
    Judged {
        /// Whether it took it.
        passed: bool,
        /// Whether it would take it, once a person has allowed what it changes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
        /// What it says.
        text: String,
    },
}

/// Something that is to be done in a work, as its model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What.
    pub text: String,
    /// How far it has come.
    pub state: TodoState,
}

/// How far something has come that is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    Open,
    /// Begun.
    Doing,
    /// Done.
    Done,
}

impl fmt::Display for Todo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.state {
            TodoState::Open => ' ',
            TodoState::Doing => '>',
            TodoState::Done => 'x',
        };
        write!(formatter, "[{mark}] {}", self.text)
    }
}

/// What one call of a model used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallUsage {
    /// The model that answered.
    pub model: String,
    /// Tokens in, those of the provider's cache among them.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Millionths of a dollar; none when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl JobEvent {
    /// Says whether a transcript keeps it: what is repeated by a later event, or only says that something lives, is
    /// for those who watch.
    pub const fn is_kept(&self) -> bool {
        !matches!(
            self,
            Self::MessageStarted { .. }
                | Self::MessageUpdated { .. }
                | Self::ToolAnnounced { .. }
                | Self::ToolUpdated { .. }
                | Self::Progressed
        )
    }

    /// Tells again what the journal knows of one call: its words and the tools that it wanted. What came of those
    /// stands in no row.
    pub fn of_call(call: &ModelCall) -> Vec<Self> {
        let turn: Option<u32> = call.key.rsplit('/').find_map(|part| part.parse().ok());
        let what = if call.is_summary() {
            "summary"
        } else {
            "message"
        };
        let item = format!("{what}-{}", turn.unwrap_or_default());
        let blocks = call.reply["blocks"].as_array();
        let blocks = blocks.map_or(&[][..], Vec::as_slice);
        let tools: Vec<&Value> = blocks
            .iter()
            .filter_map(|block| block.get("tool_use"))
            .collect();
        let text: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let named = |tool: &Value, field: &str| tool[field].as_str().unwrap_or_default().to_owned();
        let words = Self::MessageEnded {
            item,
            text: call.refusal.clone().unwrap_or_else(|| text.concat()),
            calls: tools.iter().map(|tool| named(tool, "name")).collect(),
            usage: CallUsage {
                model: call.model.clone(),
                input_tokens: call.input_tokens,
                output_tokens: call.output_tokens,
                micro_usd: call.micro_usd,
            },
        };
        let calls = tools.iter().map(|tool| Self::ToolStarted {
            item: named(tool, "id"),
            name: named(tool, "name"),
            input: tool["input"].clone(),
        });
        std::iter::once(words).chain(calls).collect()
    }
}

/// One step of an attempt, as its transcript keeps it and those who watch hear it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its task.
    pub task: TaskId,
    /// When.
    pub at: DateTime<Utc>,
    /// What happened.
    #[serde(flatten)]
    pub event: JobEvent,
}

impl Passage {
    /// What those who listen hear it as.
    pub const LIVE: &str = "task.step";
    /// The most of it that is kept of an attempt.
    pub const MOST_BYTES: u64 = 16 * 1024 * 1024;

    /// Reads a line of a transcript: where it belongs, then what happened, since a record that is put together of both keeps
    /// every text twice before it is known what sort it is.
    ///
    /// # Errors
    /// Where the line is no step.
    pub fn parse(line: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Place {
            attempt: AttemptId,
            task: TaskId,
            at: DateTime<Utc>,
        }
        let Place { attempt, task, at } = serde_json::from_str(line)?;
        Ok(Self {
            attempt,
            task,
            at,
            event: serde_json::from_str(line)?,
        })
    }

    /// Names the file of an attempt's transcript below the state directory.
    pub fn file(attempt: AttemptId) -> String {
        format!("transcripts/{attempt}.jsonl")
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn item() -> String {
        "i".to_owned()
    }

    fn text() -> String {
        "héllo \u{0} \"q\"\n".to_owned()
    }

    fn of_messages() -> Vec<JobEvent> {
        vec![
            JobEvent::TurnStarted {
                turn: 1,
                replayed: true,
            },
            JobEvent::MessageStarted { item: item() },
            JobEvent::MessageUpdated {
                item: item(),
                text: text(),
            },
            JobEvent::MessageEnded {
                item: item(),
                text: text(),
                calls: vec!["edit".to_owned()],
                usage: CallUsage {
                    micro_usd: Some(3),
                    ..CallUsage::default()
                },
            },
            JobEvent::PersonSaid { text: text() },
            JobEvent::Advised { text: text() },
            JobEvent::FellBack {
                from: text(),
                to: text(),
                reason: text(),
            },
            JobEvent::Compacted {
                how: Compaction::Cut,
                before: 9,
                after: 3,
                warning: Some(text()),
            },
            JobEvent::TurnEnded {
                turn: 1,
                stop: Some("end_turn".to_owned()),
                error: Some(text()),
                strayed: Some(text()),
            },
        ]
    }

    fn of_tools() -> Vec<JobEvent> {
        vec![
            JobEvent::ToolAnnounced {
                item: item(),
                name: text(),
            },
            JobEvent::ToolStarted {
                item: item(),
                name: text(),
                input: json!({ "kind": "file", "attempt": 1 }),
            },
            JobEvent::ToolUpdated {
                item: item(),
                text: text(),
            },
            JobEvent::ToolEnded {
                item: item(),
                name: text(),
                output: text(),
                is_error: true,
                metadata: json!({ "full_output": "/f" }),
            },
            JobEvent::ToolSkipped {
                item: item(),
                name: text(),
                reason: text(),
            },
            JobEvent::FileChanged {
                item: item(),
                path: text(),
                difference: text(),
            },
            JobEvent::TodoUpdated {
                item: item(),
                todos: vec![Todo {
                    text: text(),
                    state: TodoState::Doing,
                }],
            },
            JobEvent::Progressed,
            JobEvent::ResultTaken {
                item: item(),
                result: json!([1, null]),
            },
            JobEvent::ResultRefused {
                item: item(),
                reason: text(),
            },
            JobEvent::Judged {
                passed: false,
                asks: true,
                text: text(),
            },
        ]
    }

    fn every_kind() -> impl Iterator<Item = JobEvent> {
        of_messages().into_iter().chain(of_tools())
    }

    /// Anything that JSON can say.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| map.into_iter().collect::<Value>()),
            ]
        })
    }

    /// Lists where something stands in a value, as pointers.
    fn places(value: &Value) -> Vec<String> {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, at)| (name.clone(), at)).collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, at)| (index.to_string(), at))
                .collect(),
            _ => Vec::new(),
        };
        let all = inner.into_iter().flat_map(|(name, at)| {
            let below = places(at)
                .into_iter()
                .map(|place| format!("/{name}{place}"));
            below.chain([format!("/{name}")]).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// Puts others in the place of whatever stands in a sample, wherever that is still an event.
    fn varied(sample: JobEvent, others: &[Value]) -> JobEvent {
        let mut event = sample;
        for place in places(&json!(event)) {
            for other in others {
                let mut changed = json!(event);
                if let Some(found) = changed.pointer_mut(&place) {
                    *found = other.clone();
                    event = serde_json::from_value(changed).unwrap_or(event);
                }
            }
        }
        event
    }

    proptest! {
        #[test]
        fn any_step_crosses_the_boundary_unchanged(
            sample in prop::sample::select(every_kind().collect::<Vec<_>>()),
            (words, number, flag) in (any::<String>(), any::<u32>(), any::<bool>()),
            value in any_value(),
        ) {
            let others = [json!(flag), json!(number), json!(words), value];
            let event = varied(sample.clone(), &others);
            prop_assert!(event != sample || sample == JobEvent::Progressed || words == text());
            let passage = Passage {
                attempt: serde_json::from_value(json!("00000000-0000-7000-8000-000000000001"))
                    .unwrap(),
                task: TaskId::parse("T-1").unwrap(),
                at: DateTime::UNIX_EPOCH,
                event,
            };
            let line = serde_json::to_string(&passage).unwrap();
            prop_assert!(!line.contains('\n'), "{}", line);
            prop_assert_eq!(serde_json::from_str::<Passage>(&line).unwrap(), passage.clone());
            prop_assert_eq!(Passage::parse(&line).unwrap(), passage);
        }
    }

    #[test]
    fn fifteen_to_twenty_kinds_tell_a_job() {
        let mut kinds: Vec<String> = every_kind()
            .map(|event| json!(event)["kind"].to_string())
            .collect();
        kinds.sort();
        kinds.dedup();
        assert!((15..=20).contains(&kinds.len()), "{kinds:?}");
    }
}
