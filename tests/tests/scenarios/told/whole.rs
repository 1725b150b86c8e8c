//! Requests whose prompts hold every section that their templates can have: what no step of the idea leads to has to be true as
//! well.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use ropewalk_config::stack::StackProfiles;
use ropewalk_config::{Prompt, Prompts};
use ropewalk_schemas::idea::Phase;
use serde_json::{Value, json};

use super::prompts::{ORIGINS, headings};
use super::{Request, Role, told};

/// The tools that rules can keep from a model that only looks, or that runs nothing.
const HIDDEN: [&str; 6] = ["bash", "code_outline", "glob", "grep", "ls", "read"];
/// Templates of what a model without tools is told, which sums up a conversation.
const OF_NO_ROLE: [&str; 2] = ["compaction.md", "compaction-turn.md"];

/// A system prompt and a message, and whether rules leave its reader all tools.
type Texts = (String, String, bool);

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
    let requests = texts.into_iter().map(|(system, message, is_free)| {
        let block = |text: String| json!([{ "type": "text", "text": text }]);
        let mut body = real.clone();
        body["system"] = block(system);
        body["messages"] = json!([{ "role": "user", "content": block(message) }]);
        let is_shown = |tool: &Value| {
            let name = tool["name"].as_str().unwrap_or_default();
            is_free || !HIDDEN.contains(&name)
        };
        let tools = body["tools"].as_array_mut().context("tools")?;
        tools.retain(is_shown);
        Request::of(body, 0).context("a request of a role")
    });
    requests.collect()
}

fn wishes() -> Value {
    json!([{ "text": "Short lines.", "files": [] }, { "text": "No macros.", "files": ["*.rs"] }])
}

/// A repository with code whose packages may be installed, or one without code where none may. Rules may keep its files from who
/// is told of it.
fn repository(has_code: bool, is_free: bool) -> Value {
    let tools = if is_free {
        json!(["code_outline", "read", "grep", "glob", "ls", "history"])
    } else {
        json!(["history"])
    };
    let (stacks, choices, packages) = if has_code {
        (json!(["Go"]), json!([]), json!(["npm"]))
    } else {
        (json!([]), json!(["Go (go)"]), json!([]))
    };
    json!({
        "commit": "0123456789ab", "branch": "main", "digest": "1 file, 9 B.", "recent": "0123456 start",
        "tools": tools,
        "project": {
            "stacks": stacks, "tools": ["go 1.25"], "choices": choices, "gate": ["make lint"], "packages": packages,
        },
    })
}

fn ideas() -> Value {
    json!([{ "slug": "streaks", "title": "Streaks", "state": "landed", "brief": "It was first." }])
}

fn ideation(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let mut texts = Vec::new();
    for (kind, ending, is_free) in [
        ("tool", false, true),
        ("venture", false, true),
        ("tool", true, true),
        ("tool", false, false),
    ] {
        let repository = repository(kind == "tool", is_free);
        let system = json!({
            "kind": kind, "submit_tool": "reply", "repository": repository, "ideas": ideas(),
            "conventions": "Use tabs.", "wishes": wishes(),
        });
        let system = prompts.render(Prompt::Ideation, &system)?;
        for phase in Phase::ALL {
            let turn = json!({
                "phase": phase, "slug": "streaks", "kind": kind, "ending": ending, "confidence": 0.4,
                "artifacts": [{ "kind": "problem", "summary": "habits fade", "confidence": 0.7 }],
                "decisions": [{ "kind": "scope", "summary": "one habit" }],
                "risks": [{ "summary": "leap years" }],
                "answers": [{ "question": "For whom?", "answer": "For me." }],
                "unanswered": ["Since when?"],
                "idea": { "readme": "# Habits", "target_users": "students" },
                "progress": {
                    "specification": { "id": "s", "state": "approved", "told": "revision 1 is approved, by ada" },
                    "build": { "id": "b", "state": "running", "rests": false, "landed": false, "told": "that of revision 1 is running" },
                    "questions": [
                        { "id": "q", "text": "Tabs?", "choices": ["tabs: Tabs", "spaces: Spaces"], "takes_words": true },
                        { "id": "r", "text": "Build it?", "choices": ["start: Yes"], "takes_words": false },
                    ],
                },
            });
            let turn = prompts.render(Prompt::IdeationTurn, &turn)?;
            let message = format!("Go on.\n\n<session>\n{turn}\n</session>");
            texts.push((system.clone(), message, is_free));
        }
    }
    Ok(texts)
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
    let message = prompts.render(Prompt::SpecificationIdea, &idea)?;
    let rows = [(true, true), (false, true), (true, false)];
    let texts = rows.map(|(has_code, is_free)| {
        let system = json!({
            "conventions": "Use tabs.", "wishes": wishes(), "repository": repository(has_code, is_free), "ideas": ideas(),
            "stack": stacks.get("rust"), "submit_tool": "specification",
        });
        let system = prompts.render(Prompt::Specification, &system)?;
        anyhow::Ok((system, message.clone(), is_free))
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
        "idea": "streaks", "idea_context": "Streaks.", "gate": ["make lint"],
        "interfaces": [{ "signature": "fn count()", "made_by": "your task", "used_by": "T-003" }],
        "plan": {
            "title": "Streaks", "objective": "Keep them.", "data": ["a day is a date"], "out_of_scope": ["sharing"],
            "avoid_files": [{ "path": "a.lock", "purpose": "generated" }],
        },
        "others": [{ "id": "T-003", "title": "tell them", "standing": "not done yet", "files": ["src/c.rs"] }],
        "before": [{ "id": "T-001", "title": "keep the days", "summary": "They lie in a file.", "changed": ["src/d.rs (+1 -0)"] }],
        "sizes": [{ "path": "src/a.rs", "lines": 200, "bytes": 4000, "outline": "1-2  fn a()" }],
        "read_first": [{ "path": "src/d.rs", "lines": 1, "bytes": 20, "outline": "1-1  fn d()" }],
        "helpers": [{ "path": "tests/common/mod.rs", "lines": 9, "signatures": "fn world()" }],
        "conventions": "Of `src/AGENTS.md`: no panics.", "wishes": wishes(), "gotchas": [{ "text": "mind the gap" }],
        "failures": [{ "class": "VALIDATION_FAILED", "output": "1 is not 2" }],
        "answers": [{ "question": "Tabs?", "answer": "spaces", "by": "ada" }],
        "guidance": ["try less"], "tools": ["cargo 1.94"], "budget": ["50 replies in this conversation"],
        "resumed": false, "packages": "`npm ci` was run.",
        "earlier": { "summary": "half of it is done", "difference": "+ line" },
    })
}

