//! Runs the binary where commands can be confined, and where they cannot.

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use assert_cmd::Command;
use ropewalk_tests::namespaces;
use serde_json::Value;

use super::secrets::holding;
use crate::approvals::{documented, specified, text, until};
use crate::world::{World, one_line, one_task};

const PROJECT: &str = "[project]\nname = \"walks\"\nrepo = \".\"\nstate = \"../state\"\n";
/// Becomes root of users of its own, lets nobody make any more namespaces, and goes on.
const DENIED: &str = "for kind in user mnt pid net; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$@\"";

/// Describes the program where namespaces are denied.
fn denied(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", DENIED, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_ropewalk")).args(arguments);
    command.env_clear().envs(world.environment());
    command.current_dir(world.repository());
    command
}

fn sandbox_of(findings: &[u8]) -> (String, String) {
    told(findings, "sandbox")
}

/// Returns the verdict on the sandbox and its level; some kernels lack what the detail then names beside it.
fn level_of(findings: &[u8]) -> (String, String) {
    let (verdict, detail) = sandbox_of(findings);
    let level = detail.strip_suffix(", without landlock").unwrap_or(&detail);
    (verdict, level.to_owned())
}

fn told(findings: &[u8], check: &str) -> (String, String) {
    let findings: Value = serde_json::from_slice(findings).unwrap();
    let rows = findings.as_array().unwrap();
    let found = rows.iter().find(|row| row["check"] == check).unwrap();
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    (text("verdict"), text("detail"))
}

#[test]
fn the_doctor_names_the_level_in_force() {
    let world = World::scripted();
    let mut doctor = world.ropewalk(["doctor", "--json"]);
    let findings = doctor.assert().get_output().stdout.clone();
    let (verdict, level) = level_of(&findings);
    assert_eq!(verdict, "ok", "{level}");
    assert_eq!(level, "bubblewrap");
    // What bounds memory and processes: a group, where this machine lets one be made.
    let (verdict, limits) = told(&findings, "limits");
    assert_eq!(verdict, "ok", "{limits}");
    let group = Path::new("/sys/fs/cgroup/memory/cgroup.procs");
    let is_v1 = std::fs::OpenOptions::new().write(true).open(group).is_ok();
    assert!(!is_v1 || limits == "cgroup v1", "{limits}");
    // With bubblewrap off the PATH.
    let programs = world.root().join("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in ["sh", "git"] {
        let found = Process::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .output()
            .unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        symlink(found.trim(), programs.join(name)).unwrap();
    }
    let mut doctor = world.ropewalk(["doctor", "--json"]);
    let output = doctor
        .env("PATH", format!("{}", programs.display()))
        .assert();
    assert_eq!(
        level_of(&output.get_output().stdout),
        ("ok".to_owned(), "namespaces".to_owned())
    );
}

#[test]
fn a_rehearsal_passes_where_nothing_confines() {
    let world = World::bare_of_project();
    let place = world.root().join("rehearsal");
    let arguments = ["rehearse", "--json", "--dir", place.to_str().unwrap()];
    let mut rehearsal = denied(&world, &arguments);
    // Its checks compile, with the tools of whoever runs the tests.
    let home = std::env::var_os("HOME").unwrap();
    for (name, below) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        let set = std::env::var_os(name).map(PathBuf::from);
        rehearsal.env(name, set.unwrap_or_else(|| Path::new(&home).join(below)));
    }
    let output = rehearsal.assert().success();
    let output = output.get_output();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], true, "{report}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said.matches("they run with your rights").count(),
        1,
        "{said}"
    );
}

#[test]
fn where_nothing_confines_only_scripted_models_run() {
    let world = World::scripted();
    let output = denied(&world, &["doctor", "--json"]).assert();
    let (verdict, detail) = sandbox_of(&output.get_output().stdout);
    assert_eq!(verdict, "warn");
    assert!(detail.contains("only scripted models"), "{detail}");
    assert!(detail.contains("install bubblewrap"), "{detail}");

    let world = World::bare_of_project();
    world.write("ropewalk.toml", PROJECT);
    let mut up = denied(&world, &["up"]);
    up.env("ANTHROPIC_API_KEY", "canary");
    let said = one_line(up, 1);
    for wanted in [
        "no sandbox works here",
        "install bubblewrap",
        "sandbox = \"off\"",
    ] {
        assert!(said.contains(wanted), "{said}");
    }
    assert!(!said.contains("canary"), "{said}");
    assert!(!world.state().exists());
}

