//! Scripts of agents that work in several steps and meet each other on the way.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// One step of a scripted agent.
pub(crate) enum Step<'a> {
    /// Runs a shell line.
    Shell(String),
    /// Asks for more files.
    Ask(&'a [&'a str]),
}

/// Makes the rules of a task whose agent takes these steps, one a turn, and says that it is done.
pub(crate) fn steps(task: &str, steps: &[Step<'_>]) -> String {
    let mut rules = String::new();
    let mut rule = |turn: usize, tool: &str, input: &Value| {
        write!(
            rules,
            "- agent: build\n  task: {task}\n  turn: {turn}\n  reply:\n    tools:\n      - name: {tool}\n        input: {input}\n"
        )
        .unwrap();
    };
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Shell(line) => rule(number + 1, "bash", &json!({ "command": line })),
            Step::Ask(files) => {
                let input = json!({ "files": files, "reason": "it belongs together" });
                rule(number + 1, "request_file", &input);
            }
        }
    }
    let done = json!({ "summary": "Done." });
    rule(steps.len() + 1, "finish", &done);
    rules
}

/// Adds a line to a file.
pub(crate) fn append(line: &str, file: &str) -> Step<'static> {
    Step::Shell(format!("echo {line} >> {file}"))
}

/// Adds a line to a file, says so, and waits until somebody else says something.
pub(crate) fn append_and_meet(line: &str, file: &str, says: &Path, awaits: &Path) -> Step<'static> {
    Step::Shell(format!(
        "echo {line} >> {file}; touch {}; {}",
        says.display(),
        until(awaits)
    ))
}

/// Waits until somebody says something.
pub(crate) fn meet(awaits: &Path) -> Step<'static> {
    Step::Shell(until(awaits))
}

fn until(there: &Path) -> String {
    format!("until [ -e {} ]; do sleep 0.02; done", there.display())
}

/// Makes the rules of a task whose agent writes one file and says it is done; with `told`, only if its prompt says so.
///
/// It writes by a shell, which is not held to the files of the task.
pub(crate) fn writes(task: &str, path: &str, content: &str, told: Option<&str>) -> String {
    let told = told.map_or_else(String::new, |text| format!("  contains: {}\n", json!(text)));
    let command = json!({ "command": format!("mkdir -p $(dirname {path}); printf %s {} > {path}", quoted(content)) });
    format!(
        "- agent: build\n  task: {task}\n  turn: 1\n{told}  reply:\n    tools:\n      - name: bash\n        input: {command}\n\
         - agent: build\n  task: {task}\n  turn: 2\n  reply:\n    tools:\n      - name: finish\n        input: {{ summary: \"Done.\" }}\n"
    )
}

/// As [`writes`], and it takes so many milliseconds to do so.
pub(crate) fn writes_slowly(task: &str, path: &str, content: &str, milliseconds: u64) -> String {
    let rules = writes(task, path, content, None);
    holds_back(&rules, 1, &format!("delay_ms: {milliseconds}"))
}

/// As [`writes`], once somebody says something.
pub(crate) fn writes_after(task: &str, path: &str, content: &str, awaits: &Path) -> String {
    let rules = writes(task, path, content, None);
    holds_back(&rules, 1, &format!("until: {}", awaits.display()))
}

/// Lets the model of these rules begin to answer at one turn only then.
pub(crate) fn holds_back(rules: &str, turn: u32, then: &str) -> String {
    let reply = format!("turn: {turn}\n  reply:");
    rules.replacen(&reply, &format!("{reply}\n    {then}"), 1)
}

/// Makes the rule of a task whose agent only says that it is done.
pub(crate) fn finishes(task: &str, summary: &str) -> String {
    let input = json!({ "summary": summary });
    format!(
        "- agent: build\n  task: {task}\n  reply:\n    tools:\n      - name: finish\n        input: {input}\n"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
