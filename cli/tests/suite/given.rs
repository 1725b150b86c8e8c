//! An idea that is a text: `spec generate --from` asks nothing about it, and `idea done` ends what was a conversation.

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::approvals::text;
use crate::world::{World, one_line};

const TEXT: &str = "# Walks\n\nA list of my walks, one day a line, in plain files.\n";

fn ideas(world: &World) -> usize {
    world.json("idea list").as_array().unwrap().len()
}

/// Runs a command that is refused with `code` in one line, and makes sure that it writes nothing anywhere.
fn refused(world: &World, command: Command, code: i32, named: &str) {
    let before = world.files();
    let said = one_line(command, code);
    assert!(said.contains(named), "{said}");
    let after = world.files();
    let mut all = before.keys().chain(after.keys());
    let changed = all.find(|path| before.get(*path) != after.get(*path));
    assert_eq!(changed, None, "{named}");
}

#[test]
fn a_text_becomes_a_specification_without_a_conversation() {
    let world = World::scripted();
    let mut command = world.ropewalk(["spec", "generate", "--from", "-", "--json"]);
    let output = command
        .write_stdin(TEXT)
        .assert()
        .success()
        .get_output()
        .clone();
    let spec: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(spec["state"], "generated", "{spec:#}");
    assert_eq!(spec["idea"], "walks");
    // What is to be read goes on with what is to be said.
    let (id, hash) = (spec["id"].as_str().unwrap(), spec["hash"].as_str().unwrap());
    let next = format!(
        "`ropewalk spec approve {} --hash {}`",
        &id[id.len() - 8..],
        &hash[..16]
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&next), "{said}");
    let idea = world.json("idea show walks");
    assert_eq!(idea["state"], "captured");
    let folder = std::path::PathBuf::from(idea["folder"].as_str().unwrap());
    let brief = std::fs::read_to_string(folder.join("planning/brief.md")).unwrap();
    assert!(brief.starts_with(TEXT.trim_end()), "{brief}");
    // Nobody has to look for it: without the mark that is for agents it is shown.
    let told = text(&idea["brief"]);
    assert!(brief.starts_with(told) && !told.contains("<!--"), "{told}");
    assert!(told.starts_with(TEXT.trim_end()), "{told}");
    let shown = world.run("idea show walks");
    assert!(shown.contains(told), "{shown}");
    let messages = idea["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    // What it cost is said with it, as the sums know it.
    let used = world.json("usage --by idea --idea walks");
    assert_eq!(spec["idea_usage"], used[0]);
    assert!(used[0]["calls"].as_u64().unwrap() >= 1, "{used:#}");
}

#[test]
fn what_an_empty_repository_is_built_with_is_asked_before_anybody_can_approve() {
    let world = World::scripted();
    let plan = json!({
        "document": {
            "title": "Walks", "objective": "Keep a list of walks.", "success_criteria": ["it is there"],
            "requirements": [{ "id": "FR-1", "text": "Walks are listed.", "acceptance": "the script is there" }],
        },
        "tasks": [{
            "id": "T-001", "phase": "project", "action": "CREATE", "file": "walks.sh", "requirements": [{ "id": "FR-1" }],
            "validation": { "command": "test -s walks.sh", "expected": "exit 0" },
        }],
    });
    let mut chosen = plan.clone();
    chosen["built_with"] = json!("a shell script");
    let question =
        json!({ "type": "blocking", "text": "With what is it built?", "allowFreeText": true });
    let rules = [
        (json!("The answer: a shell script"), chosen),
        (
            json!("`built_with` does not say"),
            json!({ "question": question }),
        ),
        (json!([]), plan),
    ];
    let rules = rules.map(|(contains, input)| {
        let tool = json!({ "name": "specification", "input": input });
        let rule =
            json!({ "agent": "specification", "contains": contains, "reply": { "tools": [tool] } });
        format!("- {rule}\n")
    });
    world.write("../script.yaml", &rules.concat());
    let mut command = world.ropewalk(["spec", "generate", "--from", "-", "--json"]);
    let output = command.write_stdin(TEXT).assert().code(1);
    let asked: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(asked["text"], "With what is it built?", "{asked:#}");
    assert_eq!(world.json("spec list")[0]["state"], "draft");
    let id = asked["id"].as_str().unwrap();
    let answer = ["question", "answer", id, "a shell script"];
    world.ropewalk(answer).assert().success();
    assert_eq!(world.json("spec generate walks")["state"], "generated");
}