#[test]
fn without_a_path_commands_are_confined_all_the_same() {
    for (sandbox, escapes) in [("off", true), ("required", false)] {
        let world = World::scripted();
        let escaped = world.root().join("escaped");
        let check = format!(
            "{{ echo x > {}; }} 2>/dev/null; test -s a.txt",
            escaped.display()
        );
        world.write("../script.yaml", &one_task(&check));
        documented(&world, "walks");
        let verb = ["spec", "generate", "walks", "--complexity", "simple"];
        let mut verb = world.ropewalk(verb);
        verb.env_remove("PATH").env("ROPEWALK_SANDBOX", sandbox);
        let output = verb.output().unwrap();
        assert_eq!(escaped.exists(), escapes, "sandbox: {sandbox}: {output:?}");
    }
}

/// Lays an empty directory over `/opt`, for this process alone.
fn cover_opt() {
    let mut mount = Process::new("mount");
    let mounted = mount.args(["-t", "tmpfs", "none", "/opt"]).status();
    assert!(mounted.unwrap().success());
}

/// Says whether what only the person may see comes out where a check shows `files`, with the sandbox so.
fn shows(world: &World, sandbox: &str, files: &[PathBuf]) -> bool {
    assert!(world.repository().starts_with("/opt"));
    // They are hidden for what they are, whoever may read them.
    for place in [world.root(), world.repository().as_ref()] {
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place, open).unwrap();
    }
    let mut check = "cat".to_owned();
    for file in files {
        std::fs::write(file, "of-the-person-alone\n").unwrap();
        check.push(' ');
        check.push_str(&file.display().to_string());
    }
    world.write("../script.yaml", &one_task(&format!("{check}; false")));
    let spec = specified(world);
    let up = world.up_with(&[("ROPEWALK_SANDBOX", sandbox)]);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    world.run(&format!("spec approve {id} --hash {hash}"));
    until(world, "question list", |asked| asked[0]["id"].is_string());
    drop(up);
    !holding(&world.state(), &["of-the-person-alone"]).is_empty()
}

#[test]
fn the_checkout_of_a_person_is_not_shown_where_it_lies_among_programs() {
    if !namespaces::are_own() {
        let name = "guarding::confined::the_checkout_of_a_person_is_not_shown_where_it_lies_among_programs";
        return namespaces::run(name, &[("TMPDIR", OsStr::new("/opt"))]).unwrap();
    }
    cover_opt();
    for (sandbox, is_shown) in [("off", true), ("required", false)] {
        let world = World::scripted();
        let files = [world.repository().join(".env")];
        let shown = shows(&world, sandbox, &files);
        assert_eq!(shown, is_shown, "sandbox: {sandbox}");
    }
}

/// Makes the checkout of a world a linked worktree of a repository beside it; returns the git directories of both.
fn link(world: &World) -> [PathBuf; 2] {
    let (linked, main) = (world.repository(), world.root().join("main"));
    let settings = std::fs::read_to_string(linked.join("ropewalk.toml")).unwrap();
    world.git(&["checkout", "--quiet", "--detach"]);
    std::fs::rename(&linked, &main).unwrap();
    let mut add = Process::new("git");
    add.args(["worktree", "add", "--quiet"])
        .arg(&linked)
        .arg("main");
    assert!(add.current_dir(&main).status().unwrap().success());
    world.write("ropewalk.toml", &settings);
    let shared = main.join(".git");
    [shared.join("worktrees/app"), shared]
}

#[test]
fn the_repository_of_a_linked_worktree_is_not_shown_where_it_lies_among_programs() {
    if !namespaces::are_own() {
        let name = "guarding::confined::the_repository_of_a_linked_worktree_is_not_shown_where_it_lies_among_programs";
        return namespaces::run(name, &[("TMPDIR", OsStr::new("/opt"))]).unwrap();
    }
    cover_opt();
    for (sandbox, is_shown) in [("off", true), ("required", false)] {
        let world = World::scripted();
        let [own, shared] = link(&world);
        let main = shared.with_file_name(".env");
        let files = [own.join("canary"), shared.join("canary"), main];
        let shown = shows(&world, sandbox, &files);
        assert_eq!(shown, is_shown, "sandbox: {sandbox}");
    }
}

