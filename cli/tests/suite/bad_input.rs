//! Bad input: one line that says what to do, the exit code, and nothing written.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command as Process, Stdio};

use ropewalk_schemas::question::QuestionKind;
use serde_json::Value;

use crate::questions::question;
use crate::world::{World, one_line, stand_in};

/// Asserts that `line` is refused with `code`, that every word of `wanted` is said, and that no file changed.
fn refused(world: &World, line: &str, code: i32, wanted: &[&str]) {
    let before = world.files();
    let said = world.refused(line, code);
    for wanted in wanted {
        assert!(said.contains(wanted), "{line}: {said}");
    }
    let after = world.files();
    let changed: Vec<_> = after
        .keys()
        .filter(|path| after.get(*path) != before.get(*path))
        .collect();
    assert!(
        changed.is_empty() && before.len() == after.len(),
        "{line} wrote {changed:?}"
    );
}

#[test]
fn mistakes_in_the_arguments_exit_with_3_and_write_nothing() {
    let world = World::scripted();
    let cases: &[(&str, &[&str])] = &[
        ("xyzzy", &["xyzzy", "ropewalk --help"]),
        ("build merge x", &["merge"]),
        ("agent builder", &["builder"]),
        ("up --colour red", &["--colour"]),
        ("up --bus kafka", &["kafka", "nats://host:port"]),
        ("up --store redis", &["redis", "sqlite"]),
        ("up --store postgres://h:port/d", &["port"]),
        ("idea show Not.A.Slug", &["Not.A.Slug", "a-z 0-9"]),
        ("idea chat ../../etc", &["a-z 0-9"]),
        ("spec approve 01a2008 --hash abc", &["16 digits"]),
        ("spec generate walks --complexity huge", &["simple"]),
        ("build retry 01a2008 T/1", &["T/1"]),
        ("event list --type no.such", &["alert.*"]),
        ("event list --limit -3", &["-3"]),
        (
            "build list --state Running",
            &["`Running`", "queued", "running"],
        ),
        ("idea list --state done", &["`done`", "captured"]),
        ("idea list --since yesterday", &["2026-11-21T08:00:00Z"]),
        ("event show first", &["position"]),
        ("dead-letter replay 12", &["12/build"]),
        ("knowledge add something --confidence 7", &["0 to 1"]),
        ("question answer", &["required"]),
        ("idea list --set nonsense", &["section.key=value"]),
    ];
    for (line, wanted) in cases {
        refused(&world, line, 3, wanted);
    }
}

#[test]
fn an_argument_that_is_no_text_is_a_usage_error() {
    let world = World::scripted();
    let mut command = world.ropewalk(["idea", "show"]);
    command.arg(OsStr::from_bytes(b"\xff\xfe"));
    one_line(command, 3);
}

#[test]
fn unknown_things_exit_with_1_and_name_the_list() {
    let world = World::scripted();
    world.run("idea list");
    let id = "0197a3c0-1111-7abc-8def-0123456789ab";
    let hash = "a".repeat(64);
    let cases = [
        ("idea show nowhere".to_owned(), "idea list"),
        ("idea chat nowhere".to_owned(), "idea list"),
        ("spec generate nowhere".to_owned(), "idea list"),
        ("spec list --idea nowhere".to_owned(), "idea list"),
        ("build list --idea nowhere".to_owned(), "idea list"),
        ("usage --idea nowhere".to_owned(), "idea list"),
        ("question list --idea nowhere".to_owned(), "idea list"),
        (format!("spec show {id}"), "spec list"),
        ("spec show nope".to_owned(), "spec list"),
        ("build show 0197".to_owned(), "build list"),
        (format!("spec approve {id} --hash {hash}"), "spec list"),
        (format!("spec revise {id} shorter"), "spec list"),
        (format!("build pause {id}"), "build list"),
        ("build show 0197a3".to_owned(), "build list"),
        (format!("build retry {id} T-001"), "build list"),
        (format!("question answer {id} yes"), "question list"),
        (format!("knowledge show {id}"), "knowledge search"),
        ("event show 4000".to_owned(), "event list"),
        (format!("event show {id}"), "event list"),
        ("dead-letter discard 3/build".to_owned(), "dead-letter list"),
    ];
    for (line, list) in cases {
        let said = world.refused(&line, 1);
        assert!(said.contains(list), "{line}: {said}");
    }
    let lists = [
        "idea list",
        "spec list",
        "build list",
        "build list --state running --until 2026-11-21T08:00:00Z",
        "idea list --state captured --since 2026-11-21T08:00:00Z",
        "question list",
        "event list",
    ];
    for list in lists {
        assert_eq!(world.json(list), Value::Array(Vec::new()), "{list}");
    }
}

