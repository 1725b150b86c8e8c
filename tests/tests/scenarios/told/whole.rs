//! Requests whose prompts hold every line that their templates can have: what no step of the idea leads to has to be true as
//! well. What is filled in is marked.

use anyhow::Context;
use ropewalk_config::stack::StackProfiles;
use ropewalk_config::{Prompt, PromptError, Prompts};
use ropewalk_schemas::idea::Phase;
use serde_json::{Value, json};

use super::marks::marked;
use super::{Request, Role, told};

/// The tools that rules can keep from a model.
const HIDDEN: [&str; 8] = [
    "bash",
    "code_outline",
    "edit",
    "glob",
    "grep",
    "ls",
    "read",
    "write",
];

/// What a request says, and what its reader has.
struct Texts {
    system: String,
    message: String,
    /// Whether rules leave its reader all tools.
    is_free: bool,
    /// The hosts that are listed: where there are some, pages of theirs can be read.
    hosts: &'static [&'static str],
}

/// A repository, and what may be done with it.
#[derive(Debug, Clone, Copy)]
struct Ground {
    has_code: bool,
    /// Whether rules leave its files to who is told of it.
    is_free: bool,
    /// Who may install packages.
    packages: &'static [&'static str],
    /// What makes a checkout ready.
    setup: Option<&'static str>,
    hosts: &'static [&'static str],
}

const HOSTS: &[&str] = &["docs.example.org"];

const GROUNDS: [Ground; 4] = [
    Ground {
        has_code: true,
        is_free: true,
        packages: &["npm"],
        setup: None,
        hosts: &[],
    },
    Ground {
        has_code: false,
        is_free: true,
        packages: &[],
        setup: None,
        hosts: HOSTS,
    },
    Ground {
        has_code: true,
        is_free: true,
        packages: &["npm"],
        setup: Some("make deps"),
        hosts: HOSTS,
    },
    Ground {
        has_code: true,
        is_free: false,
        packages: &[],
        setup: Some("make deps"),
        hosts: &[],
    },
];

/// Returns requests of a role that are as one of the idea was, but hold what its templates say of everything.
pub(super) fn whole(role: Role) -> anyhow::Result<Vec<Request>> {
    let prompts = Prompts::shipped()?;
    let texts = match role {
        Role::Ideation => ideation(&prompts)?,
        Role::Specification => specification(&prompts)?,
        Role::Build => build(&prompts)?,
        Role::Review => review(&prompts)?,
    };
    let real = told()?.of(role);
    let real = &real.first().context("a request")?.body;
    let requests = texts.into_iter().map(|texts| {
        let block = |text: &str| json!([{ "type": "text", "text": text }]);
        let mut body = real.clone();
        body["system"] = block(&texts.system);
        body["messages"] = json!([{ "role": "user", "content": block(&texts.message) }]);
        let is_shown = |tool: &Value| {
            let name = tool["name"].as_str().unwrap_or_default();
            texts.is_free || !HIDDEN.contains(&name)
        };
        let tools = body["tools"].as_array_mut().context("tools")?;
        tools.retain(is_shown);
        if !texts.hosts.is_empty() {
            tools.push(json!({ "name": "web_fetch", "description": "Reads a page of the web." }));
        }
        Request::of(body, 0).context("a request of a role")
    });
    requests.collect()
}

/// Renders a prompt with values that are marked.
fn render(prompts: &Prompts, prompt: Prompt, values: &Value) -> Result<String, PromptError> {
    prompts.render(prompt, &marked(values))
}

fn wishes() -> Value {
    json!([{ "text": "Short lines.", "files": [] }, { "text": "No macros.", "files": ["*.rs"] }])
}

fn repository(ground: Ground) -> Value {
    let tools = if ground.is_free {
        json!(["code_outline", "read", "grep", "glob", "ls", "history"])
    } else {
        json!(["history"])
    };
    let (stacks, choices) = if ground.has_code {
        (json!(["Go"]), json!([]))
    } else {
        (json!([]), json!(["Go (go)"]))
    };
    json!({
        "commit": "0123456789ab", "branch": "main", "digest": "1 file, 9 B.", "recent": "0123456 start",
        "tools": tools,
        "project": {
            "stacks": stacks, "tools": ["go 1.25"], "choices": choices, "gate": ["make lint"], "more_gate": null, "setup": ground.setup,
            "packages": ground.packages, "hosts": ground.hosts,
        },
    })
}

fn ideas() -> Value {
    json!([{ "slug": "streaks", "title": "Streaks", "state": "landed", "brief": "It was first." }])
}

fn ideation(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let standings = standings();
    let [running, ..] = &standings;
    let mut texts = Vec::new();
    for (ground, kind, ending) in [
        (GROUNDS[0], Some("tool"), false),
        (GROUNDS[1], Some("venture"), false),
        (GROUNDS[2], Some("tool"), true),
        (GROUNDS[3], Some("tool"), false),
        (GROUNDS[0], Some("product"), false),
        (GROUNDS[0], None, false),
    ] {
        for phase in Phase::ALL {
            let turn = turn(*phase, kind, ending, (running, false));
            texts.push(chat(prompts, (ground, kind), &turn)?);
        }
    }
    for standing in &standings {
        for phone in [false, true] {
            let turn = turn(Phase::Complete, Some("tool"), false, (standing, phone));
            texts.push(chat(prompts, (GROUNDS[0], Some("tool")), &turn)?);
        }
    }
    Ok(texts)
}

