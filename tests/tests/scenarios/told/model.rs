//! What the emulator answers: a conversation, a plan, two tasks (one with a wrong line, one with a question), a review.

use serde_json::{Value, json};

pub(super) const KEY: &str = "EMULATOR_API_KEY";
pub(super) const WISH: &str = "Name things in whole words.";
/// The same for some files alone, and which.
pub(super) const WISH_OF_DOCS: &str = "Write one sentence in each line.";
pub(super) const DOCS: &str = "docs/*.md";
pub(super) const OPENING: &str = "People who keep habits for months cannot see how long they kept one at best, and give up after the first miss.";
pub(super) const AGREED: &str = "One function is enough for that.\n";
pub(super) const LINE: &str = "Only the number of days, and nothing else.\n";
pub(super) const QUESTION: &str = "Below which heading does the README tell of it?";
pub(super) const ANSWER: &str = "Usage";
/// The line of the task that is wrong at first, and as it is in the end.
pub(super) const WRONG: &str = "    return best + 1\n";
pub(super) const RIGHT: &str = "    return best\n";

pub(super) const FILES: [(&str, &str); 9] = [
    (
        "habits.py",
        "\"\"\"Counts the days on which a habit was kept.\"\"\"\n\n\ndef streak(days):\n    \"\"\"Return how many days in a row were kept, up to the last.\"\"\"\n    count = 0\n    for kept in reversed(days):\n        if not kept:\n            break\n        count += 1\n    return count\n",
    ),
    (
        "test_habits.py",
        "import unittest\n\nfrom habits import streak\n\n\nclass Streak(unittest.TestCase):\n    def test_a_miss_ends_it(self):\n        self.assertEqual(streak([True, False, True, True]), 2)\n",
    ),
    (
        "README.md",
        "# Habits\n\nCounts days.\n\n## Usage\n\n`streak(days)` counts back from the last day.\n",
    ),
    (
        "AGENTS.md",
        "Functions are pure, and have a docstring in the imperative.\n",
    ),
    ("docs/AGENTS.md", "Sentences are short.\n"),
    ("docs/usage.md", "# Usage\n\n`streak(days)` counts back.\n"),
    (
        "pyproject.toml",
        "[project]\nname = \"habits\"\nversion = \"0.1.0\"\n",
    ),
    (".gitignore", "__pycache__/\n"),
    (
        "ropewalk.toml",
        "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest -q\"\n",
    ),
];

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": name, "arguments": input })
}

fn answer(condition: &Value, words: &str, calls: Vec<Value>) -> Value {
    let mut blocks = Vec::new();
    if !words.is_empty() {
        blocks.push(json!({ "type": "text", "text": words }));
    }
    blocks.extend(calls);
    json!({ "match": condition, "response": { "blocks": blocks } })
}

/// Answers the results of the reply whose last call had this id.
fn after(id: &str, calls: Vec<Value>) -> Value {
    answer(&json!({ "toolCallId": id }), "", calls)
}

pub(super) fn fixtures() -> Value {
    let mut fixtures = conversation();
    fixtures.extend(specification());
    fixtures.extend(first_task());
    fixtures.extend(second_task());
    let findings = json!({ "patterns": [], "gotchas": [], "divergences": [], "notes": [] });
    let asked = json!({ "toolName": "review", "hasToolResult": false });
    let look = vec![call("review-1", "history", &json!({ "action": "log" }))];
    fixtures.push(answer(&asked, "I look at the commits.", look));
    let review = vec![call("review-2", "review", &findings)];
    fixtures.push(after("review-1", review));
    json!({ "fixtures": fixtures })
}

fn conversation() -> Vec<Value> {
    let artifact = |kind: &str, text: &str| json!({ "kind": kind, "summary": text, "content": text, "confidence": 0.8 });
    let first = json!({
        "artifacts": [
            artifact("problem", "The best streak of a habit is told nowhere."),
            artifact("solution-concept", "A function beside `streak` tells the longest one."),
        ],
        "confidence": 0.5,
    });
    let second = json!({
        "artifacts": [
            artifact("mvp-features", "`longest(days)` returns a number of days."),
            artifact("brief", "A function `longest(days)` in habits.py returns the longest streak. The README tells of it."),
        ],
        "decisions": [{ "kind": "scope", "summary": "A number of days and nothing else." }],
        "risks": [{ "summary": "A streak that still goes on has to count." }],
        "confidence": 0.8,
    });
    let heard = |words: &str| json!({ "toolName": "reply", "userMessage": words });
    let opened = json!({ "toolName": "reply", "userMessage": "cannot see how long", "hasToolResult": false });
    let look = call("heard-look", "read", &json!({ "path": "habits.py" }));
    vec![
        answer(
            &heard("Only the number of days"),
            "Then it is one function, and I write the brief.",
            vec![call("heard-2", "reply", &second)],
        ),
        answer(
            &heard("One function is enough"),
            "Then it stands beside `streak`. What should it return?",
            vec![call("heard-agreed", "reply", &json!({ "confidence": 0.5 }))],
        ),
        answer(&opened, "I look at what counts today.", vec![look]),
        answer(
            &json!({ "toolCallId": "heard-look" }),
            "`streak` counts back from the last day alone. What should a second function **tell**?",
            vec![call("heard-1", "reply", &first)],
        ),
    ]
}

