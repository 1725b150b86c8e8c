//! Whoever runs `up` is told what waits for a person and what ended, with the command that goes on.

use std::time::{Duration, Instant};

use ropewalk_world::questions;

use crate::approvals::{documented, text, until};
use crate::world::World;

const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for the line of `up` that holds `wanted`, and returns the commands it names.
fn commands(world: &World, wanted: &str) -> Vec<String> {
    let began = Instant::now();
    loop {
        let log = std::fs::read_to_string(world.root().join("up.log")).unwrap_or_default();
        if let Some(line) = log.lines().find(|line| line.contains(wanted)) {
            let quoted = line.split('`').skip(1).step_by(2);
            let commands = quoted.filter_map(|text| text.strip_prefix("ropewalk "));
            return commands.map(str::to_owned).collect();
        }
        assert!(began.elapsed() < PATIENCE, "`{wanted}`: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn up_names_the_command_that_answers_each_question_and_follows_each_end() {
    let world = World::scripted();
    documented(&world, "rivers");
    let _up = world.up();
    let mut asking = world.ropewalk(["spec", "generate", "rivers", "--complexity", "simple"]);
    asking.output().unwrap();
    let next = commands(&world, "waits for your answer: Plain files or a database?");
    let [show, answer]: [String; 2] = next.try_into().unwrap();
    assert!(answer.starts_with("question answer "), "{answer}");
    assert!(world.run(&show).contains("It shapes everything."), "{show}");
    let mut words: Vec<&str> = answer.split(' ').collect();
    words.push("Plain files");
    world.ropewalk(words).assert().success();
    let next = commands(&world, "specification of `rivers` is written");
    assert!(
        next[0].starts_with("spec show ") && next[1].starts_with("spec approve "),
        "{next:?}"
    );
    let spec = world.json(&next[0]);
    let (approve, digits) = next[1].rsplit_once(" --hash ").unwrap();
    assert_eq!(digits, &text(&spec["hash"])[..16]);
    let said = world.refused(&format!("{approve} --hash {}", &digits[..15]), 3);
    assert!(said.contains("at least 16 digits"), "{said}");
    let said = world.refused(&format!("{approve} --hash 0123456789abcdef"), 1);
    assert!(said.contains("is not how the hash"), "{said}");
    world.run(&next[1]);
    let builds = until(&world, "build list", |builds| {
        builds[0]["state"] != "running" && builds[0]["id"].is_string()
    });
    let id = text(&builds[0]["id"]);
    let digits = &id[id.len() - 8..];
    let next = commands(&world, "build of `rivers` pauses");
    let asked = world.json("question list");
    let asked = text(&asked[0]["id"]);
    let answer = format!("question answer {}", &asked[asked.len() - 8..]);
    assert_eq!(next, std::slice::from_ref(&answer));
    let mut wait = world.ropewalk(["build", "wait", digits, "--at-most", "1"]);
    let waited = wait.assert().code(1).get_output().clone();
    let said = String::from_utf8(waited.stderr).unwrap();
    let told = format!("`ropewalk question answer {asked}`");
    assert!(
        said.contains("it waits for your answer: ") && said.contains(&told),
        "{said}"
    );
    let next = format!("has not ended yet; `ropewalk {answer}`");
    assert!(said.contains(&next), "{said}");
    // It goes on for a moment, which is seen or not, and stands still again for the same reason.
    let began = Instant::now();
    let mut resumed = (0..20).map(|_| world.run(&format!("build resume {digits}")));
    let said = resumed.find(|said| said.contains("is paused")).unwrap();
    let why = format!("is paused: only open questions are left; `ropewalk {answer}`");
    assert!(said.contains(&why), "{said}");
    assert!(
        began.elapsed() < PATIENCE,
        "each wish is waited for until nobody is left to hear it"
    );
    world.run(&format!("build stop {digits}"));
    let next = commands(&world, "build of `rivers` stopped, ");
    assert_eq!(next, [format!("build show {digits}")]);
}

#[test]
fn up_tells_first_of_the_questions_that_were_open_before_it() {
    let world = World::scripted();
    world.run("idea new Walks");
    world.commit(|changes| {
        for number in 1..=22 {
            questions::put(changes, &format!("Which way, {number}?")).unwrap();
        }
    });
    let _up = world.up();
    let next = commands(&world, "2 other questions open");
    assert_eq!(next, ["question list"]);
    let told = || {
        let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
        let asked = log.lines().filter(|line| line.contains("Which way, "));
        asked.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told().len(), 20, "{:?}", told());
    assert!(
        told()
            .iter()
            .all(|line| line.contains("`ropewalk question answer ")),
        "{:?}",
        told()
    );
    world.commit(|changes| drop(questions::put(changes, "How far?").unwrap()));
    commands(&world, "waits for your answer: How far?");
    assert_eq!(told().len(), 20, "nothing is told twice: {:?}", told());
}

#[test]
fn what_could_not_be_told_is_listed_with_why_until_everything_is_asked_for() {
    let world = World::scripted();
    let config = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    // Nobody listens there.
    let notices = "[notices]\nwebhook_url = \"http://127.0.0.1:9/\"\n";
    world.write("ropewalk.toml", &format!("{config}\n{notices}"));
    let up = world.up();
    world.run("stop");
    let listed = until(&world, "notice list", |rows| {
        // A try is counted when it begins.
        rows[0]["error"].is_string()
    });
    let row = &listed[0];
    assert_eq!(
        (text(&row["port"]), text(&row["type"])),
        ("webhook", "halt.begun")
    );
    assert!(row["error"].is_string(), "{row}");
    assert!(row["nonce"].is_null() && row["choices"].is_null(), "{row}");
    let said = world.run("notice list");
    assert!(
        said.contains("webhook") && said.contains(text(&row["receiver"])),
        "{said}"
    );
    drop(up);
}
