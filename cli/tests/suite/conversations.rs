//! `idea new` and `idea chat`: what is said is stored and answered, here or beside a running `up`.

mod beside;
mod terminal;

use std::process::{Command as Process, Stdio};

use serde_json::Value;

use crate::approvals;
use crate::world::World;

/// An opening that says enough, so that nothing has to be asked back.
const OPENING: &str = "I walk every day and always forget where I have been, so I want a program that keeps a list of my walks.";

/// Makes an idea and says the opening.
pub(crate) fn begin(world: &World, slug: &str) {
    world
        .ropewalk(["idea", "new", "Walks", "--slug", slug, "--text", OPENING])
        .assert()
        .success();
}

fn chat(world: &World, lines: &str) -> Vec<Value> {
    let mut command = world.ropewalk(["idea", "chat", "walks", "--json"]);
    let output = command
        .write_stdin(lines)
        .assert()
        .success()
        .get_output()
        .clone();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn messages(world: &World, slug: &str, author: &str) -> usize {
    let idea = world.json(&format!("idea show {slug}"));
    let messages = idea["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["author"] == author)
        .count()
}

#[test]
fn a_file_is_attached_and_a_text_read_aloud() {
    let world = World::scripted();
    begin(&world, "walks");
    world.write_untrusted("../notes.md", "Count steps.\n");
    let notes = world.root().join("notes.md");
    let notes = notes.to_str().unwrap();
    let attach = |more: &[&str]| {
        let verb = ["idea", "attach", "walks", notes, "--json"];
        world.ropewalk([&verb[..], more].concat()).assert()
    };
    let output = attach(&["--say", "My notes"])
        .success()
        .get_output()
        .clone();
    let kept: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kept["path"], "attachments/notes.md", "{kept}");
    assert_eq!(kept["size_bytes"], 13, "{kept}");
    let idea = world.json("idea show walks");
    let told = idea["messages"].as_array().unwrap().last().unwrap();
    let text = told["text"].as_str().unwrap();
    assert!(
        text.starts_with("My notes\n\n[A file came along:"),
        "{text}"
    );
    assert!(text.ends_with("```\nCount steps.\n\n```"), "{text}");
    assert_eq!(told["attachments"][0]["path"], kept["path"], "{told}");
    let replies = chat(&world, "");
    assert_eq!(replies.len(), 2, "both are waited for: {replies:#?}");
    assert_eq!(messages(&world, "walks", "agent"), 2);
    let kept = world
        .state()
        .join("users/ada/ideas/walks/attachments/notes.md");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "Count steps.\n");
    let said = world.refused("idea attach walks /dev/null", 1);
    assert!(said.contains("it is no file"), "{said}");
}

#[test]
fn three_lines_get_three_replies_that_are_stored() {
    let world = World::scripted();
    begin(&world, "walks");
    let opening = chat(&world, "");
    assert_eq!(
        opening.len(),
        1,
        "the first message gets its reply: {opening:#?}"
    );
    let replies = chat(&world, "one\n\ntwo\nthree\n");
    assert_eq!(replies.len(), 3, "{replies:#?}");
    for reply in &replies {
        assert_eq!(reply["text"], "Noted. Tell me **more**.");
        assert_eq!(reply["phase"], "exploring");
        assert_eq!(reply["captured"], serde_json::json!(["target-user"]));
    }
    assert_eq!(
        (
            messages(&world, "walks", "person"),
            messages(&world, "walks", "agent")
        ),
        (4, 4)
    );
}

