//! Who chats about an idea, and who plans it, reads the code first.

use std::collections::BTreeSet;
use std::time::Duration;

use ropewalk_config::settings::PolicySettings;
use ropewalk_desk::attachments::{self, Upload};
use ropewalk_desk::knowledge::{self, Remark};
use ropewalk_desk::people::Person;
use ropewalk_orchestrator::questions;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::SpecState;
use ropewalk_store::Query;
use serde_json::{Value, json};

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, user};

const OPENING: &str = "I want pets to be kept in a file that I can open with an editor, each week.";
const CODE: (&str, &str) = (
    "src/keep.rs",
    "/// Keeps a pet.\npub fn keep(name: &str) -> usize {\n    name.len()\n}\n",
);

#[tokio::test]
async fn a_plan_is_made_by_a_model_that_has_read_the_code() {
    let look = "- {agent: specification, turn: 1, contains: ['2-4  pub fn keep(name: &str) -> usize', 'src/ (1 file,'], \
        reply: {text: Let me see., tools: [{name: code_outline, input: {path: src/keep.rs}}, {name: read, input: {path: src/keep.rs}}, \
        {name: history, input: {action: log}}, {name: write, input: {path: src/keep.rs, content: no}}]}}\n";
    let plan = rule(
        "turn: 2, contains: ['name.len()', 'Ada: begin', 'there is no tool `write` in the mode `plan`; the tools are: code_outline, glob, grep, history, ls, read']",
        &small_plan("Pets"),
    );
    let world = IdeaWorld::with(&format!("{look}{plan}"), &[CODE], false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    assert_eq!(world.calls(), 2);
    assert!(world.spec(spec).await.reason.is_none());
}

#[tokio::test]
async fn what_lands_between_two_plans_is_read_by_the_second() {
    let plan = |contains: &str| rule(&format!("contains: ['{contains}']"), &small_plan("Pets"));
    let rules = format!("{}{}", plan("2-4  pub fn keep"), plan("1-1  pub fn hold"));
    let world = IdeaWorld::with(&rules, &[CODE], false).await;
    let first = world.idea("pets", &[README, BRIEF]).await;
    let first = world.specify(&first).await;
    world.commit_file("src/keep.rs", "pub fn hold() {}\n");
    let second = world.idea("more-pets", &[README, BRIEF]).await;
    let second = world.specify(&second).await;
    for spec in [first, second] {
        assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    }
}

#[tokio::test]
async fn a_chat_looks_before_it_answers_and_what_it_says_last_is_kept() {
    let script = "- {agent: ideation, turn: 1, contains: ['pub fn keep', 'Look into it with'], reply: {text: I will look., \
        tools: [{name: read, input: {path: src/keep.rs}}]}}\n\
        - {agent: ideation, turn: 2, contains: ['name.len()'], reply: {text: It counts letters., tools: [{name: reply, input: {}}]}}\n";
    let world = IdeaWorld::with(script, &[CODE], false).await;
    let mut live = world.live();
    let session = world.begin("pets", OPENING).await.session;
    assert_eq!(
        world.messages(session).await,
        [OPENING, "It counts letters."]
    );
    let mut streamed = String::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(50), live.next()).await {
        if event.event_type == "ideation.delta" {
            streamed.push_str(event.data["text"].as_str().unwrap());
        }
    }
    assert_eq!(streamed, "I will look.\n\nIt counts letters.");
    let calls = world.store().list::<ModelCall>(Query::new()).await.unwrap();
    assert_eq!(calls.len(), 2);
    // The next look finds the checkout free.
    world.say(session, "More?").await;
    assert!(world.state().join("reading/1/tree/src/keep.rs").is_file());
    assert!(!world.state().join("reading/2").exists());
}

