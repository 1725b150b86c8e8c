//! Runs a shell line in the slot.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_config::settings::Permission;
use ropewalk_runtime::secrets::SecretFilter;
use ropewalk_schemas::advice::Words;
use ropewalk_workspace::{CommandError, CommandOutput, CommandSpec, CommandStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workbench::Workbench;
use super::{arguments, plain_schema_of};
use crate::tool::{Effect, Keep, Tool, ToolContext, ToolFailure, ToolOutput};

/// How long a command may take when the call says nothing else.
const DEFAULT_SECONDS: u64 = 120;
/// How long a command may take at most.
const MOST_SECONDS: u64 = 600;

/// So often what a command has written is told to those who watch.
const PULSE: Duration = Duration::from_millis(300);
/// The most that is told at a time.
const MOST_HEARD: usize = 16 * 1024;

/// Runs a shell line.
pub(super) struct Bash {
    workbench: Workbench,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[schemars(length(min = 1))]
    command: String,
    /// 120 when not given
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_SECONDS))]
    timeout_seconds: Option<u64>,
}

impl Bash {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }

    /// Runs a command, and says now and then what it has written since.
    async fn run(
        &self,
        spec: &CommandSpec,
        context: &ToolContext,
    ) -> Result<CommandOutput, CommandError> {
        let written = Mutex::new(Vec::new());
        let hear = |bytes: &[u8]| {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.extend_from_slice(bytes);
            // Of what comes faster than it is told the latest is told, in whole lines: a part of a secret is none.
            if written.len() > MOST_HEARD {
                let from = written.len() - MOST_HEARD;
                let late = written.split_off(from);
                let begin = late.iter().position(|byte| *byte == b'\n');
                *written = begin.map_or(Vec::new(), |begin| late[begin..].to_vec());
            }
        };
        let take = || std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
        let runner = &self.workbench.options().runner;
        let mut running = pin!(runner.run_heard(spec, &context.cancel, Some(&hear)));
        let mut spoken = SecretFilter::default();
        let mut pulse = tokio::time::interval(PULSE);
        loop {
            tokio::select! {
                output = &mut running => return output,
                _ = pulse.tick() => {
                    let written = take();
                    let text = spoken.hear(&String::from_utf8_lossy(&written));
                    context.progress.say(text);
                }
            }
        }
    }
}

#[async_trait]
impl Tool for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn description(&self) -> &'static str {
        "Runs a shell line in the root of the repository, for example to compile or test. Each program that it runs \
         stands in it by name; a line in which a variable names one is not run unless a person allows it. Nothing of it lives on \
         after it has ended. Change files with `write` and `edit`, not with this. Scratch files go to `$TMPDIR`. \
         `git status`, `diff`, `log`, `show` and `blame` work; what git is told to change there is thrown away."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn permission(&self) -> Option<Permission> {
        Some(Permission::Bash)
    }

    fn subjects(&self, arguments: &Value) -> Vec<String> {
        let command = arguments["command"].as_str();
        command.into_iter().map(str::to_owned).collect()
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    fn keep(&self) -> Keep {
        Keep::Ends
    }

    async fn execute(
        &self,
        value: Value,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let seconds = wanted.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
        let mut spec = CommandSpec::shell(&wanted.command, self.workbench.files().root())
            .with_timeout(Duration::from_secs(seconds.min(MOST_SECONDS)))
            .with_writable(self.workbench.files().root());
        if let Some(scratch) = &self.workbench.options().scratch {
            spec = spec.with_scratch(scratch);
        }
        for (name, value) in &self.workbench.options().variables {
            // What is built lies beside the checkout, and so outlives a change of it.
            if name == "CARGO_TARGET_DIR" {
                spec = spec.with_writable(value);
            }
            spec = spec.with_variable(name, value);
        }
        let output = self
            .run(&spec, context)
            .await
            .map_err(|error| ToolFailure::refused(Words::of(&error).to_string()))?;
        Ok(ToolOutput {
            text: told(&output, seconds),
            images: Vec::new(),
            is_error: !output.succeeded(),
            effect: Effect::Answered,
            changes: Vec::new(),
            metadata: json!({
                "exit_code": match output.status {
                    CommandStatus::Exited(code) => Some(code),
                    _ => None,
                },
                "duration_ms": u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
            }),
        })
    }
}