#[test]
fn a_conversation_that_begins_while_another_process_does_is_answered_there() {
    let world = World::scripted();
    for slug in ["walks", "runs"] {
        begin(&world, slug);
    }
    let mut first = Process::new(env!("CARGO_BIN_EXE_ropewalk"))
        .env_clear()
        .envs(world.environment())
        .current_dir(world.repository())
        .args(["idea", "chat", "walks"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Whichever is a moment slower finds the agent of the other, which has only just begun.
    let mut second = world.ropewalk(["idea", "chat", "runs", "--json"]);
    let output = second.write_stdin("one\n").output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let said = String::from_utf8_lossy(&output.stdout);
    // The opening may have had its reply from the other agent before this conversation began.
    assert!((1..=2).contains(&said.lines().count()), "{said}");
    assert_eq!(
        (
            messages(&world, "runs", "person"),
            messages(&world, "runs", "agent")
        ),
        (2, 2)
    );
}

#[test]
fn a_conversation_alone_leaves_what_waits_of_other_ideas() {
    let world = World::scripted();
    for slug in ["walks", "runs"] {
        begin(&world, slug);
    }
    chat(&world, "one\n");
    assert_eq!(messages(&world, "walks", "agent"), 2);
    assert_eq!(messages(&world, "runs", "agent"), 0, "it was not paid for");
    let up = world.up();
    approvals::until(&world, "idea show runs", |_| {
        messages(&world, "runs", "agent") == 1
    });
    assert_eq!(up.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
}

#[test]
fn a_conversation_for_people_shows_words_and_state_apart() {
    let world = World::scripted();
    begin(&world, "walks");
    let mut command = world.ropewalk(["idea", "chat", "walks"]);
    let output = command
        .write_stdin("and hills\n")
        .assert()
        .success()
        .get_output()
        .clone();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "Noted. Tell me **more**.\nNoted. Tell me **more**.\n");
    let state = String::from_utf8(output.stderr).unwrap();
    assert!(
        state.contains("[exploring | confidence 0.40 | captured: target-user]"),
        "{state}"
    );
}

#[test]
fn beside_a_running_process_the_conversation_goes_on_in_it() {
    let world = World::scripted();
    let up = world.up();
    begin(&world, "walks");
    // The first message may have its reply before the conversation begins.
    let replies = chat(&world, "one\ntwo\n");
    assert!((2..=3).contains(&replies.len()), "{replies:#?}");
    assert_eq!(
        (
            messages(&world, "walks", "person"),
            messages(&world, "walks", "agent")
        ),
        (3, 3)
    );
    assert_eq!(up.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
}

#[test]
fn a_message_that_cannot_be_answered_says_why() {
    let world = World::scripted();
    begin(&world, "mute");
    let mut command = world.ropewalk(["idea", "chat", "mute"]);
    let output = command
        .write_stdin("hello\nand another thing\n")
        .assert()
        .code(1)
        .get_output()
        .clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("dead-letter replay"), "{said}");
    assert!(said.contains("2 messages were not answered"), "{said}");
    // The idea's own first message, and both lines: what comes after a failure is kept as well.
    let letters = world.json("dead-letter list");
    assert_eq!(letters.as_array().unwrap().len(), 3, "{letters}");
    let looked = world.json("doctor");
    let mut looked = looked.as_array().unwrap().iter();
    let told = looked.find(|finding| finding["check"] == "dead letters");
    let told = told.unwrap();
    let detail = told["detail"].as_str().unwrap();
    assert_eq!(told["verdict"], "warn");
    assert!(
        detail.starts_with("3 events could not be handled")
            && detail.contains("dead-letter replay"),
        "{detail}"
    );
    world.run(&format!(
        "dead-letter discard {}",
        letters[2]["id"].as_str().unwrap()
    ));
    let id = letters[0]["id"].as_str().unwrap();
    assert_eq!(
        world.json(&format!("dead-letter show {id}"))["content"]["type"],
        "ideation.message"
    );
    let preview = world.json(&format!("dead-letter discard {id} --dry-run"));
    assert_eq!(preview["id"], id, "{preview}");
    assert_eq!(world.json("dead-letter list").as_array().unwrap().len(), 2);
    world.run(&format!("dead-letter discard {id}"));
    let twice = world.refused(&format!("dead-letter discard {id} --dry-run"), 1);
    assert!(twice.contains("dead-letter list"), "{twice}");
    let left = world.json("dead-letter list");
    assert_eq!(left.as_array().unwrap().len(), 1);
    let id = left[0]["id"].as_str().unwrap();
    world.run(&format!("dead-letter replay {id}"));
    assert_eq!(world.json("dead-letter list"), Value::Array(Vec::new()));
}

#[test]
fn a_person_at_a_terminal_is_warned_and_told_of_a_failure_once() {
    let world = World::scripted();
    begin(&world, "mute");
    // `script` gives it a terminal to write to.
    let chat = format!(
        "{} idea chat mute --set models.small=openai/x --set sandbox=off </dev/null",
        env!("CARGO_BIN_EXE_ropewalk")
    );
    let output = Process::new("script")
        .args(["--quiet", "--return", "--command", &chat, "/dev/null"])
        .env_clear()
        .envs(world.environment())
        .env("OPENAI_API_KEY", "none")
        .env("SHELL", "/bin/sh")
        .current_dir(world.repository())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("sandbox"), "{said}");
    assert_eq!(said.matches("dead-letter").count(), 1, "{said}");
    assert!(!said.contains("went to the dead letters"), "{said}");
    assert!(!said.contains("could not handle"), "{said}");
}

#[test]
fn an_idea_is_listed_and_found_among_the_events() {
    let world = World::scripted();
    begin(&world, "walks");
    let ideas = world.json("idea list");
    assert_eq!(
        (&ideas[0]["slug"], &ideas[0]["phase"]),
        (&"walks".into(), &"exploring".into())
    );
    let events = world.json("event list --type ideation.* --subject idea/walks");
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
    assert_eq!(world.json("event show 1")["id"], events[0]["id"]);
    let mut tail = world.ropewalk(["event", "tail", "--after", "0", "--count", "1", "--json"]);
    let output = tail.assert().success().get_output().clone();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["id"], events[0]["id"]);
}

#[test]
fn a_taken_name_is_refused_and_a_made_one_is_numbered() {
    let world = World::scripted();
    begin(&world, "walks");
    let said = world.refused("idea new Walks --slug walks", 1);
    assert!(said.contains("there already"), "{said}");
    let said = world.refused("idea new \u{202e}\u{200b}", 1);
    assert!(said.contains("the message is empty"), "{said}");
    let title = "w".repeat(201);
    let said = world.refused(&format!("idea new {title} --text Steps"), 1);
    assert!(said.contains("the title has 201 bytes"), "{said}");
    assert_eq!(world.json("idea new Walks")["slug"], "walks-2");
}

#[test]
fn a_conversation_goes_on_where_nobody_may_search_the_web_for_want_of_a_key_and_serving_does_not() {
    let world = World::scripted();
    begin(&world, "walks");
    let settings = [
        "--set",
        "tools.web_search.url=https://search.example.org/search",
        "--set",
        "tools.web_search.key_variable=NO_KEY_OF_MINE",
    ];
    let mut command = world.ropewalk(["idea", "chat", "walks", "--json"]);
    let output = command.args(settings).write_stdin("It has dates, too.\n");
    let output = output.assert().success().get_output().clone();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("`NO_KEY_OF_MINE`").count(), 1, "{told}");
    assert_eq!(messages(&world, "walks", "agent"), 2);
    let mut up = world.ropewalk(["up"]);
    let refused = up.args(settings).assert().code(1).get_output().clone();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("set the variable `NO_KEY_OF_MINE`"), "{said}");
}
