//! What must not leave the process does not, and what is approved is shown whole.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use crate::approvals::{specified, text, until};
use crate::world::{BINARY, World, one_task};

const CANARY: &str = "sk-canary-7f3e9a1c55d0";
/// The middle of it as base64 writes it, at each of three beginnings.
const ENCODED: [&str; 3] = [
    "Y2FuYXJ5LTdmM2U5YTFjNT",
    "NhbmFyeS03ZjNlOWExYzU1",
    "jYW5hcnktN2YzZTlhMWM1N",
];

/// Returns the files below `directory` that hold one of `words`.
pub(crate) fn holding(directory: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(holding(&path, words));
        } else if let Ok(content) = std::fs::read(&path) {
            let text = String::from_utf8_lossy(&content);
            if words.iter().any(|word| text.contains(word)) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Lets a check print what the process that runs it was started with, as it is and in base64; waits until `came_to_it`
/// is stored, and looks for the key in all that is.
fn is_printed_nowhere(sandbox: &str, came_to_it: &str) {
    let world = World::scripted();
    let check = "cat /proc/$PPID/environ; base64 --wrap=0 /proc/$PPID/environ; false";
    world.write("../script.yaml", &one_task(check));
    let spec = specified(&world);
    let up = world.up_with(&[("ANTHROPIC_API_KEY", CANARY), ("ROPEWALK_SANDBOX", sandbox)]);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    world.run(&format!("spec approve {id} --hash {hash}"));
    until(&world, "question list", |asked| asked[0]["id"].is_string());
    until(&world, "event list", |_| {
        !holding(&world.state(), &[came_to_it]).is_empty()
    });
    drop(up);
    let mut words = vec![CANARY];
    words.extend(ENCODED);
    assert_eq!(holding(world.root(), &words), [""; 0]);
}

#[test]
fn a_key_that_a_check_prints_is_in_no_row_no_file_and_no_log() {
    // Root may read every process, others find this one closed.
    let is_root = geteuid().is_root();
    is_printed_nowhere(
        "off",
        if is_root {
            "[secret]"
        } else {
            "Permission denied"
        },
    );
}

#[test]
fn a_confined_check_cannot_read_what_the_program_was_started_with() {
    is_printed_nowhere("required", "Permission denied");
}

/// Begins a program of a user who is nobody, which only root can, else of whoever runs the tests.
fn by_user(words: &[&str]) -> Process {
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let nobody = nobody.into_iter().filter(|_| geteuid().is_root());
    let mut words = nobody.chain(words.iter().copied());
    let mut program = Process::new(words.next().unwrap());
    program.args(words);
    program
}

#[test]
fn the_program_is_hidden_from_all_else_that_its_user_runs() {
    let world = World::scripted();
    let variable = format!("WALKS_NOTE={CANARY}");
    let place = |id: u32| PathBuf::from(format!("/proc/{id}/environ"));
    let reads = |id: u32| {
        let read = by_user(&["cat", place(id).to_str().unwrap()]).output();
        String::from_utf8_lossy(&read.unwrap().stdout).contains(CANARY)
    };
    let mut other = by_user(&["env", &variable, "sleep", "600"])
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut is_read = false;
    while !is_read && begun.elapsed() < Duration::from_mins(1) {
        is_read = reads(other.id());
    }
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(is_read, "what nobody hides is read");
    // Where the tests were built, whoever is nobody may not come.
    let program = world.root().join("ropewalk");
    std::fs::copy(BINARY, &program).unwrap();
    if geteuid().is_root() {
        let mut give = Process::new("chown");
        let given = give.args(["-R", "65534:65534"]).arg(world.root()).status();
        assert!(given.unwrap().success());
    }
    let program = program.to_str().unwrap();
    let up = world.up_by(&mut by_user(&["env", &variable, program, "up"]));
    assert!(Path::new(&format!("/proc/{}", up.id())).exists());
    assert!(!reads(up.id()));
    // It is there all the same, for whoever may read everything.
    let read = std::fs::read(place(up.id()));
    assert_eq!(read.is_ok(), geteuid().is_root());
    if let Ok(read) = read {
        assert!(String::from_utf8_lossy(&read).contains(CANARY));
    }
}

#[test]
fn an_approval_shows_each_check_whole() {
    let world = World::scripted();
    let check = format!(
        "test -s a.txt && echo {} && curl http://h/x",
        "a".repeat(300)
    );
    world.write("../script.yaml", &one_task(&check));
    let spec = specified(&world);
    let shown = world.run(&format!("spec show {}", text(&spec["id"])));
    assert!(shown.contains(&check), "{shown}");
}