#[tokio::test]
async fn who_may_read_no_file_is_not_told_to() {
    let told = "contains: ['Look into it with `history`;', 'pub fn keep'], absent: 'look first'";
    let chat = format!(
        "- {{agent: ideation, {told}, reply: {{text: Yes., tools: [{{name: reply, input: {{}}}}]}}}}\n"
    );
    let told =
        "contains: ['Look into it with `history`;', 'pub fn keep'], absent: 'before you plan'";
    let script = chat + &rule(told, &small_plan("Pets"));
    let world = IdeaWorld::with(&script, &[CODE], false).await;
    let mut policy = PolicySettings::default();
    let denied = json!([{ "permission": "read", "pattern": "**", "action": "deny" }]);
    policy.rules.project = serde_json::from_value(denied).unwrap();
    world.rules.replace(policy);
    let session = world.begin("pets", OPENING).await.session;
    assert_eq!(world.messages(session).await, [OPENING, "Yes."]);
    let idea = world.idea("more-pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
}

#[tokio::test]
async fn who_plans_is_told_the_whole_brief_of_an_idea_that_is_open() {
    let told = "contains: ['- `pets` (', 'Cats sleep all day. Dogs do not.']";
    let world = IdeaWorld::new(&rule(told, &small_plan("Pets"))).await;
    let brief = "# Brief\n\nCats sleep all day.\n\n## More\n\nDogs do not.\n";
    world.idea("pets", &[README, (BRIEF.0, brief)]).await;
    let other = world.idea("more-pets", &[README, BRIEF]).await;
    let spec = world.specify(&other).await;
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
}

#[tokio::test]
async fn who_chats_and_who_plans_is_told_the_conventions_and_what_people_want() {
    let told = "'Spell words out.', 'One function, one purpose.', '- No new packages.'";
    let chat = format!(
        "- {{agent: ideation, contains: [{told}], reply: {{text: Yes., tools: [{{name: reply, input: {{}}}}]}}}}\n"
    );
    let plan = rule(&format!("contains: [{told}]"), &small_plan("Pets"));
    let conventions = [
        ("AGENTS.md", "Spell words out. See @docs/style.md"),
        ("docs/style.md", "One function, one purpose."),
    ];
    let world = IdeaWorld::with(&format!("{chat}{plan}"), &conventions, false).await;
    let wish = Remark {
        kind: KnowledgeKind::Preference,
        content: "No new packages.".to_owned(),
        globs: Vec::new(),
        action: None,
        topics: Vec::new(),
        confidence: 0.9,
        idea: None,
    };
    let ann = Person {
        name: user("ann"),
        roles: BTreeSet::new(),
        rights: BTreeSet::new(),
    };
    let remembered = knowledge::remember(&world.person(), wish, &ann).await;
    remembered.unwrap();
    assert_eq!(world.settle().await, []);
    let session = world.begin("pets", OPENING).await.session;
    assert_eq!(world.messages(session).await, [OPENING, "Yes."]);
    let idea = world.idea("more-pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn who_plans_is_told_once_what_the_brief_and_other_documents_say() {
    let once = "contains: ['Book a sitter nearby.', '- Scope: cats alone', '- Price: none', 'Sitters have a map.'], \
        absent: ['### README.md', '## Problem']";
    let world = IdeaWorld::with(&rule(once, &small_plan("Pets")), &[], false).await;
    let brief = "# Brief\n\nBook a sitter nearby.\n\n- Scope: cats alone\n";
    let documents = [
        (
            "README.md",
            "# Pets\n\n## Decisions\n\n- Scope: cats alone\n",
        ),
        ("planning/brief.md", brief),
        (
            "problem-solution.md",
            "# Pets\n\n## Problem\n\nBook a sitter nearby.\n\n## Solution\n\nSitters have a map.\n",
        ),
        (
            "development.md",
            "# Pets\n\n## Decisions\n\n- Price: none\n- Scope: cats alone\n",
        ),
    ];
    let idea = world.idea("pets", &documents).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
}

#[tokio::test]
async fn a_chat_has_no_tool_that_changes_opens_or_leads_others_and_is_refused_where_it_calls_one() {
    let forged = [
        "spawn_agent",
        "create_lane",
        "report_completion",
        "github_write",
        "open",
        "write",
        "bash",
    ];
    let calls = forged.map(|name| {
        format!("{{name: {name}, input: {{command: touch here, path: here, content: no}}}}")
    });
    let told = forged.map(|name| {
        format!(
            "'there is no tool `{name}` in the mode `explore`; the tools are: code_outline, glob, grep, history, ls, read'"
        )
    });
    let (calls, told) = (calls.join(", "), told.join(", "));
    let script = format!(
        "- {{agent: ideation, turn: 1, reply: {{text: I will., tools: [{calls}]}}}}\n\
        - {{agent: ideation, turn: 2, contains: [{told}], reply: {{text: I cannot., tools: [{{name: reply, input: {{}}}}]}}}}\n"
    );
    let world = IdeaWorld::with(&script, &[CODE], false).await;
    let session = world.begin("pets", OPENING).await.session;
    assert_eq!(world.messages(session).await, [OPENING, "I cannot."]);
    assert!(!world.state().join("reading/1/tree/here").exists());
}

#[tokio::test]
async fn what_a_chat_has_read_lies_before_it_at_the_next_message() {
    let script = "- {agent: ideation, turn: 1, contains: ['name.len()', 'said and recorded', 'And now?'], \
        reply: {text: It still counts letters., tools: [{name: reply, input: {}}]}}\n\
        - {agent: ideation, turn: 1, reply: {text: I will look., tools: [{name: read, input: {path: src/keep.rs}}]}}\n\
        - {agent: ideation, turn: 2, reply: {text: It counts letters., tools: [{name: reply, input: {}}]}}\n";
    let world = IdeaWorld::with(script, &[CODE], false).await;
    let session = world.begin("pets", OPENING).await.session;
    world.say(session, "And now?").await;
    let last = world.messages(session).await.pop();
    assert_eq!(last.as_deref(), Some("It still counts letters."));
    assert_eq!(world.calls(), 3);
}

#[tokio::test]
async fn what_a_chat_was_told_of_its_session_stays_where_it_was_told() {
    let artifact = |kind: &str| {
        format!("{{kind: {kind}, summary: pets, content: Pets are forgotten., confidence: 0.8}}")
    };
    let kinds = ["target-user", "problem", "solution-concept"]
        .map(artifact)
        .join(", ");
    let look = "{name: read, input: {path: src/keep.rs}}";
    let script = format!(
        "- {{agent: ideation, task: message-1, turn: 1, reply: {{text: I will look., tools: [{look}]}}}}\n\
        - {{agent: ideation, task: message-1, turn: 2, reply: {{text: Yes., tools: [{{name: reply, input: {{artifacts: [{kinds}]}}}}]}}}}\n\
        - {{agent: ideation, task: message-2, turn: 1, contains: ['Phase: Exploring', 'Phase: Narrowing'], reply: {{text: And., tools: [{look}]}}}}\n\
        - {{agent: ideation, task: message-2, turn: 2, reply: {{text: Good., tools: [{{name: reply, input: {{}}}}]}}}}\n\
        - {{agent: ideation, task: message-3, contains: ['Phase: Exploring', 'Phase: Narrowing'], reply: {{text: Last., tools: [{{name: reply, input: {{}}}}]}}}}\n"
    );
    let world = IdeaWorld::with(&script, &[CODE], false).await;
    let session = world.begin("pets", OPENING).await.session;
    world.say(session, "And now?").await;
    world.say(session, "And then?").await;
    let last = world.messages(session).await.pop();
    assert_eq!(last.as_deref(), Some("Last."));
    assert_eq!(world.calls(), 5);
}

#[tokio::test]
async fn a_chat_that_never_submits_is_answered_with_its_last_words() {
    let script = "- {agent: ideation, turn: 1, reply: {text: I will look., tools: [{name: ls}]}}\n\
        - {agent: ideation, reply: {text: It is all there.}}\n";
    let world = IdeaWorld::new(script).await;
    let session = world.begin("pets", OPENING).await.session;
    assert_eq!(world.messages(session).await, [OPENING, "It is all there."]);
}

#[tokio::test]
async fn a_planner_is_told_of_the_ideas_beside_its_own() {
    let script = rule(
        "contains: ['- `pets` (', 'A marketplace where owners book sitters.']",
        &small_plan("More pets"),
    );
    let world = IdeaWorld::new(&script).await;
    world.idea("pets", &[README, BRIEF]).await;
    let other = world
        .idea(
            "more-pets",
            &[README, ("planning/brief.md", "# Brief\n\nMore.\n")],
        )
        .await;
    let spec = world.specify(&other).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
}

#[tokio::test]
async fn a_planner_is_told_how_the_project_is_tested_on_this_machine() {
    let files = [
        ("setup.py", ""),
        ("test_pets.py", "import unittest\n"),
        ("web/go.mod", ""),
        (
            "ropewalk.toml",
            "[build]\nsetup = \"true\"\n[[gate.commands]]\nname = \"lint\"\ncommand = \"make lint\"\n",
        ),
    ];
    let told = "contains: ['- Python, tested by `python3 -m unittest discover`', 'Go in `web`, tested by `cd web && go test ./...`', \
        'Python 3.', 'beside its own check: `make lint`', 'is first made ready by `true`', 'Other packages may be installed by npm alone']";
    let world = IdeaWorld::with(&rule(told, &small_plan("Pets")), &files, false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.reason, None);
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
}

#[tokio::test]
async fn what_is_told_of_a_repository_has_a_bound_whatever_its_lines_are() {
    /// The most of it, in bytes.
    const MOST: usize = 24 * 1024;
    let code: Vec<String> = (0..60)
        .map(|number| format!("pub fn function_number_{number}(argument: &str) -> usize {{}}\n"))
        .collect();
    let code = code.concat();
    let mut files: Vec<(String, String)> = (0..90)
        .map(|number| {
            let directory = format!("{number:0>3}").repeat(40);
            (format!("{directory}/code.rs"), code.clone())
        })
        .collect();
    let gate = (0..20).map(|number| {
        let command = "x".repeat(2_000);
        format!("[[gate.commands]]\nname = \"check-{number}\"\ncommand = \"{command}\"\n")
    });
    files.push(("ropewalk.toml".to_owned(), gate.collect()));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let chat = "- {agent: ideation, reply: {text: Well., tools: [{name: reply, input: {}}]}}\n";
    let script = format!("{chat}{}", rule("idea: pets", &small_plan("Pets")));
    let world = IdeaWorld::with(&script, &files, false).await;
    for number in 0..12 {
        let subject = format!("{number} {}", "x".repeat(1_000));
        world.commit_saying("notes.txt", &number.to_string(), &subject);
    }
    let measured = |role: &str| {
        let system = world.system();
        let (_, told) = system.split_once("## The Repository").unwrap();
        let (told, _) = told.split_once("Look into it with").unwrap();
        assert!(told.len() <= MOST, "{role}: {}", told.len());
        // It is as long as it can be.
        assert!(told.len() > MOST - 3 * 1024, "{role}: {}", told.len());
        for part in ["more directories]", "and 12 more", ": 11 xxx", ": 0 xxx"] {
            assert!(told.contains(part), "{role}, {part}: {told}");
        }
    };
    world.begin("walks", OPENING).await;
    measured("chat");
    let idea = world.idea("pets", &[README, BRIEF]).await;
    world.specify(&idea).await;
    measured("plan");
}

#[tokio::test]
async fn a_planner_reads_one_command_for_the_tests_where_the_gate_runs_them() {
    let files = [
        ("setup.py", ""),
        ("test_pets.py", "import unittest\n"),
        (
            "ropewalk.toml",
            "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest -q\"\n",
        ),
    ];
    let told =
        "contains: ['- Python', 'its own check: `python3 -m unittest -q`'], absent: 'tested by'";
    let world = IdeaWorld::with(&rule(told, &small_plan("Pets")), &files, false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.reason, None);
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
}

#[tokio::test]
async fn the_first_quote_holds_the_files_that_the_tasks_have_to_read() {
    let long = "// Pets are fed.\n".repeat(1_000);
    let mut plan = small_plan("Pets");
    plan["tasks"][0]["read_first"] = json!(["src/long.rs"]);
    let files = [("src/long.rs", long.as_str())];
    let world = IdeaWorld::with(&rule("idea: pets", &plan), &files, false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let price = world.spec(spec).await.price.unwrap();
    // Three tasks, of which one reads 17,000 bytes, which are 4,250 tokens: once, or in each of three requests.
    let range = (19_000, 190_000);
    assert_eq!((price.tokens_low, price.tokens_high), range);
}

#[tokio::test]
async fn in_an_empty_repository_the_stack_is_a_question_with_what_this_machine_has() {
    let question = json!({ "question": {
        "type": "blocking", "text": "With what is it built?", "options": [{ "label": "Python" }, { "label": "Rust" }],
    } });
    let told =
        "contains: ['It holds no code yet', '- Python (python3)'], absent: 'The answer: Python'";
    let chosen = "contains: ['With what is it built?', 'The answer: Python']";
    let script = rule(told, &question) + &rule(chosen, &built_with("Python"));
    let world = IdeaWorld::without_code(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    python_is_chosen(&world, spec).await;
}

#[tokio::test]
async fn a_plan_whose_stack_nobody_chose_comes_back_until_people_are_asked() {
    let question = json!({ "question": {
        "type": "blocking", "text": "With what is it built?", "options": [{ "label": "Python" }, { "label": "Rust" }],
    } });
    let script = [
        rule("contains: 'The answer: Python'", &built_with("Python")),
        rule("attempt: 1", &small_plan("Pets")),
        rule(
            "attempt: 2, contains: ['does not say by which words people chose', 'Python (python3)']",
            &built_with("in Rust"),
        ),
        rule(
            "attempt: 3, contains: 'stand in no document and in no answer'",
            &question,
        ),
    ];
    let world = IdeaWorld::without_code(&script.concat()).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    python_is_chosen(&world, spec).await;
}

#[tokio::test]
async fn what_an_empty_repository_is_built_with_is_asked_of_nobody_who_said_it() {
    let brief = ("planning/brief.md", "# Brief\n\nA small\nPython script.\n");
    let mut of_words = small_plan("Pets");
    for task in of_words["tasks"].as_array_mut().unwrap() {
        let file = format!("docs/{}.md", task["id"].as_str().unwrap());
        task["validation"]["command"] = json!(format!("grep -qs pets {file}"));
        task["file"] = json!(file);
    }
    for plan in [built_with("a small Python script"), of_words] {
        let world = IdeaWorld::without_code(&rule("attempt: 1", &plan)).await;
        let idea = world.idea("pets", &[README, brief]).await;
        let spec = world.specify(&idea).await;
        assert_eq!(world.spec(spec).await.state, SpecState::Generated);
        assert_eq!(world.calls(), 1);
    }
}

/// Returns the small plan, with the words that say what it is built with.
fn built_with(words: &str) -> Value {
    let mut plan = small_plan("Pets");
    plan["built_with"] = json!(words);
    plan
}

/// Answers the one question that is open, and sees to it that a plan comes of it.
async fn python_is_chosen(world: &IdeaWorld, spec: SpecId) {
    assert_eq!(world.spec(spec).await.state, SpecState::Draft);
    let open = world.open_questions().await;
    assert_eq!(open.len(), 1, "{open:?}");
    questions::answer(&world.person(), open[0].id, "Python", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
}

#[tokio::test]
async fn who_plans_goes_on_with_the_answer_in_the_conversation_in_which_it_asked() {
    let look = "- {agent: specification, turn: 1, absent: 'name.len()', reply: {tools: [{name: read, input: {path: src/keep.rs}}]}}\n";
    let asking = json!({ "question": { "type": "blocking", "text": "Letters or bytes?" } });
    let script = look.to_owned()
        + &rule("turn: 2, absent: 'Letters or bytes?'", &asking)
        + &rule(
            "turn: 1, contains: ['Letters or bytes?', 'name.len()', 'The answer: Letters']",
            &small_plan("Pets"),
        );
    let world = IdeaWorld::with(&script, &[CODE], false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let open = world.open_questions().await;
    questions::answer(&world.person(), open[0].id, "Letters", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    assert_eq!(world.calls(), 3, "nothing is read again");
}

#[tokio::test]
async fn a_text_that_was_attached_is_read_by_whoever_plans() {
    // The second line stands in the brief, too, and is told with its file all the same.
    let brief = BRIEF.1.lines().last().unwrap();
    let plan = rule(
        "contains: ['### attachments/breeds.csv', 'pug;7', 'It goes on: 20006 bytes in all']",
        &small_plan("Pets"),
    );
    let chat = "- {agent: ideation, reply: {tools: [{name: reply, input: {text: 'Go on.'}}]}}\n";
    let world = IdeaWorld::new(&format!("{chat}{plan}")).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let session = world.idea_record("pets").await.session;
    let table = format!("pug;7\n{brief}\n{}", "x".repeat(20_000 - brief.len() - 1));
    for (name, bytes) in [
        ("breeds.csv", table.as_bytes()),
        ("pug.png", b"\x89PNG\r\n\x1a\n"),
    ] {
        let sent = Upload {
            name,
            media_type: None,
            bytes,
            words: "",
            note: "",
        };
        attachments::attach(&world.person(), &world.state(), session, &user("ann"), sent)
            .await
            .unwrap();
        assert_eq!(world.settle().await, []);
    }
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    let read = world.revision(spec, 1).await.document.context_read;
    assert!(
        read.contains(&"ideas/pets/attachments/breeds.csv".to_owned()),
        "{read:?}"
    );
    assert!(!read.iter().any(|path| path.contains("pug")), "{read:?}");
}
