//! Runs the binary where commands can be confined, and where they cannot.

use std::os::unix::fs::symlink;
use std::process::Command as Process;

use assert_cmd::Command;
use serde_json::Value;

use crate::world::{World, one_line};

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
    let findings: Value = serde_json::from_slice(findings).unwrap();
    let rows = findings.as_array().unwrap();
    let found = rows.iter().find(|row| row["check"] == "sandbox").unwrap();
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    (text("verdict"), text("detail"))
}

#[test]
fn the_doctor_names_the_level_in_force() {
    let world = World::scripted();
    let mut doctor = world.ropewalk(["doctor", "--json"]);
    let (verdict, level) = sandbox_of(&doctor.assert().get_output().stdout);
    assert_eq!(verdict, "ok", "{level}");
    let has_bubblewrap = Process::new("bwrap").arg("--version").output().is_ok();
    let best = if has_bubblewrap {
        "bubblewrap"
    } else {
        "namespaces"
    };
    assert_eq!(level, best);
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
        sandbox_of(&output.get_output().stdout),
        ("ok".to_owned(), "namespaces".to_owned())
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