#[test]
fn where_not_all_was_looked_at_for_private_files_the_doctor_and_a_start_say_so() {
    if !namespaces::are_own() {
        let name = "guarding::confined::where_not_all_was_looked_at_for_private_files_the_doctor_and_a_start_say_so";
        return namespaces::run(name, &[]).unwrap();
    }
    cover_opt();
    for number in 0..17_000 {
        std::fs::create_dir(format!("/opt/{number}")).unwrap();
    }
    let world = World::scripted();
    let mut doctor = world.ropewalk(["doctor", "--json"]);
    let (verdict, detail) = told(&doctor.assert().get_output().stdout, "private files");
    assert_eq!(verdict, "warn");
    for wanted in [
        "commands may read private files in `/opt` and ",
        "nothing is looked at behind 16384 entries; keep such files elsewhere",
    ] {
        assert!(detail.contains(wanted), "{detail}");
    }
    let mut doctor = world.ropewalk(["doctor"]);
    let said = doctor.assert().get_output().stdout.clone();
    assert!(String::from_utf8_lossy(&said).contains(&detail));
    drop(world.up());
    let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    assert!(log.contains(&detail), "{log}");
}

#[test]
fn commands_get_the_variables_that_are_named_and_no_others() {
    let world = World::scripted();
    let check = "echo named=$NAMED other=$OTHER; false";
    world.write("../script.yaml", &one_task(check));
    let spec = specified(&world);
    let up = world.up_with(&[
        ("ROPEWALK_SANDBOX__VARIABLES", "[\"NAMED\", \"NOT_SET\"]"),
        ("NAMED", "passed-on"),
        ("OTHER", "kept-back"),
    ]);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    world.run(&format!("spec approve {id} --hash {hash}"));
    until(&world, "question list", |asked| asked[0]["id"].is_string());
    drop(up);
    assert_eq!(holding(world.root(), &["kept-back"]), [""; 0]);
    let said = "named=passed-on other=\n";
    let escaped = "named=passed-on other=\\n";
    assert_ne!(holding(&world.state(), &[said, escaped]), [""; 0]);
}

#[test]
fn a_check_that_asks_a_host_that_is_not_listed_is_denied_by_the_sandbox() {
    let world = World::scripted();
    world.write("../script.yaml", &one_task("curl -fsS http://other.test/x"));
    let spec = specified(&world);
    let up = world.up_with(&[("ROPEWALK_SANDBOX__HOSTS", "[\"listed.test\"]")]);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    world.run(&format!("spec approve {id} --hash {hash}"));
    until(&world, "question list", |asked| asked[0]["id"].is_string());
    drop(up);
    for said in [
        "the sandbox does not let it reach `other.test`, which `sandbox.hosts` does not list",
        "SANDBOX_DENIED",
    ] {
        assert_ne!(holding(&world.state(), &[said]), [""; 0], "{said}");
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused_where_hosts_are_listed() {
    let world = World::scripted();
    let up = |hosts: &str| {
        let mut up = world.ropewalk(["doctor"]);
        up.env("HTTPS_PROXY", "socks5://ada:canary@127.0.0.1:1");
        up.args(["--set", &format!("sandbox.hosts={hosts}")]);
        let output = up.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = up("[\"listed.test\"]");
    assert!(
        said.contains("`HTTPS_PROXY` names no proxy that speaks HTTP"),
        "{said}"
    );
    assert!(!said.contains("canary"), "{said}");
    assert!(!up("[]").contains("HTTPS_PROXY"));
}

#[test]
fn no_command_is_given_a_key_of_this_program() {
    let world = World::scripted();
    for (name, settings) in [
        ("OPENAI_API_KEY", ""),
        ("MINE", "providers.x.key_variable=MINE"),
        ("MINE", "bus.token_variable=MINE"),
    ] {
        let mut check = world.ropewalk(["config", "check"]);
        check.env(
            "ROPEWALK_SANDBOX__VARIABLES",
            format!("[\"A\", \"{name}\"]"),
        );
        if !settings.is_empty() {
            check.args(["--set", settings, "--set", "providers.x.kind=openai"]);
            check.args(["--set", "bus.transport=nats://127.0.0.1:1"]);
        }
        let said = one_line(check, 1);
        let wanted = format!("`sandbox.variables[1]`: `{name}` holds a key");
        assert!(said.contains(&wanted), "{said}");
    }
}

#[test]
fn a_helper_that_is_asked_for_nonsense_refuses_in_one_line() {
    let world = World::bare_of_project();
    for arguments in [
        vec!["__sandbox"],
        vec!["__sandbox", "namespaces", "{}", "true"],
        vec!["__sandbox", "elsewhere", "{}", "true"],
    ] {
        let said = one_line(world.ropewalk(arguments), 125);
        assert!(said.contains("did not run"), "{said}");
    }
}