fn specification() -> Vec<Value> {
    let asked = json!({ "toolName": "specification", "hasToolResult": false });
    let look = vec![
        call("look-1", "code_outline", &json!({ "path": "habits.py" })),
        call("look-2", "read", &json!({ "path": "test_habits.py" })),
    ];
    vec![
        answer(&asked, "I look at the code first.", look),
        after("look-2", vec![call("plan", "specification", &plan())]),
    ]
}

fn plan() -> Value {
    let requirement = |id: &str, text: &str, acceptance: &str| json!({ "id": id, "text": text, "acceptance": acceptance, "priority": "must", "source": "planning/brief.md" });
    json!({
        "document": {
            "title": "The longest streak", "context_read": [], "missing_inputs": [],
            "objective": "Who keeps a habit sees the longest streak.", "success_criteria": ["the longest streak is told"],
            "out_of_scope": ["streaks of several habits"],
            "requirements": [
                requirement("FR-1", "The longest streak of a list of days is told.", "`longest([True, True, False, True])` is 2"),
                requirement("FR-2", "The README tells of it.", "the README names `longest`"),
            ],
            "quality": [], "new_files": [], "modified_files": [], "avoid_files": [],
            "interfaces": [{ "signature": "def longest(days) -> int", "made_by": "T-001", "used_by": ["T-002"] }],
            "data": [], "dependencies": [], "gotchas": [], "validation": ["python3 -m unittest -q"], "risks": [],
        },
        "tasks": [
            {
                "id": "T-001", "title": "habits: tell the longest streak", "phase": "api", "action": "UPDATE", "file": "habits.py",
                "more_files": ["test_longest.py"], "read_first": ["test_habits.py"], "leave_alone": ["the signature of `streak`"],
                "requirements": [{ "id": "FR-1", "text": "Add `longest(days)` with its tests." }], "gotchas": [], "depends_on": [],
                "validation": { "command": "python3 -m unittest -q test_longest", "expected": "tests >= 2" },
            },
            {
                "id": "T-002", "title": "readme: tell of the longest streak", "phase": "ui", "action": "UPDATE", "file": "README.md",
                "more_files": ["docs/usage.md"], "requirements": [{ "id": "FR-2", "text": "Tell of `longest(days)`." }], "gotchas": [], "depends_on": ["T-001"],
                "validation": { "command": "grep -q longest README.md", "expected": "exit 0" },
            },
        ],
    })
}

fn first_task() -> Vec<Value> {
    let begun =
        json!({ "toolName": "finish", "userMessage": "BUILD TASK: T-001", "hasToolResult": false });
    let look = vec![
        call("first-1", "read", &json!({ "path": "habits.py" })),
        call("first-2", "read", &json!({ "path": "test_habits.py" })),
    ];
    let function = format!(
        "    return count\n\n\ndef longest(days):\n    \"\"\"Return how many days in a row were kept at best.\"\"\"\n    best = count = 0\n    for kept in days:\n        count = count + 1 if kept else 0\n        best = max(best, count)\n{WRONG}"
    );
    let tests = "import unittest\n\nfrom habits import longest\n\n\nclass Longest(unittest.TestCase):\n    def test_a_streak_in_the_midst_counts(self):\n        self.assertEqual(longest([True, True, False, True]), 2)\n\n    def test_no_day_is_no_streak(self):\n        self.assertEqual(longest([]), 0)\n";
    let work = vec![
        call(
            "first-3",
            "edit",
            &json!({ "path": "habits.py", "old_text": "    return count\n", "new_text": function }),
        ),
        call(
            "first-4",
            "write",
            &json!({ "path": "test_longest.py", "content": tests }),
        ),
    ];
    let finish = |id: &str, summary: &str| vec![call(id, "finish", &json!({ "summary": summary }))];
    let mend = json!({ "path": "habits.py", "old_text": WRONG, "new_text": RIGHT });
    vec![
        answer(&begun, "I read what I change.", look),
        after("first-2", work),
        after("first-4", finish("first-5", "Added `longest(days)`.")),
        after("first-5", vec![call("first-6", "edit", &mend)]),
        after(
            "first-6",
            finish(
                "first-7",
                "Added `longest(days)`; it takes any iterable and returns 0 for none.",
            ),
        ),
    ]
}

fn second_task() -> Vec<Value> {
    let begun =
        json!({ "toolName": "finish", "userMessage": "BUILD TASK: T-002", "hasToolResult": false });
    let question = json!({
        "question": QUESTION, "why": "Readers look for it there.",
        "options": [{ "label": ANSWER }, { "label": "A new one" }],
    });
    let usage = json!({
        "path": "docs/usage.md", "old_text": "counts back.\n",
        "new_text": "counts back.\n`longest(days)` tells the best one.\n",
    });
    let edit = json!({
        "path": "README.md", "old_text": "from the last day.\n",
        "new_text": "from the last day, `longest(days)` tells the best one.\n",
    });
    vec![
        answer(&begun, "", vec![call("second-1", "ask", &question)]),
        after(
            "second-1",
            vec![
                call("second-usage", "read", &json!({ "path": "docs/usage.md" })),
                call("second-2", "read", &json!({ "path": "README.md" })),
            ],
        ),
        after(
            "second-2",
            vec![
                call("second-usage-edit", "edit", &usage),
                call("second-3", "edit", &edit),
            ],
        ),
        after(
            "second-3",
            vec![call(
                "second-4",
                "finish",
                &json!({ "summary": "The README tells of it below Usage." }),
            )],
        ),
    ]
}
