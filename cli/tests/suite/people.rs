//! People do what their rights let them, on the terminal too, and are named where they did it.

mod at_once;
mod brought;
mod described;
mod filled;
mod journey;
mod phone;
mod serving;
mod surfaces;

use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::question::{Choice, QuestionKind};
use serde_json::{Value, json};

pub(crate) use serving::{address, ask};

use crate::approvals::{specified, text};
use crate::questions::question;
use crate::world::{World, one_line};

const TOKEN_OF_BOB: &str = "the-token-that-only-bob-has";

/// Names ada, who runs these tests and approves, and bob, who has a token and stops.
fn with_people(world: &World, user: &str) {
    let hash = ropewalk_schemas::ContentHash::of(TOKEN_OF_BOB.as_bytes());
    let people = format!(
        "[people.ada]\nuser = \"{user}\"\nroles = [\"product\"]\nrights = [\"approve\"]\n\
         [people.bob]\ntoken_sha256 = \"{hash}\"\nrights = [\"stop\"]\n"
    );
    let directory = world.home().join(".config/ropewalk");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), people).unwrap();
}

/// Returns the user that runs these tests.
fn tester() -> String {
    let id = nix::unistd::getuid();
    let entry = nix::unistd::User::from_uid(id).unwrap();
    entry.map_or_else(|| id.to_string(), |user| user.name)
}

/// Runs the words of `line` as bob, who must be refused, and returns what is said.
fn bob_is_refused(world: &World, line: &str) -> String {
    let mut command = world.ropewalk(line.split_whitespace());
    command.env("ROPEWALK_TOKEN", TOKEN_OF_BOB);
    one_line(command, 1)
}