#[test]
fn what_is_longer_than_is_taken_is_refused_and_changes_nothing() {
    let world = World::scripted();
    world.run("idea new Walks");
    let asked = question(1, QuestionKind::Blocking, false, false);
    world.commit(|changes| {
        changes.insert(&asked);
    });
    let verbs = ["idea show walks", "question list --all", "knowledge list"];
    let before = verbs.map(|verb| world.json(verb));
    let (id, long) = (asked.id, "x".repeat(8 * 1024 + 1));
    let longer = "x".repeat(32 * 1024 + 1);
    let topics = "--topic gaps ".repeat(21);
    for (line, told) in [
        (
            format!("idea abandon walks --yes --reason {long}"),
            "the reason has 8193 bytes, and 8192 is the most; say it in fewer words",
        ),
        (
            format!("question answer {id} {longer}"),
            "the answer has 32769 bytes, and 32768 is the most; say it in fewer words",
        ),
        (
            format!("knowledge add Mind the gap {topics}"),
            "there are 21 topics; 20 is the most; leave out those that say least",
        ),
    ] {
        let said = world.refused(&line, 1);
        assert!(said.contains(told), "{said}");
    }
    assert_eq!(verbs.map(|verb| world.json(verb)), before);
}

#[test]
fn a_missing_key_exits_with_4_and_names_its_variable() {
    let world = World::bare_of_project();
    world.write(
        "ropewalk.toml",
        "[project]\nname = \"walks\"\nrepo = \".\"\nstate = \"../state\"\n",
    );
    for line in ["up", "idea chat walks", "spec generate walks"] {
        refused(&world, line, 4, &["`ANTHROPIC_API_KEY`"]);
    }
    let other = "up --set models.chat=openai/gpt-5";
    refused(&world, other, 4, &["`OPENAI_API_KEY`"]);
}

#[test]
fn a_broken_configuration_names_file_and_key() {
    let cases: &[(&str, &[&str])] = &[
        ("[project\n", &["ropewalk.toml:1", "TOML"]),
        ("[build]\nloop = 2\n", &["ropewalk.toml:2", "loop"]),
        ("[bulid]\nloops = 2\n", &["bulid"]),
        (
            "[build]\nloops = \"two\"\n",
            &["ropewalk.toml:2", "`build.loops`"],
        ),
        ("[build]\nloops = 0\n", &["`build.loops`", "at least 1"]),
        (
            "[bus]\ntransport = \"kafka\"\n",
            &["`bus.transport`", "nats://host:port"],
        ),
        ("[build]\nloops = 1\nloops = 2\n", &["ropewalk.toml:3"]),
        (
            "[build]\nlease_seconds = 0\n",
            &["`build.lease_seconds`", "at least 1"],
        ),
        (
            "[build]\nlease_seconds = \"60s\"\n",
            &["ropewalk.toml:2", "`build.lease_seconds`"],
        ),
        (
            "[server]\naddress = \"here\"\n",
            &["ropewalk.toml:2", "`server.address`"],
        ),
    ];
    for (text, wanted) in cases {
        let world = World::scripted();
        world.write("ropewalk.toml", text);
        for line in ["config check", "idea list", "up"] {
            refused(&world, line, 1, wanted);
        }
    }
}

#[test]
fn a_script_that_is_missing_or_broken_is_named() {
    let world = World::scripted();
    refused(
        &world,
        "up --set providers.script.script=../nowhere.yaml",
        1,
        &["nowhere.yaml"],
    );
    world.write("../script.yaml", "- reply: {}\n");
    refused(&world, "up", 1, &["script.yaml", "rule 1"]);
}