#[test]
fn what_verbs_answer_in_json_is_what_the_schemas_say() {
    let world = World::scripted();
    let mut command = world.ropewalk(["spec", "generate", "--from", "-", "--json"]);
    let made = command.write_stdin(TEXT).assert().success();
    let made: Value = serde_json::from_slice(&made.get_output().stdout).unwrap();
    let is_valid = |name: &str, answer: &Value| {
        let schema = world.json(&format!("schema {name}"));
        let found = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<String> = found
            .iter_errors(answer)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert_eq!(faults, [""; 0], "{name}: {answer:#}");
        found
    };
    let schema = is_valid("SpecificationView", &made);
    let mut broken = made;
    broken["state"] = json!("baked");
    assert!(
        !schema.is_valid(&broken),
        "a schema that takes everything says nothing"
    );
    is_valid("IdeaView", &world.json("idea show walks"));
    for (verb, name) in [
        ("idea list", "IdeaRow"),
        ("question list", "QuestionView"),
        ("event list", "TimelineEvent"),
        ("usage", "UsageRow"),
    ] {
        let rows = world.json(verb);
        assert!(!rows.as_array().unwrap().is_empty(), "{verb}");
        is_valid(name, &rows[0]);
    }
    // Every name that is listed has one, and no other.
    for name in world.json("schema").as_array().unwrap() {
        let schema = ropewalk_server::schema(name.as_str().unwrap());
        jsonschema::validator_for(&schema.unwrap()).unwrap();
    }
    let said = world.refused("schema Nothing", 1);
    assert!(said.contains("`ropewalk schema`"), "{said}");
}

#[test]
fn the_name_of_a_text_is_made_of_words_and_what_makes_none_is_refused_in_one_line() {
    let world = World::scripted();
    let mut command = world.ropewalk(["spec", "generate", "--from", "-", "--json", "My Walks"]);
    let output = command.write_stdin(TEXT).assert().success();
    let spec: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(spec["idea"], "my-walks");
    assert_eq!(world.json("idea show My_Walks")["slug"], "my-walks");
    for name in ["../walks", "wälks", "", "walks.md"] {
        let mut command = world.ropewalk(["spec", "generate", "--from", "-", name]);
        command.write_stdin(TEXT);
        let said = one_line(command, 3);
        assert!(said.contains("a-z 0-9 -"), "{name}: {said}");
    }
    assert_eq!(ideas(&world), 1);
}

#[test]
fn a_text_that_cannot_be_taken_is_refused_in_one_line_and_leaves_nothing() {
    let world = World::scripted();
    let huge = "walks ".repeat(900_000);
    for (input, named) in [
        ("", "it is empty"),
        (" \n\t", "it is empty"),
        (huge.as_str(), "more than 65536 bytes"),
        ("walks\0", "it is binary"),
    ] {
        let mut command = world.ropewalk(["spec", "generate", "--from", "-"]);
        command.write_stdin(input);
        refused(&world, command, 1, named);
    }
    let missing = world.ropewalk(["spec", "generate", "--from", "nowhere.md"]);
    refused(&world, missing, 1, "`nowhere.md`");
    assert_eq!(ideas(&world), 0);
}