fn as_bob(world: &World, line: &str) -> Value {
    let mut command = world.ropewalk(line.split_whitespace());
    command.env("ROPEWALK_TOKEN", TOKEN_OF_BOB).arg("--json");
    let output = command.assert().success().get_output().clone();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn where_nobody_is_named_whoever_is_there_may_do_everything() {
    let world = World::scripted();
    let everything = json!({
        "name": "ada",
        "roles": ["product", "technical", "operations"],
        "rights": ["approve", "land", "spend", "stop"],
    });
    assert_eq!(world.json("whoami"), everything);
    assert_eq!(world.json("people list"), json!([everything]));
    // A token names nobody then, and takes nothing away.
    let mut command = world.ropewalk(["whoami"]);
    command
        .env("ROPEWALK_TOKEN", TOKEN_OF_BOB)
        .assert()
        .success();
}

#[test]
fn a_person_does_what_their_rights_let_them_and_nothing_else() {
    let world = World::scripted();
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    with_people(&world, &tester());
    assert_eq!(world.json("whoami")["rights"], json!(["approve"]));
    assert_eq!(as_bob(&world, "whoami")["name"], "bob");
    let approve = format!("spec approve {id} --hash {hash}");
    let events = || world.json("event list");
    let before = events();
    let said = bob_is_refused(&world, &approve);
    assert!(
        said.contains("`bob` may not approve; add `approve` to `rights`"),
        "{said}"
    );
    let said = bob_is_refused(&world, &format!("spec reject {id}"));
    assert!(said.contains("may not approve"), "{said}");
    let said = world.refused("idea abandon walks", 1);
    assert!(said.contains("`ada` may not stop"), "{said}");
    for line in [
        format!("build stop {id}"),
        format!("build stop {id} --dry-run"),
        format!("build pause {id}"),
        format!("build resume {id}"),
        "dead-letter replay 1/build".to_owned(),
        "dead-letter discard 1/build".to_owned(),
        "dead-letter discard 1/build --dry-run".to_owned(),
        "event replay improvement --from 1".to_owned(),
    ] {
        let said = world.refused(&line, 1);
        assert!(said.contains("`ada` may not stop"), "{said}");
    }
    for line in [
        format!("build land {id}"),
        format!("build land {id} --resolve"),
    ] {
        let said = world.refused(&line, 1);
        assert!(said.contains("`ada` may not land"), "{said}");
    }
    assert_eq!(events(), before);
    world.run(&approve);
    let approved = world.json("event list --type spec.approved");
    let shown = world.json(&format!("event show {}", text(&approved[0]["id"])));
    assert!(
        shown.to_string().contains("\"approved_by\":\"ada\""),
        "{shown}"
    );
    as_bob(&world, "idea abandon walks");
}

#[test]
fn what_somebody_says_in_the_idea_of_another_is_shown_as_theirs() {
    let world = World::scripted();
    with_people(&world, &tester());
    world.json("idea new Walks --slug walks --text Steps");
    world.write_untrusted("../notes.md", "Count steps.\n");
    let notes = world.root().join("notes.md");
    let attach = format!("idea attach walks {}", notes.display());
    for line in [attach.as_str(), "idea done walks"] {
        let mut command = world.ropewalk(line.split_whitespace());
        command.env("ROPEWALK_TOKEN", TOKEN_OF_BOB);
        command.assert().success();
    }
    let shown = world.json("idea show walks");
    let said = shown["messages"].as_array().unwrap();
    let said = said.iter().filter(|said| said["author"] == "person");
    let mut people = said.map(|said| text(&said["user"]));
    for person in ["ada", "bob", "bob"] {
        assert_eq!(people.next(), Some(person), "{shown}");
    }
    let shown = world.run("idea show walks");
    let told = |start: &str| shown.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((told("ada, "), told("bob, ")), (1, 2), "{shown}");
    assert!(shown.contains("That is all."), "{shown}");
}

#[test]
fn a_choice_that_takes_a_right_is_left_to_who_has_it() {
    let world = World::scripted();
    let cases = [
        (1, "spec_complete", "start", "approve"),
        (2, "build_finished", "merge", "land"),
        (3, "budget_exceeded", "half", "spend"),
        (4, "budget_exceeded", "stop", "stop"),
    ];
    let asked = cases.map(|(number, trigger, choice, right)| {
        let mut question = question(number, QuestionKind::Blocking, false, true);
        trigger.clone_into(&mut question.trigger);
        question.choices = ["leave", choice]
            .map(|id| Choice::new(ChoiceId::parse(id).unwrap(), id))
            .into();
        world.commit(|changes| {
            changes.insert(&question);
        });
        (question.id, choice, right)
    });
    with_people(&world, &tester());
    let before = (world.json("question list"), world.json("event list"));
    for (id, choice, right) in &asked {
        let said = match *right {
            // What ada may, bob may not.
            "approve" => bob_is_refused(&world, &format!("question answer {id} {choice}")),
            _ => world.refused(&format!("question answer {id} {choice}"), 1),
        };
        assert!(
            said.contains(&format!("may not {right}")),
            "{choice}: {said}"
        );
    }
    assert_eq!(
        (world.json("question list"), world.json("event list")),
        before
    );
    let (id, choice, _) = &asked[0];
    world.run(&format!("question answer {id} {choice}"));
    as_bob(&world, &format!("question answer {} stop", asked[3].0));
    assert_eq!(
        world.json("question list").as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_stranger_looks_and_does_nothing() {
    let world = World::scripted();
    world.run("idea new Walks --slug walks");
    with_people(&world, "somebody-else");
    for line in [
        "whoami",
        "idea new Rivers",
        "idea abandon walks",
        "knowledge add Rain",
    ] {
        let said = world.refused(line, 1);
        assert!(
            said.contains("is nobody in `[people]`; set `user = "),
            "{said}"
        );
    }
    let mut command = world.ropewalk(["idea", "new", "Rivers"]);
    command.env("ROPEWALK_TOKEN", "not-a-token-of-anybody");
    let said = one_line(command, 1);
    assert!(
        said.contains("nobody in `[people]` has this token"),
        "{said}"
    );
    assert!(!said.contains("not-a-token-of-anybody"), "{said}");
    assert_eq!(world.json("idea list").as_array().map(Vec::len), Some(1));
    assert_eq!(world.json("people list").as_array().map(Vec::len), Some(2));
}

#[test]
fn a_token_is_made_and_its_hash_is_what_the_configuration_takes() {
    let world = World::scripted();
    let made = world.json("people token bob");
    let token = text(&made["token"]);
    let hash = ropewalk_schemas::ContentHash::of(token.as_bytes());
    assert_eq!(made["token_sha256"], hash.as_str());
    let shown = world.run("people token bob");
    assert!(shown.contains("[people.bob]\ntoken_sha256 = \""), "{shown}");
    assert!(!shown.contains(token), "another token");
}

#[test]
fn what_a_token_is_made_with_takes_nobody_anything_away() {
    let world = World::scripted();
    let before = world.json("whoami");
    let file = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    let made = world.json("people token ada");
    let (token, section) = (text(&made["token"]), text(&made["settings"]));
    assert!(world.run("people token ada").contains("user = \""));
    let file = format!("{file}\n{section}\n");
    world.write("ropewalk.toml", &file);
    assert_eq!(world.json("whoami"), before);
    let mut command = world.ropewalk(["whoami", "--json"]);
    let elsewhere = command.env("ROPEWALK_TOKEN", token).assert().success();
    let elsewhere: Value = serde_json::from_slice(&elsewhere.get_output().stdout).unwrap();
    assert_eq!(elsewhere, before);
    // There is a section now, and another token is a line of it.
    let made = world.json("people token ada");
    let line = format!("token_sha256 = \"{}\"", text(&made["token_sha256"]));
    assert_eq!(text(&made["settings"]), line);
    let said = world.run("people token ada");
    assert!(
        said.contains("into the section `[people.ada]` that is there"),
        "{said}"
    );
    let made = world.json("people token bob");
    let section = text(&made["settings"]);
    assert!(section.ends_with("\nrights = []"), "{section}");
    world.write("ropewalk.toml", &format!("{file}{section}\n"));
    assert_eq!(world.json("whoami"), before);
    let people = |findings: &Value| {
        let mut findings = findings.as_array().unwrap().iter();
        findings.find(|one| one["check"] == "people").cloned()
    };
    assert_eq!(people(&world.json("doctor")).unwrap()["verdict"], "ok");
}

#[test]
fn a_token_for_somebody_else_takes_nothing_from_who_was_alone_and_gives_them_nothing() {
    let world = World::scripted();
    let before = world.json("whoami");
    let file = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    let made = world.json("people token bob");
    let sections = text(&made["settings"]);
    assert_eq!(sections.matches("user = \"").count(), 1, "{sections}");
    world.write("ropewalk.toml", &format!("{file}\n{sections}\n"));
    assert_eq!(world.json("whoami"), before);
    let mut command = world.ropewalk(["whoami", "--json"]);
    let bob = command
        .env("ROPEWALK_TOKEN", text(&made["token"]))
        .assert()
        .success();
    let bob: Value = serde_json::from_slice(&bob.get_output().stdout).unwrap();
    assert_eq!((&bob["name"], &bob["rights"]), (&json!("bob"), &json!([])));
    // The next one needs no more than a section of their own.
    let made = world.json("people token eve");
    let section = text(&made["settings"]);
    assert!(section.starts_with("[people.eve]\n"), "{section}");
}

#[test]
fn rights_that_nobody_has_are_told_at_a_start_and_by_the_doctor() {
    let world = World::scripted();
    with_people(&world, &tester());
    let wanted = "nobody in `[people]` may land or spend; add \"land\", \"spend\" to the `rights` of whoever shall";
    let found = world.json("doctor");
    let mut found = found.as_array().unwrap().iter();
    let told = found.find(|finding| finding["check"] == "people").unwrap();
    assert_eq!(
        (&told["verdict"], &told["detail"]),
        (&json!("warn"), &json!(wanted))
    );
    let up = world.up();
    drop(up);
    let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    assert!(log.contains(wanted), "{log}");
}
