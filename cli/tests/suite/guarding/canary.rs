//! A key of the program, followed everywhere: a person and a model say it, a command prints it and writes it into a file.

use std::process::{Command as Process, Stdio};

use super::secrets::holding;
use crate::approvals::{documented, text, until};
use crate::world::{World, one_task};

const CANARY: &str = "sk-canary-7f3e9a1c55d0";
/// A password in an address, as the address has it and as it is.
const ADDRESS: &str = "https://ada:c4nary%2Fof%2Faddresses@host.test/x";
const PASSWORD: &str = "c4nary/of/addresses";
/// A key of several lines, each of which is as good as a part of it.
const FRAMED: &str = "-----BEGIN WALKS KEY-----\nMIIcanaryOfTheFirstLine0\nMIIcanaryOfTheSecondLine1\n-----END WALKS KEY-----";
const LINES: [&str; 2] = ["MIIcanaryOfTheFirstLine0", "MIIcanaryOfTheSecondLine1"];
/// What addresses in a file of the configuration hold: a password, a key, and what leads to a hook.
const IN_FILE: [&str; 3] = [
    "f1le-canary-of-a-provider",
    "f1le-canary-of-a-parameter",
    "f1le-canary-that-leads-to-a-hook",
];
const FILE: &str = r#"
[providers.other]
kind = "openai"
base_url = "https://ada:f1le-canary-of-a-provider@host.test/v1?api_key=f1le-canary-of-a-parameter"

[notices]
batch_minutes = 0
webhook_url = "http://127.0.0.1:9/hooks/f1le-canary-that-leads-to-a-hook"
"#;
/// All that may be nowhere, also as base64 writes it at each of three beginnings.
const NOWHERE: [&str; 11] = [
    IN_FILE[0],
    IN_FILE[1],
    IN_FILE[2],
    LINES[0],
    LINES[1],
    CANARY,
    PASSWORD,
    "c4nary%2Fof%2Faddresses",
    "Y2FuYXJ5LTdmM2U5YTFjNT",
    "NhbmFyeS03ZjNlOWExYzU1",
    "jYW5hcnktN2YzZTlhMWM1N",
];

/// Prints, encodes and hides it where it would be committed, and shows it by lines and in what was changed; a model that is
/// told it breaks off.
const RULES: &str = r#"
- contains: "CANARY"
  reply: { error: { kind: "refused", message: "a prompt holds it" } }
- contains: "f1le-canary"
  reply: { error: { kind: "refused", message: "a prompt holds one of a file" } }
- contains: "MIIcanary"
  reply: { error: { kind: "refused", message: "a prompt holds a line of one" } }
- agent: "ideation"
  reply:
    text: "You said CANARY."
    tools:
      - name: "reply"
        input:
          text: "Noted: CANARY and PASSWORD and FILED."
          artifacts:
            - { kind: "target-user", summary: "CANARY", content: "Whoever knows CANARY walks.", confidence: 0.8 }
          decisions: []
          risks: []
          confidence: 0.4
- agent: "build"
  attempt: 1
  turn: 1
  reply: { tools: [{ name: "bash", input: {
    command: "echo $PASSED; printf %s $PASSED | base64; echo $ELSEWHERE; echo key=$PASSED > a.txt; echo \"$FRAMED\" >> a.txt; echo $PASSED >> $PASSED.log; echo CANARY; echo FILED | tee b.txt" } }] }
- agent: "build"
  attempt: 1
  turn: 2
  reply: { tools: [
    { name: "read", input: { path: "a.txt" } },
    { name: "write", input: { path: "a.txt", content: "key=CANARY\n" } } ] }
- agent: "build"
  attempt: 1
  reply: { tools: [{ name: "finish", input: { summary: "Used CANARY and FILED." } }] }
- agent: "build"
  attempt: 2
  turn: 1
  reply: { tools: [{ name: "write", input: { path: "a.txt", content: "a walk\n" } }] }