#[test]
fn a_file_that_is_no_text_is_refused_in_one_line_and_leaves_nothing() {
    let world = World::scripted();
    let inside = |name: &str| world.repository().join(name);
    let huge = std::fs::File::create(inside("huge.md")).unwrap();
    huge.set_len(100 * 1024 * 1024).unwrap();
    std::fs::write(inside("binary.md"), b"\x7fELF\0\x01").unwrap();
    std::fs::write(inside("latin.md"), b"caf\xe9").unwrap();
    std::fs::create_dir(inside("folder")).unwrap();
    std::os::unix::fs::symlink("ring-b", inside("ring-a")).unwrap();
    std::os::unix::fs::symlink("ring-a", inside("ring-b")).unwrap();
    for (name, named) in [
        ("huge.md", "more than 65536 bytes"),
        ("binary.md", "it is binary"),
        ("latin.md", "not UTF-8"),
        ("folder", "directory"),
        ("ring-a", "symbolic links"),
    ] {
        let command = world.ropewalk(["spec", "generate", "--from", name]);
        refused(&world, command, 1, named);
    }
    assert_eq!(ideas(&world), 0);
}

#[test]
fn a_repository_without_a_commit_takes_no_text_and_nothing_is_left() {
    let world = World::scripted();
    world.git(&["update-ref", "-d", "HEAD"]);
    let mut command = world.ropewalk(["spec", "generate", "--from", "-"]);
    command.write_stdin(TEXT);
    refused(&world, command, 1, "git commit --allow-empty");
    assert_eq!(ideas(&world), 0);
}

#[test]
fn what_lies_in_a_repository_keeps_nobody_from_planning_on_it() {
    let world = World::scripted();
    let inside = |name: &str| world.repository().join(name);
    std::fs::write(inside("binary.bin"), [0, 159, 146, 150].repeat(1_000)).unwrap();
    let huge = std::fs::File::create(inside("huge.py")).unwrap();
    huge.set_len(100 * 1024 * 1024).unwrap();
    std::os::unix::fs::symlink("ring-b", inside("ring-a")).unwrap();
    std::os::unix::fs::symlink("ring-a", inside("ring-b")).unwrap();
    std::os::unix::fs::symlink(".", inside("here")).unwrap();
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=odd files"]);
    let mut command = world.ropewalk(["spec", "generate", "--from", "-", "--json"]);
    let output = command.write_stdin(TEXT).assert().success();
    let spec: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(spec["state"], "generated", "{spec:#}");
}

#[test]
fn who_has_nothing_to_add_ends_the_conversation_at_once() {
    let world = World::scripted();
    let opening =
        "I walk every day and always forget where I have been, so I want a list of my walks.";
    world
        .ropewalk(["idea", "new", "Walks", "--text", opening, "--kind", "tool"])
        .assert()
        .success();
    world.ropewalk(["idea", "done", "walks"]).assert().success();
    let idea = world.json("idea show walks");
    assert_eq!(idea["state"], "captured");
    assert_eq!(idea["kind"], "tool");
    assert_eq!(idea["conversation"]["phase"], "complete");
    let said = world.run("idea done walks");
    assert!(said.contains("complete already"), "{said}");
    let unknown = one_line(world.ropewalk(["idea", "done", "nothing"]), 1);
    assert!(unknown.contains("idea list"), "{unknown}");
    let specified = world.json("spec generate walks");
    assert_eq!(specified["state"], "generated");
    let said = world.json("idea done walks")["next"].to_string();
    let next = format!(
        "`ropewalk spec show {}` shows its specification, which waits for you",
        specified["id"].as_str().unwrap()
    );
    assert!(said.contains(&next), "{said}");
}

#[test]
fn a_text_that_no_model_can_be_asked_about_leaves_no_idea_behind() {
    let world = World::scripted();
    // The first time there is no state yet, the second time there is one.
    for _ in 0..2 {
        let mut command = world.ropewalk(["spec", "generate", "--from", "-"]);
        command.args(["--set", "models.spec=openai/gpt-5"]);
        command.write_stdin(TEXT);
        refused(&world, command, 4, "`OPENAI_API_KEY`");
        assert_eq!(ideas(&world), 0);
    }
}