fn build(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let memory = json!({
        "summary": "Half of it is done.", "read": ["src/a.rs"], "changed": ["src/b.rs"], "said": ["A person says: go on"],
        "verdict": "exit code 1", "todos": ["[x] look", "[ ] count"],
    });
    let memory = prompts.render(Prompt::CompactionMemory, &memory)?;
    let rows = [
        (json!(["npm"]), false, true),
        (json!([]), true, true),
        (json!([]), false, false),
    ];
    let texts = rows.map(|(managers, resumed, is_free)| {
        let tools = if is_free {
            json!(["bash", "read"])
        } else {
            json!(["write"])
        };
        let system = json!({
            "conventions": "Use tabs.", "wishes": wishes(), "package_managers": managers, "submit_tool": "finish",
            "tools": tools,
        });
        let mut task = task();
        task["resumed"] = json!(resumed);
        let told = prompts.render(Prompt::BuildTask, &task)?;
        let message = format!("{told}\n\n{memory}");
        let system = prompts.render(Prompt::Build, &system)?;
        anyhow::Ok((system, message, is_free))
    });
    texts.into_iter().collect()
}

fn review(prompts: &Prompts) -> anyhow::Result<Vec<Texts>> {
    let rows = [(true, 2, true), (false, 0, true), (true, 2, false)];
    let texts = rows.map(|(since, left_out, looks)| {
        let system = json!({ "submit_tool": "review", "looks": looks });
        let system = prompts.render(Prompt::Improvement, &system)?;
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
        let told = prompts.render(Prompt::ImprovementBuild, &build)?;
        anyhow::Ok((system, told, looks))
    });
    texts.into_iter().collect()
}

/// Lists how the headings in the templates of roles begin, as far as nothing is filled in.
fn sections() -> anyhow::Result<BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prompts");
    let mut sections = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if OF_NO_ROLE.iter().any(|other| name == *other) {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let begins = headings.map(|line| {
            let title = line.trim_start_matches('#').trim_start();
            title.split('{').next().unwrap_or_default().to_owned()
        });
        sections.extend(begins.filter(|begin| !begin.is_empty()));
    }
    Ok(sections)
}

#[test]
fn every_section_that_a_prompt_can_have_is_in_a_request_that_is_looked_at() -> anyhow::Result<()> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for role in Role::ALL {
        let whole = whole(role)?;
        for request in told()?.of(role).into_iter().chain(&whole) {
            let messages = request.messages().iter();
            let of_user = messages.filter(|message| message["role"] == "user");
            let texts = of_user.map(Request::said).chain([request.system()]);
            for text in texts {
                seen.extend(headings(&text).into_iter().map(str::to_owned));
            }
        }
    }
    let is_seen = |begin: &str| seen.iter().any(|heading| heading.starts_with(begin));
    let sections = sections()?;
    ensure!(sections.len() > 40, "{sections:?}");
    let origins = ORIGINS.iter().map(|(begin, _)| *begin);
    let begins = sections.iter().map(String::as_str).chain(origins);
    let unseen: Vec<&str> = begins.filter(|begin| !is_seen(begin)).collect();
    ensure!(unseen.is_empty(), "in no request: {unseen:?}");
    let has_origin = |heading: &&String| {
        let mut origins = ORIGINS.iter();
        origins.any(|(begin, _)| heading.starts_with(begin))
    };
    let unknown: Vec<&String> = seen.iter().filter(|heading| !has_origin(heading)).collect();
    ensure!(
        unknown.is_empty(),
        "nobody says where {unknown:?} come from"
    );
    Ok(())
}
