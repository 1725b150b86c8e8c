//! What a person at a terminal meets: a pasted block is one message, Ctrl-C ends a turn, marked words are bold.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ropewalk_orchestrator::notices::asked_for;
use ropewalk_runtime::Clock;
use ropewalk_world::questions;
use serde_json::Value;

use crate::approvals::{specified, text, until};
use crate::world::World;

const OPENING: &str = "I walk every day and always forget where I have been, so I want a program that keeps a list of my walks.";
const PATIENCE: Duration = Duration::from_mins(1);
/// What the key Ctrl-C sends.
const INTERRUPT: &str = "\u{3}";

/// A program at a terminal of its own, with what it has shown so far.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<(Mutex<String>, Condvar)>,
}

impl Terminal {
    /// Runs a verb at a terminal, which `script` makes.
    fn run(world: &World, verb: &str, variables: &[(&str, &str)]) -> Self {
        // A shell that stays between them would end by the key itself.
        let line = format!("exec {} {verb}", env!("CARGO_BIN_EXE_ropewalk"));
        Self::shell(world, &line, variables)
    }

    /// Runs a line of a shell there.
    fn shell(world: &World, line: &str, variables: &[(&str, &str)]) -> Self {
        let mut child = Process::new("script")
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .env_clear()
            .envs(world.environment())
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .current_dir(world.repository())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let shown = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let told = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                told.0.lock().unwrap().push_str(&text);
                told.1.notify_all();
            }
        });
        let keys = child.stdin.take().unwrap();
        Self { child, keys, shown }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until `text` was shown so many times, and returns all that was shown.
    fn shows(&self, text: &str, times: usize) -> String {
        let (shown, told) = &*self.shown;
        let shown = shown.lock().unwrap();
        let is_missing = |shown: &mut String| shown.matches(text).count() < times;
        let (shown, waited) = told
            .wait_timeout_while(shown, PATIENCE, is_missing)
            .unwrap();
        assert!(!waited.timed_out(), "waited for `{text}`: {shown}");
        shown.clone()
    }

    fn ends(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn begun() -> World {
    let world = World::scripted();
    world
        .ropewalk(["idea", "new", "Walks", "--slug", "walks", "--text", OPENING])
        .assert()
        .success();
    world
}

fn said(world: &World, author: &str) -> Vec<String> {
    let idea = world.json("idea show walks");
    let messages = idea["messages"].as_array().unwrap();
    let of_author = messages.iter().filter(|one| one["author"] == author);
    let text = |message: &Value| message["text"].as_str().unwrap().to_owned();
    of_author.map(text).collect()
}

#[test]
fn a_pasted_block_is_one_message_and_marked_words_are_bold() {
    let world = begun();
    let mut terminal = Terminal::run(&world, "idea chat walks", &[]);
    terminal.shows("you> ", 1);
    terminal.types("one\ntwo\n\nfour\n");
    terminal.shows("you> ", 2);
    terminal.types("\u{1b}[200~five\nsix\u{1b}[201~\n");
    let shown = terminal.shows("you> ", 3);
    assert!(
        shown.contains("Tell me \u{1b}[1mmore\u{1b}[22m."),
        "{shown:?}"
    );
    assert!(!shown.contains("**"), "{shown:?}");
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
    assert_eq!(
        said(&world, "person"),
        [OPENING, "one\ntwo\n\nfour", "five\nsix"]
    );
}

#[test]
fn no_word_of_a_reply_is_broken_at_the_end_of_a_line() {
    let world = begun();
    let program = env!("CARGO_BIN_EXE_ropewalk");
    let line = format!("stty cols 30; exec {program} idea chat walks");
    let mut terminal = Terminal::shell(&world, &line, &[]);
    terminal.shows("you> ", 1);
    terminal.types("one\n");
    // Behind what says who speaks there is no room for the last word.
    terminal.shows("\r\n\u{1b}[1mmore\u{1b}[22m.", 1);
    terminal.shows("you> ", 2);
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
}

#[test]
fn whose_idea_is_clear_hears_how_to_leave() {
    let world = begun();
    world.run("idea done walks");
    let mut terminal = Terminal::run(&world, "idea chat walks", &[]);
    terminal.shows("Ctrl-D ends the chat", 1);
    terminal.shows("you> ", 1);
    // What the key Ctrl-D sends.
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn who_approves_at_a_terminal_reads_what_that_lets_run() {
    let world = World::scripted();
    let spec = specified(&world);
    let tasks = spec["content"]["tasks"].as_array().unwrap();
    let command = text(&tasks[0]["validation"]["command"]);
    let line = format!("spec approve {}", text(&spec["id"]));
    let mut terminal = Terminal::run(&world, &line, &[]);
    let shown = terminal.shows("Approve exactly this revision", 1);
    assert!(shown.contains("What a yes lets run"), "{shown}");
    assert!(shown.contains("dry-run: of "), "{shown}");
    assert!(shown.contains(command), "{command}: {shown}");
    terminal.types("n\r");
    assert_eq!(terminal.ends(), Some(2));
    assert!(world.json("build list").as_array().unwrap().is_empty());
}

#[test]
fn a_question_takes_no_key_that_was_typed_before_it_was_there() {
    let world = begun();
    let program = env!("CARGO_BIN_EXE_ropewalk");
    // What follows the first line waits in the terminal when the program begins.
    let line = format!("read first; exec {program} idea abandon walks");
    let mut terminal = Terminal::shell(&world, &line, &[]);
    terminal.types("first\ny\n");
    terminal.shows("Abandon walks?", 1);
    // Who presses Enter alone leaves everything as it is.
    terminal.types("\r");
    assert_eq!(terminal.ends(), Some(2));
    assert_ne!(world.json("idea show walks")["state"], "abandoned");
}

#[test]
fn who_wants_no_question_is_asked_none_at_a_terminal() {
    let world = begun();
    let terminal = Terminal::run(&world, "idea abandon walks --no-input", &[]);
    let shown = terminal.shows("abandoned walks", 1);
    assert!(!shown.contains("Abandon walks?"), "{shown}");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(world.json("idea show walks")["state"], "abandoned");
}

#[test]
fn top_shows_what_there_is_and_leaves_the_terminal_as_it_was() {
    let world = begun();
    let mut asked = None;
    world.commit(|changes| asked = questions::put(changes, "Which way?").ok());
    let asked = asked.unwrap().id.to_string();
    let program = env!("CARGO_BIN_EXE_ropewalk");
    let line = format!(
        "stty rows 30 cols 120; stty -g > ../before; {program} top; code=$?; stty -g > ../after; exit $code"
    );
    for leave in ["q", "\u{1b}", INTERRUPT] {
        let mut terminal = Terminal::shell(&world, &line, &[]);
        terminal.shows("Loops and agents (", 1);
        terminal.shows(&asked[asked.len() - 8..], 1);
        terminal.types("\t4jkr");
        let shown = terminal.shows("Spend (", 1);
        assert!(
            shown.contains("\u{1b}[?1049h"),
            "no screen of its own: {shown:?}"
        );
        assert!(
            shown.contains("ever") && shown.contains("walks"),
            "{shown:?}"
        );
        terminal.types(leave);
        let shown = terminal.shows("\u{1b}[?1049l", 1);
        assert!(shown.contains("\u{1b}[?25h"), "no cursor: {shown:?}");
        assert_eq!(terminal.ends(), Some(0), "{leave:?}");
        let [before, after] = ["before", "after"]
            .map(|name| std::fs::read_to_string(world.root().join(name)).unwrap());
        assert_eq!(before, after, "{leave:?}");
    }
    let said = world.refused("top", 1);
    assert!(said.contains("needs a terminal"), "{said}");
}

#[test]
fn nothing_is_coloured_for_who_wants_no_colour() {
    let world = begun();
    let verb = "idea chat walks --set models.small=openai/x --set sandbox=off";
    let variables = [("NO_COLOR", "1"), ("OPENAI_API_KEY", "none")];
    let mut terminal = Terminal::run(&world, verb, &variables);
    let shown = terminal.shows("you> ", 1);
    assert!(shown.contains("sandbox"), "a line of the log: {shown:?}");
    assert!(shown.contains("Tell me **more**."), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    terminal.types(INTERRUPT);
    terminal.ends();
}

#[test]
fn an_interrupt_ends_the_turn_and_a_second_one_the_chat() {
    let world = begun();
    let script = std::fs::read_to_string(world.root().join("script.yaml")).unwrap();
    let slow = "- agent: ideation\n  task: message-2\n  reply: { delay_ms: 3000, tools: [{ name: reply, input: { text: Slow words. } }] }\n";
    world.write("../script.yaml", &format!("{slow}{script}"));
    let mut terminal = Terminal::run(&world, "idea chat walks", &[]);
    terminal.shows("you> ", 1);
    terminal.types("one\n");
    terminal.shows("\nropewalk> ", 2);
    terminal.types(INTERRUPT);
    terminal.shows("you> ", 2);
    terminal.types("two\n");
    let shown = terminal.shows("you> ", 3);
    let [left, late, reply] =
        ["left;", "(to what you said before) Slow words.", "Noted."].map(|text| {
            shown
                .rfind(text)
                .unwrap_or_else(|| panic!("{text}: {shown:?}"))
        });
    assert!(left < late && late < reply, "{shown:?}");
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
    assert_eq!(said(&world, "person"), [OPENING, "one", "two"]);
    assert_eq!(said(&world, "agent").len(), 3, "nothing was lost");
}

#[test]
fn words_of_a_reply_come_from_the_program_that_runs_before_the_reply_is_there() {
    let world = begun();
    let script = std::fs::read_to_string(world.root().join("script.yaml")).unwrap();
    let slow = "- agent: ideation\n  task: message-2\n  turn: 1\n  reply: { text: Let me see., tools: [{ name: glob, input: { pattern: '*' } }] }\n\
                - agent: ideation\n  task: message-2\n  reply: { delay_ms: 5000, tools: [{ name: reply, input: { text: Slow words. } }] }\n";
    world.write("../script.yaml", &format!("{slow}{script}"));
    let up = world.up();
    let mut terminal = Terminal::run(&world, "idea chat walks", &[]);
    terminal.shows("you> ", 1);
    terminal.types("one\n");
    terminal.shows("Let me see.", 1);
    assert_eq!(said(&world, "agent").len(), 1, "the reply is not there yet");
    let shown = terminal.shows("Slow words.", 1);
    assert!(
        shown.find("Let me see.") < shown.find("Slow words."),
        "{shown:?}"
    );
    terminal.shows("you> ", 2);
    assert_eq!(said(&world, "agent").len(), 2);
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
    assert_eq!(up.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
}

#[test]
fn a_question_that_the_bell_has_yet_to_tell_when_up_begins_is_told_once() {
    let world = begun();
    world.commit(|changes| {
        let asked = questions::put(changes, "Which way?").unwrap();
        let bell = ("terminal", &asked, "terminal");
        asked_for(changes, &[], bell, Clock::system().now());
    });
    let mut terminal = Terminal::run(&world, "up --set notices.terminal=true", &[]);
    terminal.shows("stop it with Ctrl-C", 1);
    let shown = terminal.shows("\u{7}", 1);
    let lines = shown.lines().filter(|line| line.contains("Which way?"));
    assert_eq!(lines.count(), 1, "{shown:?}");
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
}

#[test]
fn a_line_that_the_terminal_cuts_and_a_word_for_a_program_are_not_said() {
    let world = begun();
    let mut terminal = Terminal::run(&world, "idea chat walks", &[]);
    terminal.shows("you> ", 1);
    terminal.types(&format!("{}END\n", "x".repeat(5000)));
    terminal.shows("cut a line at 4095 bytes", 1);
    terminal.shows("you> ", 2);
    terminal.types("/help\n");
    terminal.shows("`/help` was not said", 1);
    terminal.shows("you> ", 3);
    terminal.types("//help\n");
    terminal.shows("you> ", 4);
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
    assert_eq!(said(&world, "person"), [OPENING, "/help"]);
}

/// What a terminal rings at.
const BELL: char = '\u{7}';

#[test]
fn a_question_rings_the_bell_of_the_terminal_of_up_and_where_there_is_none_it_is_a_line() {
    let world = begun();
    let rings = ["up", "--set", "notices.terminal=true"];
    let mut terminal = Terminal::run(&world, &rings.join(" "), &[]);
    let shown = terminal.shows("stop it with Ctrl-C", 1);
    assert!(!shown.contains(BELL), "{shown:?}");
    let mut asked = Vec::new();
    world.commit(|changes| asked.extend(questions::put(changes, "Which way?")));
    let shown = terminal.shows("Which way?", 1);
    assert_eq!(shown.matches(BELL).count(), 1, "{shown:?}");
    let (_, rung) = shown.split_once(BELL).unwrap();
    let answer = format!("`ropewalk question answer {}`", asked[0].id);
    assert!(rung.lines().next().unwrap().contains(&answer), "{rung:?}");
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));

    let up = world.start(&rings, &[]);
    world.commit(|changes| asked.extend(questions::put(changes, "How far?")));
    let log = || std::fs::read_to_string(world.root().join("up.log")).unwrap();
    let began = Instant::now();
    while !log().contains("How far?") {
        assert!(began.elapsed() < PATIENCE, "{}", log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!log().contains(BELL), "{}", log());
    assert_eq!(up.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
}

#[test]
fn up_says_what_goes_on_after_a_pause_and_an_end_where_it_rings_the_bell_as_well() {
    let world = World::scripted();
    let spec = specified(&world);
    // A pause begins when what is at work has ended: here an agent that only talks.
    world.write(
        "../script.yaml",
        "- agent: build\n  reply: { delay_ms: 2000, text: x }\n",
    );
    let asked = world.json("question list");
    let last = |id: &str| id[id.len() - 8..].to_owned();
    let mut terminal = Terminal::run(&world, "up --set notices.terminal=true", &[]);
    let shown = terminal.shows("stop it with Ctrl-C", 1);
    let open = format!("`ropewalk question answer {}`", last(text(&asked[0]["id"])));
    assert!(shown.contains(&open), "{shown:?}");
    let [id, hash] = ["id", "hash"].map(|name| text(&spec[name]));
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    let build = text(&approved["build"]);
    until(&world, "build list", |builds| {
        builds[0]["state"] == "running"
    });
    world.run(&format!("build pause {build}"));
    let next = format!("`ropewalk build resume {}`", last(build));
    let shown = terminal.shows(&next, 1);
    assert!(shown.contains("build of `walks` pauses: "), "{shown:?}");
    world.run(&format!("build stop {build}"));
    let next = format!("`ropewalk build show {}`", last(build));
    let shown = terminal.shows(&next, 1);
    assert!(
        shown.contains("build of `walks` stopped, 0 of 3 tasks complete"),
        "{shown:?}"
    );
    terminal.types(INTERRUPT);
    assert_eq!(terminal.ends(), Some(2));
}