/// Tells what a command wrote and how it ended; the end comes last, where it is never cut.
fn told(output: &CommandOutput, seconds: u64) -> String {
    let mut parts: Vec<String> = [&output.stdout, &output.stderr]
        .into_iter()
        .map(|stream| stream.trim_end().to_owned())
        .filter(|stream| !stream.is_empty())
        .collect();
    match output.status {
        CommandStatus::Exited(0) if !parts.is_empty() => {}
        CommandStatus::Exited(code) => parts.push(format!("[exit code {code}]")),
        CommandStatus::Signalled(number) => parts.push(format!("[ended by signal {number}]")),
        CommandStatus::TimedOut => parts.push(format!(
            "[stopped after {seconds} seconds; nothing of it runs any more]"
        )),
        CommandStatus::Cancelled => parts.push("[stopped]".to_owned()),
        CommandStatus::Flooded => parts.push("[stopped: it wrote without end]".to_owned()),
        CommandStatus::Missing => parts.push("[there is no shell]".to_owned()),
    }
    parts.extend(output.denial.iter().map(|denial| format!("[{denial}]")));
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::tool::Progress;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn the_model_sees_what_a_command_wrote_and_how_it_ended() {
        let bench = Bench::new(&[("a", "hello\n")], &[]);
        let bash = Bash::new(bench.workbench.clone());
        let cases = [
            ("cat a", "hello", false),
            ("true", "[exit code 0]", false),
            (
                "echo out; echo err >&2; exit 3",
                "out\nerr\n[exit code 3]",
                true,
            ),
            ("echo $ADDED $SECRET", "yes", false),
        ];
        for (command, text, is_error) in cases {
            let output = bench.run(&bash, json!({ "command": command })).await;
            assert_eq!(
                (output.text.as_str(), output.is_error),
                (text, is_error),
                "{command}"
            );
        }
    }

    #[tokio::test]
    async fn what_a_command_writes_is_told_while_it_runs() {
        let bench = Bench::new(&[], &[]);
        let (progress, mut heard) = Progress::heard();
        let context = ToolContext {
            progress,
            ..ToolContext::of_test()
        };
        let command = "for n in 1 2 3; do echo line $n; sleep 0.5; done; echo -n end";
        let output = Bash::new(bench.workbench.clone())
            .execute(json!({ "command": command }), &context)
            .await
            .unwrap();
        drop(context);
        assert_eq!(output.text, "line 1\nline 2\nline 3\nend");
        let mut pieces = Vec::new();
        while let Some(piece) = heard.recv().await {
            pieces.push(piece);
        }
        assert!(pieces.len() >= 2, "{pieces:?}");
        assert!("line 1\nline 2\nline 3\nend".starts_with(&pieces.concat()));
    }

    #[tokio::test]
    async fn of_a_flood_the_latest_whole_lines_are_told() {
        let bench = Bench::new(&[], &[]);
        let (progress, mut heard) = Progress::heard();
        let context = ToolContext {
            progress,
            ..ToolContext::of_test()
        };
        let command = "seq -f 'line %.0f' 1 200000; sleep 0.7";
        Bash::new(bench.workbench.clone())
            .execute(json!({ "command": command }), &context)
            .await
            .unwrap();
        drop(context);
        let mut pieces = Vec::new();
        while let Some(piece) = heard.recv().await {
            assert!(piece.len() <= MOST_HEARD);
            pieces.push(piece);
        }
        let told = pieces.concat();
        assert!(told.ends_with("line 200000\n"), "{}", told.len());
        let is_whole = |line: &str| line.starts_with("line ") || "line ".starts_with(line);
        assert!(told.lines().all(is_whole));
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_stopped_with_its_children() {
        let bench = Bench::new(&[], &[]);
        let bash = Bash::new(bench.workbench.clone());
        let begun = Instant::now();
        let command = "sleep 99 & echo $! > child; sleep 99";
        let arguments = json!({ "command": command, "timeout_seconds": 1 });
        let output = bench.run(&bash, arguments).await;
        assert!(
            output.is_error && output.text.contains("1 seconds"),
            "{}",
            output.text
        );
        assert!(begun.elapsed() <= Duration::from_secs(30));
        let child = bench.content("child").unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        // Nobody may have reaped it yet, but it does not run.
        assert!(state.is_err() || state.is_ok_and(|stat| stat.contains(") Z ")));
    }

    #[tokio::test]
    async fn cancelling_stops_a_command() {
        let bench = Bench::new(&[], &[]);
        let context = ToolContext::of_test();
        context.cancel.cancel();
        let output = Bash::new(bench.workbench.clone())
            .execute(json!({ "command": "sleep 99" }), &context)
            .await
            .unwrap();
        assert!(output.is_error);
    }
}
