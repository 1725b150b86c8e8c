//! The plan of forty tasks that meet every failure that the engine or the gate can raise.

use std::path::Path;

use serde_json::{Value, json};

use super::world::TOOK;

/// Never progresses, lacks a package, is no work that the model knows: these three end failed.
const NOTHING: &str = "T-19";
/// The one whose reply waits until the other has landed on the same lines.
pub(crate) const HELD: (&str, &str) = ("T-03", "T-04");
/// The one whose first call finds the quota used up.
pub(crate) const QUOTA: &str = "T-15";
/// The one whose first reply breaks off.
pub(crate) const CUT: &str = "T-16";
/// The command of the gate that runs into its time limit on `T-13`.
pub(crate) const LIMIT: &str = "T-13";
/// The tool that `T-11` needs and that is not there at first.
pub(crate) const TOOL: &str = "measure-words";

/// What each task of the tail of the plan needs.
const NEEDS: [(u32, &[&str]); 18] = [
    (23, &["T-01", "T-04"]),
    (24, &["T-05"]),
    (25, &["T-23"]),
    (26, &["T-24", "T-25"]),
    (27, &["T-06"]),
    (28, &["T-06"]),
    (29, &["T-06", "T-08"]),
    (30, &["T-02"]),
    (31, &["T-30"]),
    (32, &["T-12"]),
    (33, &["T-15"]),
    (34, &["T-16"]),
    (35, &["T-17", "T-18"]),
    (36, &[]),
    (37, &[]),
    (38, &["T-36"]),
    (39, &["T-36", "T-37"]),
    (40, &["T-39"]),
];

/// The files of the repository before the build.
pub(crate) const FILES: [(&str, &str); 6] = [
    ("package-lock.json", "root\n"),
    ("lib.txt", "a\nb\n"),
    ("shared.txt", "one\nmiddle\ntwo\n"),
    ("tests/old.sh", "true\n"),
    (
        "tests/points.sh",
        "n=0\nfor word in a b; do\n  if grep -q \"^$word$\" lib.txt; then n=$((n+1)); echo \"ok $n - $word\"; fi\ndone\necho \"1..$n\"\n",
    ),
    ("README.md", "# Forty tasks\n"),
];

/// Names a task.
pub(crate) fn name(number: u32) -> String {
    format!("T-{number:02}")
}

/// Returns the plan; the commands of its gate tell `world` that they run and wait for its word.
pub(crate) fn tasks(world: &Path) -> Value {
    let mut tasks: Vec<Value> = (1..=40).map(|number| task(world, &name(number))).collect();
    for (number, needs) in NEEDS {
        tasks[number as usize - 1]["depends_on"] = json!(needs);
    }
    for name in [HELD.0, HELD.1] {
        let place = tasks.iter().position(|task| task["id"] == name).unwrap();
        tasks[place]["priority"] = json!(1);
    }
    json!(tasks)
}

fn task(world: &Path, id: &str) -> Value {
    let (file, action) = file(id);
    let waits = format!(
        "echo {id} > {0}/asked; read line < {0}/gate-{id}; echo {TOOK}{id} > {0}/asked",
        world.display()
    );
    let (command, expected) = match id {
        "T-09" => ("sh tests/points.sh".to_owned(), "tests >= 1"),
        "T-11" => (format!("{waits}; {TOOL} good {file}"), "exit 0"),
        "T-21" | "T-22" => (format!("{waits}; grep -q {id} {file}"), "exit 0"),
        _ => (
            format!("{waits}; cat {file}; grep -q good {file}"),
            "exit 0",
        ),
    };
    json!({
        "id": id, "phase": "api", "action": action, "file": file,
        "validation": { "command": command, "expected": expected },
    })
}

