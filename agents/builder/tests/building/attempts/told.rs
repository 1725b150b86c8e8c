//! What a model is told of its task: all that it needs, and nothing of what is absent.

mod anew;

use std::collections::BTreeSet;

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::specification::Document;
use ropewalk_schemas::{ComponentName, KnowledgeId};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::world::project::{Project, writes};

fn told(project: &Project, task: &str) -> String {
    let prompts = project.prompts(task);
    assert_eq!(prompts.len(), 1, "one try at `{task}`");
    prompts.into_iter().next().unwrap()
}

fn holds(told: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(told.contains(wanted), "`{wanted}` is missing in:\n{told}");
    }
}

fn lacks(told: &str, unwanted: &[&str]) {
    for unwanted in unwanted {
        assert!(!told.contains(unwanted), "`{unwanted}` is in:\n{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_holds_the_task_and_the_idea_up_to_the_end_of_a_line() {
    let line = "Habits fade without a mark for each day on which they were kept.\n";
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None))
        .with_idea(&line.repeat(100))
        .with_files(&[("ideas/habits/build/spec.md", "# Habits\n")]);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "requirements": [{ "id": "FR-7", "text": "count the days in a row" }],
            "gotchas": [{ "text": "a day begins at local midnight" }],
            "code_template": "days = TODO_COUNT",
            "validation": { "command": "grep -q good a.txt # seventh", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let told = told(&project, "T-1");
    holds(
        &told,
        &[
            "CREATE file: a.txt",
            "FR-7: count the days in a row",
            "a day begins at local midnight",
            "days = TODO_COUNT",
            "grep -q good a.txt # seventh",
            "Indent with two spaces.",
            "The whole specification is `ideas/habits/build/spec.md` in your checkout.",
        ],
    );
    let whole_lines = 4_000 / line.len();
    holds(&told, &[&format!("{}[…]", line.repeat(whole_lines))]);
    lacks(&told, &[&line.repeat(whole_lines + 1)]);
    open.close().await;
}

fn lesson(number: u128, glob: &str, state: KnowledgeState) -> KnowledgeItem {
    let at = chrono::DateTime::UNIX_EPOCH;
    KnowledgeItem {
        id: KnowledgeId(uuid::Uuid::from_u128(number)),
        kind: KnowledgeKind::Gotcha,
        content: format!("lesson number {number}"),
        globs: vec![glob.to_owned()],
        action: None,
        topics: Vec::new(),
        confidence: 0.9,
        executions: BTreeSet::new(),
        ideas: BTreeSet::new(),
        evidence: Vec::new(),
        discovered_by: ComponentName::parse("build").unwrap(),
        state,
        superseded_by: None,
        injections: 0,
        created_at: at,
        updated_at: at,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_holds_the_lessons_that_match_now_and_none_that_was_withdrawn_since_the_plan() {
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None)).with(|options| {
        (options.lessons, options.hold_out) = (3, false);
    });
    let open = project.open().await;
    let items = [
        lesson(1, "*.md", KnowledgeState::Deprecated),
        lesson(2, "*.md", KnowledgeState::Superseded),
        lesson(3, "*.md", KnowledgeState::Confirmed),
        lesson(4, "*.md", KnowledgeState::Confirmed),
        lesson(5, "a.txt", KnowledgeState::Confirmed),
        lesson(6, "*.txt", KnowledgeState::Confirmed),
    ];
    let mut changes = ChangeSet::new();
    for item in &items {
        changes.insert(item);
    }
    open.services.store.commit(changes).await.unwrap();
    let planned = items[..4].iter();
    let planned: Vec<Value> = planned
        .map(|item| json!({ "id": item.id, "text": item.content }))
        .collect();
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt", "gotchas": planned,
            "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    let told = told(&project, "T-1");
    let lessons = |numbers: [u128; 3]| numbers.map(|number| format!("lesson number {number}"));
    holds(&told, &lessons([5, 6, 3]).each_ref().map(String::as_str));
    lacks(&told, &lessons([1, 2, 4]).each_ref().map(String::as_str));
    let attempt = open.attempts(build.id, "T-1").await.remove(0);
    assert_eq!(attempt.gotchas, [4, 5, 2].map(|place| items[place].id));
    // Words of a model stand where material stands, with who said them.
    let fenced =
        "<document>\n- lesson number 5 (said by a model, after a build)\n- lesson number 6 ";
    holds(&told, &[fenced]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_holds_what_people_want_of_such_work_and_nothing_that_nobody_confirmed() {
    use KnowledgeKind::{Convention, Decision, Fact, Preference};
    use KnowledgeState::{Candidate, Confirmed, Deprecated, Promoted};
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let wish = |number, kind, glob: &str, state| KnowledgeItem {
        kind,
        globs: Some(glob.to_owned())
            .filter(|glob| !glob.is_empty())
            .into_iter()
            .collect(),
        content: format!("wish number {number}"),
        ..lesson(number, glob, state)
    };
    let mut changes = ChangeSet::new();
    let wishes = [
        wish(1, Preference, "", Confirmed),
        wish(2, Decision, "*.txt", Confirmed),
        wish(3, Convention, "*.md", Confirmed),
        wish(4, Preference, "", Candidate),
        wish(5, Convention, "", Promoted),
        wish(6, Preference, "", Deprecated),
        wish(7, Fact, "", Confirmed),
    ];
    for wish in &wishes {
        changes.insert(wish);
    }
    open.services.store.commit(changes).await.unwrap();
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    open.ended(spec).await;
    let told = told(&project, "T-1");
    holds(&told, &["- wish number 2 (in *.txt)"]);
    // What is about some files changes from task to task, and no system prompt does.
    let system = project.requests("T-1").remove(0).system;
    holds(&system, &["- wish number 1"]);
    lacks(&system, &["wish number 2"]);
    lacks(
        &told,
        &[3, 4, 5, 6, 7]
            .map(|number| format!("wish number {number}"))
            .each_ref()
            .map(String::as_str),
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_holds_the_conventions_beside_the_files_of_the_task() {
    let rules =
        writes("T-1", "web/a.txt", "good\n", None) + &writes("T-2", "docs/b.txt", "good\n", None);
    let project = Project::new(&rules).with_files(&[
        (
            "web/AGENTS.md",
            "Write short lines.\nSee @../docs/words.md\n",
        ),
        ("docs/AGENTS.md", "Write long lines.\n"),
        ("docs/words.md", "Use plain words.\n"),
    ]);
    let open = project.open().await;
    let task = |id: &str, file: &str| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file,
            "validation": { "command": format!("grep -q good {file}"), "expected": "exit 0" },
        })
    };
    let plan = json!([task("T-1", "web/a.txt"), task("T-2", "docs/b.txt")]);
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let of_web = "Of `web/AGENTS.md`:\n\nWrite short lines.\nSee @../docs/words.md\n\nOf `docs/words.md`:\n\nUse plain words.";
    let of_docs = "Of `docs/AGENTS.md`:\n\nWrite long lines.";
    let systems = [("T-1", of_web, of_docs), ("T-2", of_docs, of_web)].map(|(id, own, other)| {
        let told = told(&project, id);
        holds(&told, &[own]);
        lacks(&told, &[other]);
        project.requests(id).remove(0).system
    });
    assert_eq!(systems[0], systems[1], "a provider reads it once");
    holds(&systems[0], &["Indent with two spaces."]);
    lacks(&systems[0], &[of_web, of_docs]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conventions_that_a_task_writes_are_told_to_no_other_of_its_build() {
    let rules = writes("T-1", "web/AGENTS.md", "Write rhymes.\n", None)
        + &writes("T-2", "web/a.txt", "good\n", None);
    let project = Project::new(&rules).with_files(&[("web/AGENTS.md", "Write short lines.\n")]);
    let open = project.open().await;
    let plan = json!([
        {
            "id": "T-1", "phase": "api", "action": "UPDATE", "file": "web/AGENTS.md",
            "validation": { "command": "grep -q rhymes web/AGENTS.md", "expected": "exit 0" },
        },
        {
            "id": "T-2", "phase": "api", "action": "CREATE", "file": "web/a.txt", "depends_on": ["T-1"],
            "validation": { "command": "grep -q good web/a.txt", "expected": "exit 0" },
        },
    ]);
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let told = told(&project, "T-2");
    holds(&told, &["Write short lines."]);
    lacks(&told, &["Write rhymes."]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_speaks_of_nothing_that_is_not_there() {
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let absent = [
        "Gotchas (",
        "Code Template",
        "Requirements",
        "Interfaces",
        "Other Tasks",
        "Builds On",
        "Out of Scope",
        "Went Wrong",
        "Advice",
        "Packages",
        "Made Ready",
        "whole specification",
        "Earlier Work",
        "gate of the project",
        "Tools on This Machine",
        "People Want",
        "gotcha",
        "template",
        "tokens",
        "Proactive Questioning",
        " bytes",
    ];
    lacks(&told(&project, "T-1"), &absent);
    open.close().await;
}

fn plan() -> Value {
    json!([
        {
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "requirements": [{ "id": "FR-1", "text": "keep the days" }],
            "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
        },
        {
            "id": "T-2", "phase": "api", "action": "UPDATE", "file": "README.md", "more_files": ["b.txt"],
            "read_first": ["long.py"],
            "requirements": [{ "id": "FR-2", "text": "say how" }, { "text": "and be short" }],
            "validation": { "command": "grep -q better b.txt", "expected": "exit 0" },
            "depends_on": ["T-1"],
        },
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_joins_what_was_approved_and_what_those_before_it_did() {
    let script = writes("T-1", "a.txt", "good\n", None)
        .replace("Done.", "Days lie in a.txt, one a line.")
        + &writes("T-2", "b.txt", "better\n", None);
    let project_file = "[[gate.commands]]\nname = \"tidy\"\ncommand = \"test ! -e stray\"\n";
    let long = "def first():\n    pass\n\n\n".repeat(40);
    let files = [("ropewalk.toml", project_file), ("long.py", long.as_str())];
    let project = Project::new(&script).with_files(&files);
    let open = project.open().await;
    let requirement = |id: &str, text: &str, acceptance: &str| json!({ "id": id, "text": text, "acceptance": acceptance, "priority": "must", "source": "brief.md" });
    let text: Document = serde_json::from_value(json!({
        "title": "Habits that last", "objective": "Nobody forgets a day.",
        "requirements": [
            requirement("FR-1", "keep the days", "a.txt has a line for each day"),
            requirement("FR-2", "The README says how days are kept.", "a stranger finds the file"),
        ],
        "interfaces": ["a.txt: one day a line"], "data": ["a day is an ISO date"], "out_of_scope": ["sharing days"],
        "avoid_files": [{ "path": "CLAUDE.md", "purpose": "belongs to people" }],
    }))
    .unwrap();
    let spec = open.approve_whole(text, plan()).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let both = [
        "Habits that last",
        "Nobody forgets a day.",
        "a.txt: one day a line",
        "a day is an ISO date",
        "sharing days",
        "`CLAUDE.md`: belongs to people",
        "- `test ! -e stray`",
    ];
    let first = told(&project, "T-1");
    holds(&first, &both);
    holds(
        &first,
        &[
            "Accepted when: a.txt has a line for each day",
            "- T-2 (not done yet): update `README.md`: say how",
        ],
    );
    lacks(&first, &["In full:", "Builds On", "say how days are kept"]);
    let second = told(&project, "T-2");
    holds(&second, &both);
    holds(
        &second,
        &[
            "- T-1 (done): create `a.txt`: keep the days",
            "### T-1: create `a.txt`: keep the days\nDays lie in a.txt, one a line.\nIt changed, in lines that came and went: a.txt (+1 -0)\n",
            "- FR-2: say how\n  In full: The README says how days are kept.\n  Accepted when: a stranger finds the file\n- and be short\n",
            "## Read First\n- `long.py`: 160 lines, 960 bytes\n\nWhat `long.py` imports and defines, each with its lines:\n```\n1-2  def first()\n",
            "- `README.md`: 1 line, 12 bytes\n- not there yet: `b.txt`\n",
        ],
    );
    lacks(&second, &["a.txt has a line for each day", "`b.txt` has"]);
    let commit = tasks
        .iter()
        .find(|task| task.id.as_str() == "T-1")
        .and_then(|task| task.commit.clone());
    let body = open.git(&["log", "-1", "--format=%b", commit.unwrap().as_str()]);
    assert!(
        body.starts_with("Days lie in a.txt, one a line.\n\n- keep the days\n"),
        "{body}"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_names_the_helpers_beside_the_tests_of_its_task() {
    let helper = "def kept(count):\n    return [True] * count\n";
    let test = "import unittest\n";
    let files = [
        ("helpers.py", helper),
        ("tests/helpers.py", helper),
        ("tests/test_days.py", test),
    ];
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None)).with_files(&files);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt", "read_first": ["tests/test_days.py"],
            "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let told = told(&project, "T-1");
    let wanted = "Beside the tests, with what they define:\n- `tests/helpers.py`, 2 lines:\n```\ndef kept(count)\n```\n";
    holds(&told, &[wanted]);
    lacks(&told, &["`helpers.py`"]);
    open.close().await;
}