#[test]
fn a_file_that_no_recording_wrote_is_named_with_its_line() {
    let world = World::scripted();
    world.write_untrusted("../cassette", "nothing of the kind\n");
    let said = world.refused("up --replay ../cassette", 1);
    let expected = "cassette` is no exchange that `--record` wrote: it is no JSON";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_place_that_cannot_be_used_is_refused() {
    let world = World::scripted();
    world.write("../file", "a file");
    refused(&world, "-C nowhere idea list", 1, &["nowhere"]);
    refused(&world, "-C ../file idea list", 1, &["is a file"]);
    refused(
        &world,
        "idea list --set project.state=../file",
        1,
        &["../file".trim_start_matches("../")],
    );
    refused(
        &world,
        "idea list --set project.state=/proc/nowhere",
        1,
        &["/proc/nowhere"],
    );
    refused(
        &world,
        "idea list --set project.state=inside",
        1,
        &["working tree"],
    );
    std::fs::create_dir_all(world.state().join("ropewalk.db")).unwrap();
    refused(&world, "idea list", 1, &["is not a file"]);
}

#[test]
fn a_directory_without_a_project_says_to_make_one() {
    let world = World::bare_of_project();
    for line in ["idea list", "up", "config check"] {
        refused(&world, line, 1, &["`ropewalk init`"]);
    }
}

/// The path to it leads through a project that is not above it.
#[test]
fn a_directory_beside_a_project_is_not_in_it() {
    let world = World::scripted();
    std::fs::create_dir(world.root().join("beside")).unwrap();
    for line in ["idea new habits", "up", "config check"] {
        refused(
            &world,
            &format!("-C ../beside {line}"),
            1,
            &["`ropewalk init`"],
        );
    }
    assert_eq!(world.json("idea list").as_array().unwrap().len(), 0);
}

#[test]
fn a_machine_without_git_is_told_to_get_it() {
    let world = World::bare_of_project();
    let mut command = world.ropewalk(["init"]);
    command.env("PATH", world.home());
    let said = one_line(command, 1);
    assert!(said.contains("install git"), "{said}");
    assert!(!world.repository().join("ropewalk.toml").exists());
}

#[test]
fn a_read_only_repository_gets_no_project() {
    let world = World::bare_of_project();
    let repository = world.repository();
    let open = |mode| std::fs::Permissions::from_mode(mode);
    for path in [world.root(), &world.home()] {
        std::fs::set_permissions(path, open(0o777)).unwrap();
    }
    std::fs::set_permissions(&repository, open(0o555)).unwrap();
    let mut command = Process::new(env!("CARGO_BIN_EXE_ropewalk"));
    command
        .arg("init")
        .current_dir(&repository)
        .env("HOME", world.home());
    if nix::unistd::geteuid().is_root() {
        // Nothing is read-only for root.
        use std::os::unix::process::CommandExt;
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    std::fs::set_permissions(&repository, open(0o755)).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("app") && said.contains("writable"), "{said}");
    assert_eq!(std::fs::read_dir(world.home()).unwrap().count(), 0);
}

#[test]
fn a_broker_that_does_not_answer_is_named() {
    let world = World::scripted();
    let said = world.refused("up --bus nats://127.0.0.1:1", 1);
    assert!(said.contains("nats://127.0.0.1:1"), "{said}");
    // Nothing holds the state afterwards.
    world.run("idea list");
}

#[test]
fn a_rehearsal_that_cannot_start_leaves_nothing() {
    let world = World::bare_of_project();
    let before = world.files();
    let tools = world.root().join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    link(&tools, "git");
    let works = Some("echo cargo 1.90.0");
    let no_toolchain = Some("echo 'error: no toolchain' >&2; exit 1");
    for (cargo, line, wanted) in [
        (works, "--dir ../r --bus nats://127.0.0.1:1", "127.0.0.1:1"),
        (works, "--dir ../r --bus nats", "nats-server"),
        (
            works,
            "--dir ../r --store postgres://nobody@127.0.0.1:1/d",
            "127.0.0.1:1",
        ),
        (None, "--dir ../r", "install Rust"),
        (no_toolchain, "--dir ../r", "fails (error: no toolchain)"),
        (no_toolchain, "--dir ../r --watch", "mend what it says"),
    ] {
        drop(std::fs::remove_file(tools.join("cargo")));
        if let Some(does) = cargo {
            stand_in(&tools, "cargo", does);
        }
        let mut command = world.ropewalk(["rehearse"]);
        command.args(line.split(' ')).env("PATH", &tools);
        let said = one_line(command, 1);
        assert!(said.contains(wanted), "{line}: {said}");
        assert!(!world.root().join("r").exists(), "{line}");
    }
    stand_in(&tools, "cargo", "exit 0");
    let mut command = world.ropewalk(["rehearse"]);
    command.env("PATH", &tools).env("TMPDIR", "/proc/nowhere");
    let said = one_line(command, 1);
    assert!(
        said.contains("`TMPDIR`") && said.contains("`--dir`"),
        "{said}"
    );
    std::fs::remove_dir_all(&tools).unwrap();
    assert_eq!(before.len(), world.files().len());
}

/// Puts a program of this machine into `tools`.
fn link(tools: &std::path::Path, program: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .unwrap();
    drop(std::fs::remove_file(tools.join(program)));
    std::os::unix::fs::symlink(found, tools.join(program)).unwrap();
}

#[test]
fn no_home_and_no_state_directory_is_told_apart() {
    let world = World::bare_of_project();
    world.write(
        "ropewalk.toml",
        "[project]\nname = \"walks\"\nrepo = \".\"\n",
    );
    let mut command = world.ropewalk(["idea", "list"]);
    command.env_remove("HOME");
    let said = one_line(command, 1);
    assert!(said.contains("project.state"), "{said}");
}

#[test]
fn errors_are_objects_where_json_was_asked_for() {
    let world = World::scripted();
    for (line, code, word) in [
        ("idea show nowhere --json", 1, "unknown-id"),
        ("--json frobnicate", 3, "usage"),
        ("up --json --set models.chat=openai/x", 4, "credentials"),
    ] {
        let output = world.ropewalk(line.split_whitespace()).assert().code(code);
        let error: Value = serde_json::from_slice(&output.get_output().stderr).unwrap();
        assert_eq!(error["code"], word, "{error}");
        assert!(
            error["message"].is_string() && error["next"].is_string(),
            "{error}"
        );
    }
}

#[test]
fn a_reader_that_has_heard_enough_is_no_error() {
    let world = World::scripted();
    let mut child = Process::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(["config", "show"])
        .env_clear()
        .envs(world.environment())
        .current_dir(world.repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stderr, b"");
}