fn chat(
    prompts: &Prompts,
    (ground, kind): (Ground, Option<&str>),
    turn: &Value,
) -> anyhow::Result<Texts> {
    let system = json!({
        "kind": kind, "submit_tool": "reply", "repository": repository(ground), "ideas": ideas(),
        "conventions": "Use tabs.", "wishes": wishes(),
    });
    let turn = render(prompts, Prompt::IdeationTurn, turn)?;
    Ok(Texts {
        system: render(prompts, Prompt::Ideation, &system)?,
        message: format!("Go on.\n\n<session>\n{turn}\n</session>"),
        is_free: ground.is_free,
        hosts: ground.hosts,
    })
}

fn turn(
    phase: Phase,
    kind: Option<&str>,
    ending: bool,
    (progress, phone): (&Value, bool),
) -> Value {
    json!({
        "phase": phase, "slug": "streaks", "kind": kind, "ending": ending, "confidence": 0.4,
        "artifacts": [{ "kind": "problem", "summary": "habits fade", "confidence": 0.7 }],
        "decisions": [{ "kind": "scope", "summary": "one habit" }],
        "risks": [{ "summary": "leap years" }],
        "answers": [{ "question": "For whom?", "answer": "For me." }],
        "unanswered": ["Since when?"],
        "idea": { "readme": "# Habits", "target_users": "students" },
        "progress": progress, "phone": phone,
    })
}

/// Tells how far an idea can have come: that a build runs, then all else.
fn standings() -> [Value; 7] {
    let spec = |state: &str| json!({ "id": "s", "state": state, "told": "revision 1 is there" });
    let build = |state: &str, rests: bool, landed: bool| json!({ "id": "b", "state": state, "rests": rests, "landed": landed, "told": "that of revision 1" });
    let rows = [
        (spec("approved"), build("running", false, false)),
        (spec("approved"), build("succeeded", false, false)),
        (spec("approved"), build("succeeded", false, true)),
        (spec("rejected"), build("stopped", true, false)),
        (spec("generated"), Value::Null),
        (spec("draft"), Value::Null),
        (Value::Null, Value::Null),
    ];
    rows.map(|(specification, build)| {
        json!({
            "specification": specification, "build": build,
            "questions": [
                { "id": "q", "text": "Tabs?", "choices": ["tabs: Tabs", "spaces: Spaces"], "takes_words": true },
                { "id": "r", "text": "Build it?", "choices": ["start: Yes"], "takes_words": false },
            ],
        })
    })
}

fn specification(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let stacks = StackProfiles::shipped()?;
    let idea = json!({
        "idea": "Streaks", "slug": "streaks", "attached": true, "documents": [{ "path": "README.md", "text": "# Streaks" }],
        "missing_inputs": ["team.md"], "gotchas": [{ "text": "mind the gap" }], "patterns": [{ "text": "one table" }],
        "feedback": ["smaller"], "complexity": "simple", "most_tasks": 8,
        "migrations": ["The next migration in `db/migrations` has the number 008."],
        "answers": [{ "question": "For whom?", "answer": "For me." }],
        "previous": { "number": 1, "text": "{}" },
        "standing": {
            "revision": 1, "place": "Nothing of it has landed yet.", "state": "The build is running",
            "tasks": ["`T-001` working: count the days"], "said": ["`T-001` was told: use tabs"],
        },
    });
    let message = render(prompts, Prompt::SpecificationIdea, &idea)?;
    let texts = GROUNDS.map(|ground| {
        let system = json!({
            "conventions": "Use tabs.", "wishes": wishes(), "repository": repository(ground), "ideas": ideas(),
            "stack": stacks.get("rust"), "submit_tool": "specification",
        });
        anyhow::Ok(Texts {
            system: render(prompts, Prompt::Specification, &system)?,
            message: message.clone(),
            is_free: ground.is_free,
            hosts: ground.hosts,
        })
    });
    texts.into_iter().collect()
}