- agent: "build"
  attempt: 2
  turn: 2
  reply: { tools: [{ name: "bash", input: { command: "rm *.log b.txt" } }] }
"#;

fn variables() -> [(&'static str, &'static str); 7] {
    [
        ("ANTHROPIC_API_KEY", CANARY),
        ("SIGNING_KEY", FRAMED),
        ("REMOTE", ADDRESS),
        ("PASSED", CANARY),
        ("ELSEWHERE", PASSWORD),
        ("FRAMED", FRAMED),
        (
            "ROPEWALK_SANDBOX__VARIABLES",
            "[\"PASSED\", \"ELSEWHERE\", \"FRAMED\"]",
        ),
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
        .replace("PASSWORD", PASSWORD)
        .replace("FILED", &IN_FILE.join(" "));
    let apart = tempfile::tempdir().unwrap();
    std::fs::remove_file(world.root().join("script.yaml")).unwrap();
    let settings = world.home().join(".config/ropewalk");
    std::fs::create_dir_all(&settings).unwrap();
    let apart_from_it = [
        (world.root().join("script.yaml"), script.as_str()),
        (settings.join("config.toml"), FILE),
    ];
    for (place, text) in &apart_from_it {
        let lies = apart.path().join(place.file_name().unwrap());
        std::fs::write(&lies, text).unwrap();
        std::os::unix::fs::symlink(lies, place).unwrap();
    }
    let mut heard = said(world.ropewalk(["idea", "new", "Talks", "--slug", "talks"]));
    let mut chat = world.ropewalk(["idea", "chat", "talks"]);
    chat.write_stdin(format!(
        "My key is {CANARY}, my password {PASSWORD}; {}.\n",
        IN_FILE.join(" ")
    ));
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
    let undelivered = world.json("notice list");
    assert!(undelivered.to_string().contains("webhook"), "{undelivered}");
    for (place, _) in &apart_from_it {
        std::fs::remove_file(place).unwrap();
    }
    assert_eq!(holding(world.root(), &NOWHERE), [""; 0]);
    for repository in [world.repository(), world.state().join("repository.git")] {
        heard.push_str(&objects(&repository));
    }
    heard.push_str(&undelivered.to_string());
    assert!(heard.contains("a walk\n"));
    for word in NOWHERE {
        assert!(!heard.contains(word), "{word}: {heard}");
    }
}

#[test]
fn what_a_file_logs_in_with_is_in_no_answer_also_where_it_cannot_be_read() {
    let login = IN_FILE[0];
    for (section, address) in [
        (
            "[store]\nlocation",
            format!("postgres://ada:{login}@127.0.0.1:1/walks"),
        ),
        (
            "[store]\nlocation",
            format!("postgres://127.0.0.1:1/walks?user=ada&password={login}"),
        ),
        (
            "[store]\nlocation",
            format!("postgress://ada:{login}@127.0.0.1:1/walks"),
        ),
        (
            "[bus]\ntransport",
            format!("nats://ada:{login}@127.0.0.1:1"),
        ),
        ("[bus]\ntransport", format!("nat://ada:{login}@127.0.0.1:1")),
        (
            "[notices]\nwebhook_url",
            format!("http://ada:{login}@127.0.0.1:99999/x"),
        ),
    ] {
        let world = World::scripted();
        let project = world.repository().join("ropewalk.toml");
        let before = std::fs::read_to_string(project).unwrap();
        world.write(
            "ropewalk.toml",
            &format!("{before}\n{section} = \"{address}\"\n"),
        );
        let mut said = String::new();
        for verb in [
            &["config", "show"][..],
            &["doctor"],
            &["idea", "list"],
            &["trust"],
        ] {
            let output = world.ropewalk(verb.iter().copied()).output().unwrap();
            said.push_str(&String::from_utf8_lossy(&output.stdout));
            said.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        assert!(said.contains("127.0.0.1"), "{address}: {said}");
        assert!(!said.contains(login), "{address}: {said}");
    }
}
