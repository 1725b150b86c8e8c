//! What would steer a terminal is shown and not obeyed, whoever wrote it and wherever it is shown.

use assert_cmd::Command;

use crate::approvals::{specified, text, until};
use crate::world::{World, one_task};

/// A title for the terminal, letters from the right, letters that are not there, and a way back over the line.
const MARKS: &str = "Walks \u{1b}]0;mine\u{7} \u{202e}txt.exe \u{200b}x\ry";
const SHOWN: &str = "Walks ␛]0;mine␇ <U+202E>txt.exe <U+200B>x";
const OBEYED: [char; 6] = ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{200b}', '\r'];

/// The same in YAML, for what models say.
const IN_YAML: &str = r"Walks \u001b]0;mine\u0007 \u202etxt.exe \u200bx\ry";

const SPOKEN: &str = r#"
- agent: "ideation"
  reply:
    text: "MARKS"
    tools:
      - name: "reply"
        input: { text: "MARKS", artifacts: [], decisions: [{ summary: "MARKS" }], risks: [], confidence: 0.4 }
"#;

/// Returns all that a command writes, and makes sure that a terminal has nothing to obey.
fn shown(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(!said.contains(OBEYED), "{command:?}: {said:?}");
    said
}

fn show(world: &World, line: &str) -> String {
    shown(&mut world.ropewalk(line.split_whitespace()))
}

#[test]
fn marks_of_people_and_models_are_shown_and_json_gives_them_back() {
    let world = World::scripted();
    world.write("../script.yaml", &SPOKEN.replace("MARKS", IN_YAML));
    let mut begin = world.ropewalk(["idea", "new", MARKS, "--slug", "walks", "--text", MARKS]);
    shown(&mut begin);
    let mut chat = world.ropewalk(["idea", "chat", "walks"]);
    let said = shown(chat.write_stdin("more\n"));
    assert!(said.contains("␛]0;mine␇ <U+202E>txt.exe"), "{said}");
    for line in ["idea list", "idea show walks", "event list"] {
        assert!(show(&world, line).contains("<U+202E>txt.exe"), "{line}");
    }
    assert!(show(&world, "idea list").contains(SHOWN));
    let listed = show(&world, "idea list --json");
    assert!(listed.contains("\\u202etxt.exe \\u200bx"), "{listed}");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["title"], MARKS);
    show(&world, "event list --json");
}

#[test]
fn marks_in_lessons_names_of_files_and_errors_are_shown() {
    let world = World::scripted();
    let mut add = world.ropewalk(["knowledge", "add", MARKS, "--file", "src/\u{202e}x.rs"]);
    shown(&mut add);
    assert!(show(&world, "knowledge search walks").contains("<U+202E>txt.exe"));
    for arguments in [
        ["idea", "show", MARKS],
        ["event", "show", MARKS],
        ["config", MARKS, "--json"],
        ["doctor", "--set", MARKS],
        ["doctor", "-C", MARKS],
    ] {
        let said = shown(&mut world.ropewalk(arguments));
        assert!(said.contains("txt.exe"), "{arguments:?}: {said}");
    }
}

#[test]
fn marks_in_what_is_built_are_in_no_answer_no_log_and_no_commit() {
    let world = World::scripted();
    let script = one_task("test -s a.txt")
        .replace("Wrote the list.", IN_YAML)
        .replace("a.txt", "a\\u202eexe.txt");
    world.write("../script.yaml", &script);
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    assert!(show(&world, &format!("spec show {id}")).contains("a<U+202E>exe.txt"));
    let up = world.up();
    world.run(&format!("spec approve {id} --hash {hash}"));
    let builds = until(&world, "build list", |builds| {
        ["succeeded", "failed"].contains(&builds[0]["state"].as_str().unwrap_or_default())
    });
    drop(up);
    assert_eq!(builds[0]["state"], "succeeded", "{builds}");
    let build = text(&builds[0]["id"]).to_owned();
    for line in ["show", "log", "trace"] {
        show(&world, &format!("build {line} {build}"));
    }
    let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    assert!(!log.contains(OBEYED), "{log:?}");
    let commits = world.git(&["log", "--all", "--format=%B"]);
    assert!(
        commits.contains("T-001: create a<U+202E>exe.txt"),
        "{commits}"
    );
    assert!(!commits.contains(OBEYED), "{commits:?}");
}