fn task() -> Value {
    json!({
        "task": {
            "id": "T-002", "title": "count the days", "action": "CREATE", "file": "src/a.rs", "more_files": ["src/b.rs"],
            "leave_alone": ["the signature of the first"], "code_template": "fn count() {}", "notes": "Mind the last day.",
            "validation": { "command": "cargo test", "expected": "exit 0" },
        },
        "requirements": [{ "id": "FR-1", "text": "counts", "whole": "It counts days.", "acceptance": "two are two" }],
        "idea": "Streaks", "idea_context": "Streaks.", "spec_path": "ideas/streaks/build/spec.md", "gate": ["make lint"],
        "interfaces": [
            { "signature": "fn count()", "made_by": "your task", "used_by": "T-003" },
            { "signature": "fn days()", "made_by": null, "used_by": "your task" },
            { "signature": "fn last()", "made_by": null, "used_by": "" },
        ],
        "plan": {
            "title": "Streaks", "objective": "Keep them.", "data": ["a day is a date"], "out_of_scope": ["sharing"],
            "avoid_files": [{ "path": "a.lock", "purpose": "generated" }],
        },
        "others": [{ "id": "T-003", "title": "tell them", "standing": "not done yet", "files": ["src/c.rs"] }],
        "more_others": "and 3 more",
        "before": [{ "id": "T-001", "title": "keep the days", "summary": "They lie in a file.", "changed": ["src/d.rs (+1 -0)"] }],
        "sizes": [
            { "path": "src/a.rs", "lines": 200, "bytes": 4000, "outline": "1-2  fn a()" },
            { "path": "src/b.rs", "lines": null, "bytes": 0, "outline": null },
        ],
        "read_first": [
            { "path": "src/d.rs", "lines": 1, "bytes": 20, "outline": "1-1  fn d()" },
            { "path": "src/e.rs", "lines": null, "bytes": 0, "outline": null },
        ],
        "helpers": [{ "path": "tests/common/mod.rs", "lines": 9, "signatures": "fn world()" }],
        "conventions": "Of `src/AGENTS.md`: no panics.", "wishes": wishes(), "gotchas": [{ "text": "mind the gap" }],
        "failures": [{ "class": "VALIDATION_FAILED", "output": "1 is not 2" }],
        "answers": [
            { "question": "Tabs?", "answer": "spaces", "by": "ada" }, { "question": "Wide?", "answer": "no", "by": "default" },
        ],
        "guidance": ["try less"], "tools": ["cargo 1.94"], "budget": ["50 replies in this conversation"],
        "resumed": false, "made_ready": "`npm ci` was run.",
        "earlier": { "summary": "half of it is done", "difference": "+ line" },
    })
}

/// Tells what stands in place of older messages, of which nobody may have made a summary.
fn memory(prompts: &Prompts, summary: Option<&str>) -> Result<String, PromptError> {
    let memory = json!({
        "summary": summary, "read": ["src/a.rs"], "changed": ["src/b.rs"], "said": ["A person says: go on"],
        "verdict": "exit code 1", "todos": ["[x] look", "[ ] count"],
    });
    render(prompts, Prompt::CompactionMemory, &memory)
}

fn build(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let work = GROUNDS.map(|ground| {
        let tools = if ground.is_free {
            json!(["bash", "read"])
        } else {
            json!(["ask", "request_file"])
        };
        let system = json!({
            "conventions": "Use tabs.", "wishes": wishes(), "setup": ground.setup, "package_managers": ground.packages,
            "hosts": ground.hosts, "submit_tool": "finish", "tools": tools,
        });
        let mut task = task();
        task["resumed"] = json!(!ground.has_code);
        if ground.setup.is_none() && ground.packages.is_empty() {
            task["made_ready"] = Value::Null;
        }
        let told = render(prompts, Prompt::BuildTask, &task)?;
        let summary = ground.has_code.then_some("Half of it is done.");
        anyhow::Ok(Texts {
            system: render(prompts, Prompt::Build, &system)?,
            message: format!("{told}\n\n{}", memory(prompts, summary)?),
            is_free: ground.is_free,
            hosts: ground.hosts,
        })
    });
    work.into_iter().collect()
}

fn review(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let rows = [
        (true, 2, true),
        (false, 0, true),
        (true, 2, false),
        (true, 0, true),
    ];
    let texts = rows.map(|(since, left_out, looks)| {
        let system = json!({ "submit_tool": "review", "looks": looks });
        let system = render(prompts, Prompt::Improvement, &system)?;
        let build = json!({
            "build": "1 of streaks", "outcome": "succeeded", "plan": "the plan", "diff": "+ line", "since": since,
            "left_out": left_out, "looks": looks,
            "tasks": [{
                "id": "T-001", "state": "complete", "kept": since, "summary": "Made it.",
                "failures": [{ "class": "VALIDATION_FAILED", "output": "1 is not 2" }],
                "asked": [{ "question": "Tabs?", "answer": "spaces", "by": "ada", "at": "2026-03-01T08:00:00Z" }],
            }],
            "known": [{ "kind": "gotcha", "text": "mind the gap" }],
            "told": [{ "tasks": ["T-001"], "words": "use tabs", "said": ["ada, 2026-03-01T08:00:00Z"] }],
            "next": { "build": "2", "revision": 2, "tasks": ["T-002"] },
            "former": [{ "class": "deviation", "place": "T-001", "planned": "a loop", "actual": "a table" }],
        });
        anyhow::Ok(Texts {
            system,
            message: render(prompts, Prompt::ImprovementBuild, &build)?,
            is_free: looks,
            hosts: &[],
        })
    });
    texts.into_iter().collect()
}