fn file(id: &str) -> (String, &'static str) {
    match id {
        "T-03" => ("a/package.json".to_owned(), "CREATE"),
        "T-04" => ("b/package.json".to_owned(), "CREATE"),
        "T-08" => (format!("{id}.rs"), "CREATE"),
        "T-09" => ("lib.txt".to_owned(), "UPDATE"),
        "T-10" => ("tests/old.sh".to_owned(), "UPDATE"),
        "T-21" | "T-22" => ("shared.txt".to_owned(), "UPDATE"),
        _ => (format!("{id}.txt"), "CREATE"),
    }
}

/// Returns the rules of the model.
pub(crate) fn script() -> String {
    let mut rules = Vec::new();
    for number in 1..=40 {
        let id = name(number);
        let (file, _) = file(&id);
        rules.extend(first_try(&id, &file));
        match id.as_str() {
            "T-20" => {}
            NOTHING => rules.push(says(&id, None, None, &finish())),
            _ => rules.extend(works(&id, None, &work(&id, &file))),
        }
    }
    // A list of JSON values is YAML too.
    json!(rules).to_string()
}

/// What a task's model does when it does it right.
fn work(id: &str, file: &str) -> Value {
    match id {
        "T-03" | "T-04" => bash(&format!(
            "mkdir -p $(dirname {file}); echo '{{\"good\": 1}}' > {file}; echo {id} >> package-lock.json"
        )),
        "T-08" => write(file, "fn good() {}\n"),
        "T-09" => bash("printf 'a\\nb\\nnew\\n' > lib.txt"),
        "T-10" => bash("echo 'true # good' > tests/old.sh"),
        "T-21" => bash("sed -i 's/^one.*/one T-21/' shared.txt"),
        "T-22" => bash("sed -i 's/^two.*/two T-22/' shared.txt"),
        // What the first try left beside its file is still there.
        "T-07" => bash(&format!("echo good > {file}; rm -f stray.txt")),
        "T-02" => write(file, "ModuleNotFoundError: No module named 'clocks'\n"),
        _ => write(file, "good\n"),
    }
}

/// What goes wrong at the first try.
fn first_try(id: &str, file: &str) -> Vec<Value> {
    let works = |call: Value| works(id, Some(1), &call);
    let fails = |kind: &str| {
        vec![json!({
            "agent": "build", "task": id, "attempt": 1,
            "reply": { "error": { "kind": kind, "message": "not now" } },
        })]
    };
    match id {
        "T-01" => works(write(file, "SyntaxError: unexpected end\n")),
        "T-05" => works(write(file, "bad\n")),
        "T-06" => vec![says(id, Some(1), None, &finish())],
        "T-07" => works(bash(&format!("echo good > {file}; echo more > stray.txt"))),
        "T-08" => works(write(file, "fn good() { todo!() }\n")),
        "T-09" => works(bash("printf 'a\\nnew\\n' > lib.txt")),
        "T-12" => works(write(file, "Could not resolve host: crates\n")),
        "T-13" => works(write(file, "good, but slow\n")),
        "T-14" => works(write(file, "write: No space left on device\n")),
        "T-17" => vec![says(
            id,
            Some(1),
            None,
            &json!([{ "name": "ls", "input": {} }]),
        )],
        "T-18" => fails("refused"),
        _ => Vec::new(),
    }
}

fn works(id: &str, attempt: Option<u32>, call: &Value) -> Vec<Value> {
    vec![
        says(id, attempt, Some(1), &json!([call])),
        says(id, attempt, None, &finish()),
    ]
}

fn says(id: &str, attempt: Option<u32>, turn: Option<u32>, tools: &Value) -> Value {
    let mut rule = json!({ "agent": "build", "task": id, "reply": { "tools": tools } });
    for (name, value) in [("attempt", attempt), ("turn", turn)] {
        if let Some(value) = value {
            rule[name] = json!(value);
        }
    }
    rule
}

fn finish() -> Value {
    json!([{ "name": "finish", "input": { "summary": "Done." } }])
}

fn write(path: &str, content: &str) -> Value {
    json!({ "name": "write", "input": { "path": path, "content": content } })
}

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "input": { "command": command } })
}
