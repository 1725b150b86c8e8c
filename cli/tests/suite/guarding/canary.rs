//! A key of the program, followed everywhere: a person and a model say it, a command prints it and writes it into a file.

use std::process::{Command as Process, Stdio};

use super::secrets::holding;
use crate::approvals::{documented, text, until};
use crate::world::{World, one_task};

const CANARY: &str = "sk-canary-7f3e9a1c55d0";
/// A password in an address, as the address has it and as it is.
const ADDRESS: &str = "https://ada:c4nary%2Fof%2Faddresses@host.test/x";
const PASSWORD: &str = "c4nary/of/addresses";
/// All that may be nowhere, also as base64 writes it at each of three beginnings.
const NOWHERE: [&str; 6] = [
    CANARY,
    PASSWORD,
    "c4nary%2Fof%2Faddresses",
    "Y2FuYXJ5LTdmM2U5YTFjNT",
    "NhbmFyeS03ZjNlOWExYzU1",
    "jYW5hcnktN2YzZTlhMWM1N",
];

/// Prints, encodes and hides it where it would be committed; a model that is told it breaks off.
const RULES: &str = r#"
- contains: "CANARY"
  reply: { error: { kind: "refused", message: "a prompt holds it" } }
- agent: "ideation"
  reply:
    text: "You said CANARY."
    tools:
      - name: "reply"
        input:
          text: "Noted: CANARY and PASSWORD."
          artifacts:
            - { kind: "target-user", summary: "CANARY", content: "Whoever knows CANARY walks.", confidence: 0.8 }
          decisions: []
          risks: []
          confidence: 0.4
- agent: "build"
  attempt: 1
  turn: 1
  reply: { tools: [{ name: "bash", input: {
    command: "echo $PASSED; printf %s $PASSED | base64; echo $ELSEWHERE; echo key=$PASSED > a.txt; echo $PASSED >> $PASSED.log; echo CANARY" } }] }
- agent: "build"
  attempt: 1
  turn: 2
  reply: { tools: [{ name: "read", input: { path: "a.txt" } }] }
- agent: "build"
  attempt: 1
  reply: { tools: [{ name: "finish", input: { summary: "Used CANARY." } }] }
- agent: "build"
  attempt: 2
  turn: 1
  reply: { tools: [{ name: "write", input: { path: "a.txt", content: "a walk\n" } }] }
- agent: "build"
  attempt: 2
  turn: 2
  reply: { tools: [{ name: "bash", input: { command: "rm *.log" } }] }
"#;

fn variables() -> [(&'static str, &'static str); 5] {
    [
        ("ANTHROPIC_API_KEY", CANARY),
        ("REMOTE", ADDRESS),
        ("PASSED", CANARY),
        ("ELSEWHERE", PASSWORD),
        ("ROPEWALK_SANDBOX__VARIABLES", "[\"PASSED\", \"ELSEWHERE\"]"),
    ]
}

/// Returns every object of a repository, as it is when nothing is compressed.
fn objects(repository: &std::path::Path) -> String {
    let mut git = Process::new("git");
    git.args(["cat-file", "--batch", "--batch-all-objects", "--unordered"]);
    let output = git.current_dir(repository).stdin(Stdio::null()).output();
    let output = output.unwrap();
    assert!(
        output.status.success() && !output.stdout.is_empty(),
        "{output:?}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn said(mut command: assert_cmd::Command) -> String {
    let output = command.envs(variables()).assert().success();
    let output = output.get_output();
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(said).unwrap()
}

#[test]
fn a_secret_is_in_no_row_event_prompt_commit_log_or_answer() {
    let world = World::scripted();
    let script = format!("{RULES}{}", one_task("test -s a.txt"));
    let script = script
        .replace("CANARY", CANARY)
        .replace("PASSWORD", PASSWORD);
    let apart = tempfile::tempdir().unwrap();
    std::fs::write(apart.path().join("script.yaml"), script).unwrap();
    std::fs::remove_file(world.root().join("script.yaml")).unwrap();
    std::os::unix::fs::symlink(
        apart.path().join("script.yaml"),
        world.root().join("script.yaml"),
    )
    .unwrap();
    let mut heard = said(world.ropewalk(["idea", "new", "Talks", "--slug", "talks"]));
    let mut chat = world.ropewalk(["idea", "chat", "talks"]);
    chat.write_stdin(format!("My key is {CANARY}, my password {PASSWORD}.\n"));
    heard.push_str(&said(chat));
    assert!(heard.contains("[secret]"), "{heard}");
    documented(&world, "walks");
    let spec = world.json("spec generate walks --complexity simple");
    let up = world.up_with(&variables());
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    world.run(&format!("spec approve {id} --hash {hash}"));
    let builds = until(&world, "build list", |builds| {
        ["succeeded", "failed"].contains(&builds[0]["state"].as_str().unwrap_or_default())
    });
    assert_eq!(builds[0]["state"], "succeeded", "{builds}");
    drop(up);
    assert_ne!(holding(&world.state(), &["SECRET_FOUND"]), [""; 0]);
    std::fs::remove_file(world.root().join("script.yaml")).unwrap();
    assert_eq!(holding(world.root(), &NOWHERE), [""; 0]);
    for repository in [world.repository(), world.state().join("repository.git")] {
        heard.push_str(&objects(&repository));
    }
    assert!(heard.contains("a walk\n"));
    for word in NOWHERE {
        assert!(!heard.contains(word), "{word}: {heard}");
    }
}
