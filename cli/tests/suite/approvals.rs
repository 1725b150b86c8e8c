//! Only an approved specification builds, and only once (V06), asked for from several processes.

use std::process::{Command as Process, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::landing::built;
use crate::world::World;

/// Makes an idea whose documents are complete.
pub(crate) fn documented(world: &World, slug: &str) {
    world.run(&format!("idea new Walks --slug {slug}"));
    document(world, slug);
}

/// Writes the documents that a specification cannot do without.
pub(crate) fn document(world: &World, slug: &str) {
    let idea = world.json(&format!("idea show {slug}"));
    let folder = idea["folder"].as_str().unwrap();
    let brief = "# Brief\n\nKeep a list of the walks of a person, in three plain files.\n";
    for (name, text) in [
        (
            "README.md",
            "# Walks\n\nPeople who walk every day forget where they have been.\n",
        ),
        ("planning/brief.md", brief),
    ] {
        let path = std::path::Path::new(folder).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Makes such an idea, and returns its specification as `spec show` has it.
pub(crate) fn specified(world: &World) -> Value {
    documented(world, "walks");
    world.json("spec generate walks --complexity simple")
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Runs two processes at the same time.
fn both(world: &World, line: &str) -> [Output; 2] {
    let start = || {
        Process::new(env!("CARGO_BIN_EXE_ropewalk"))
            .args(line.split_whitespace())
            .current_dir(world.repository())
            .env("HOME", world.home())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let (first, second) = (start(), start());
    [
        first.wait_with_output().unwrap(),
        second.wait_with_output().unwrap(),
    ]
}

/// Looks until `found` says so; the processes under test have no other way to tell.
pub(crate) fn until(world: &World, line: &str, found: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let answer = world.json(line);
        if found(&answer) {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_mins(3), "{line}: {answer}");
    }
}

#[test]
fn a_build_before_the_approval_is_refused_and_does_not_come_to_be() {
    let world = World::scripted();
    let spec = specified(&world);
    let id = text(&spec["id"]);
    for verb in ["resume", "pause", "stop"] {
        let said = world.refused(&format!("build {verb} {id}"), 1);
        assert!(said.contains("not approved"), "{said}");
    }
    let up = world.up();
    let said = world.refused(&format!("build resume {id}"), 1);
    assert!(said.contains("not approved"), "{said}");
    assert_eq!(up.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
    assert_eq!(world.json("build list"), Value::Array(Vec::new()));
    let built = world.json("event list --type build.*");
    assert_eq!(built, Value::Array(Vec::new()));
    assert_eq!(world.git(&["branch", "--list", "build/*"]), "");
}

#[test]
fn two_approvals_at_once_begin_one_build_and_tell_the_second_who_was_first() {
    let world = World::scripted();
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    assert_eq!(spec["content"]["tasks"].as_array().unwrap().len(), 3);
    let outputs = both(&world, &format!("spec approve {id} --hash {hash}"));
    let codes: Vec<Option<i32>> = outputs.iter().map(|output| output.status.code()).collect();
    assert!(
        codes.contains(&Some(0)) && codes.contains(&Some(1)),
        "{outputs:?}"
    );
    let loser = outputs
        .iter()
        .find(|output| !output.status.success())
        .unwrap();
    let said = String::from_utf8_lossy(&loser.stderr);
    assert!(said.contains("already approved by ada"), "{said}");
    let approvals = world.json("event list --type spec.approved");
    assert_eq!(approvals.as_array().unwrap().len(), 1);
    let up = world.up();
    until(&world, "build list", |builds| builds[0]["tasks_total"] == 3);
    let said = world.refused(&format!("spec approve {id} --hash {hash}"), 1);
    assert!(said.contains("already approved by ada"), "{said}");
    let builds = world.json("build list");
    assert_eq!(builds.as_array().unwrap().len(), 1, "{builds}");
    assert_eq!(text(&builds[0]["hash"]), hash);
    drop(up);
}

#[test]
fn an_old_hash_and_a_missing_hash_are_refused() {
    let world = World::scripted();
    let first = specified(&world);
    let (id, old) = (text(&first["id"]), text(&first["hash"]));
    let said = world.refused(&format!("spec diff {id}"), 1);
    assert!(said.contains("has one revision"), "{said}");
    let said = world.refused(&format!("spec approve {id}"), 3);
    assert!(
        said.contains("spec show") && said.contains("price"),
        "{said}"
    );
    assert!(
        !said.contains(old),
        "what is approved is read first: {said}"
    );
    let up = world.up();
    world.run(&format!("spec revise {id} rests too"));
    let second = until(&world, &format!("spec show {id}"), |spec| {
        spec["state"] == "generated" && spec["revision"] == 2
    });
    let new = text(&second["hash"]);
    assert_ne!(old, new);
    let compared = world.json(&format!("spec diff {id}"));
    let difference = text(&compared["difference"]);
    for line in [
        "-# Specification: Walks\n",
        "+# Specification: Walks and rests\n",
        "-### T-002: CREATE b.txt\n",
    ] {
        assert!(difference.contains(line), "{line}: {difference}");
    }
    let said = world.refused(&format!("spec diff {id} 1 7"), 1);
    assert!(
        said.contains("has no revision 7; its newest is 2"),
        "{said}"
    );
    let said = world.refused(&format!("spec approve {id} --hash {old}"), 1);
    assert!(said.contains("read revision 2"), "{said}");
    assert!(
        !said.contains(new),
        "what is approved is read first: {said}"
    );
    assert_eq!(world.json("build list"), Value::Array(Vec::new()));
    let done = world.json(&format!("spec approve {id} --hash {new} --priority 2"));
    assert_eq!(done["departures"], json!([]), "the files are as written");
    let build = text(&done["build"]);
    let listed = until(&world, "build list", |builds| builds[0]["id"].is_string());
    assert_eq!(listed[0]["priority"], 2, "{listed}");
    let ended = until(&world, &format!("build show {build}"), |build| {
        build["state"] == "succeeded" || build["state"] == "failed"
    });
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(
        ended["tasks"].as_array().unwrap().len(),
        1,
        "the tasks of the approved hash"
    );
    assert_eq!(world.git(&["show", "build/walks:a.txt"]), "a walk");
    let log = world.run(&format!("build log {build} --follow"));
    assert!(
        log.contains("task.completed") && log.contains("build.completed"),
        "{log}"
    );
    for told in ["calls write path=a.txt", "| +a walk", "the gate took it"] {
        assert!(log.contains(told), "{told}: {log}");
    }
    let entries = world.json(&format!("build log {build}"));
    let steps = entries.as_array().unwrap().iter();
    let costs: Vec<&Value> = steps
        .filter(|entry| entry["kind"] == "message_ended")
        .map(|entry| &entry["usage"]["model"])
        .collect();
    assert_eq!(costs, ["x", "x"]);
    drop(up);
}

#[test]
fn a_specification_is_checked_again_and_put_away() {
    let world = World::scripted();
    let spec = specified(&world);
    let id = text(&spec["id"]);
    assert_eq!(world.json(&format!("spec validate {id}"))["ok"], true);
    let idea = world.json("idea show walks");
    let plan = std::path::Path::new(text(&idea["folder"])).join("build/tasks.md");
    std::fs::write(&plan, "nothing\n").unwrap();
    let checked = world.ropewalk(["spec", "validate", id]).assert().code(1);
    let said = String::from_utf8_lossy(&checked.get_output().stdout).into_owned();
    assert!(said.contains("tasks.md"), "{said}");
    world.run(&format!("spec reject {id} --reason changed"));
    assert_eq!(world.json("spec list --idea walks")[0]["state"], "rejected");
    let hash = text(&spec["hash"]);
    let said = world.refused(&format!("spec approve {id} --hash {hash}"), 1);
    assert!(said.contains("rejected"), "{said}");
}

/// Changes the tasks.md in the folder of the idea, as somebody does by hand.
fn edit_tasks(world: &World, change: impl FnOnce(String) -> String) {
    let idea = world.json("idea show walks");
    let plan = std::path::Path::new(text(&idea["folder"])).join("build/tasks.md");
    let before = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, change(before)).unwrap();
}

#[test]
fn who_approves_is_told_in_one_line_that_a_file_says_something_else() {
    let world = World::scripted();
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    edit_tasks(&world, |tasks| tasks.replace("b.txt", "z.txt"));
    let said = world.run(&format!("spec approve {id} --hash {hash}"));
    let told: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("build/tasks.md"))
        .collect();
    assert_eq!(told.len(), 1, "{said}");
    let show = format!("`ropewalk spec show {id}`");
    let revise = format!("`ropewalk spec revise {id} WORDS`");
    for part in [
        "differs from the stored revision",
        show.as_str(),
        revise.as_str(),
    ] {
        assert!(told[0].contains(part), "{part}: {said}");
    }
    assert!(!said.contains("build/spec.md"), "{said}");
    let approved = world.json(&format!("spec show {id}"));
    assert_eq!(approved["approval"]["hash"], spec["hash"]);
    assert_eq!(approved["content"], spec["content"]);
}

#[test]
fn what_waits_for_an_approval_is_shown_with_how_that_is_given() {
    let world = World::scripted();
    let spec = specified(&world);
    let hash = &text(&spec["hash"])[..16];
    let approve = format!("spec approve walks --hash {hash}");
    let shown = world.run("spec show walks");
    let last = shown.trim_end().lines().last().unwrap();
    assert!(last.contains(&format!("`ropewalk {approve}`")), "{shown}");
    world.run(&approve);
    let shown = world.run("spec show walks");
    assert!(!shown.contains("ropewalk spec approve"), "{shown}");
}

#[test]
fn an_approval_names_a_damaged_file_as_json() {
    let world = World::scripted();
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    edit_tasks(&world, |_| "nothing\n".to_owned());
    let done = world.json(&format!("spec approve {id} --hash {hash}"));
    let departures = done["departures"].as_array().unwrap();
    assert_eq!(departures.len(), 1, "{done}");
    let told = text(&departures[0]);
    assert!(
        told.contains("build/tasks.md") && told.contains("front matter"),
        "{told}"
    );
    assert_eq!(world.json(&format!("spec show {id}"))["state"], "approved");
}

#[test]
fn the_price_of_what_is_approved_is_told_without_a_bracket_within_a_bracket() {
    let world = World::scripted();
    let spec = specified(&world);
    let approve = format!("spec approve {}", text(&spec["id"]));
    let missing = world.refused(&approve, 3);
    let approved = world.run(&format!("{approve} --hash {}", text(&spec["hash"])));
    for said in [missing, approved] {
        let (_, basis) = said.split_once("tokens, unknown price (").unwrap();
        assert!(basis.contains(')') && !basis.contains("))"), "{said}");
        assert_eq!(said.matches('(').count(), 1, "{said}");
    }
}

#[test]
fn a_specification_without_its_documents_is_refused_by_name_until_they_are_there() {
    let world = World::scripted();
    world.run("idea new Walks --slug walks");
    let output = world
        .ropewalk(["spec", "generate", "walks"])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("planning/brief.md"), "{said}");
    assert!(said.contains("`ropewalk idea done walks`"), "{said}");
    document(&world, "walks");
    let made = world.json("spec generate walks");
    let absent = made["content"]["document"]["missing_inputs"].to_string();
    for input in [
        "target-users.md",
        "problem-solution.md",
        "planning/mvp-scope.md",
        "research/",
    ] {
        assert!(absent.contains(input), "`{input}` is missing in {absent}");
    }
}

#[test]
fn a_revision_is_written_by_the_verb_that_asks_for_it_where_nobody_else_runs() {
    let world = World::scripted();
    let first = specified(&world);
    let id = text(&first["id"]);
    let second = world.json("spec revise walks rests too");
    assert_eq!(
        (&second["id"], &second["state"], &second["revision"]),
        (&first["id"], &json!("generated"), &json!(2))
    );
    assert_eq!(second["feedback"][0], "rests too");
    assert_eq!(
        second["content"]["document"]["title"], "Walks and rests",
        "{second}"
    );
    let shown = world.json(&format!("spec show {id}"));
    assert_eq!(shown["hash"], second["hash"]);
}

#[test]
fn a_revision_that_nobody_is_left_to_write_is_taken_up_by_what_the_refusal_names() {
    let world = World::scripted();
    let first = specified(&world);
    let (id, hash) = (text(&first["id"]), text(&first["hash"]));
    // It asks for a revision as `spec revise` does, and waits for none.
    let of = &hash[..16];
    let comment = format!("spec comment {id} --of {of} --on spec.md:1 rests");
    world.run(&comment);
    let said = world.refused(&comment, 1);
    assert!(said.contains("`ropewalk spec generate IDEA`"), "{said}");
    let second = world.json("spec generate walks");
    assert_eq!(
        (&second["id"], &second["state"], &second["revision"]),
        (&first["id"], &json!("generated"), &json!(2))
    );
}

#[test]
fn a_wish_for_another_revision_leaves_an_approval_as_it_was_given() {
    let world = World::scripted();
    let build = built(&world);
    let spec = text(&world.json(&format!("build show {build}"))["spec"]).to_owned();
    let show = format!("spec show {spec}");
    let approval = world.json(&show)["approval"].clone();
    assert_eq!(
        (&approval["by"], &approval["revision"]),
        (&json!("ada"), &json!(1))
    );

    // It asks for a revision as `spec revise` does, and waits for none.
    let of = &text(&approval["hash"])[..16];
    world.run(&format!(
        "spec comment {spec} --of {of} --on spec.md:1 rests"
    ));
    let asked = world.json(&show);
    assert_eq!(
        (&asked["state"], &asked["approval"]),
        (&json!("draft"), &approval)
    );
    let receipt = world.json(&format!("spec reject {spec} --reason unwanted"));
    assert_eq!(receipt["state"], "approved");
    let put_away = world.json(&show);
    assert_eq!(
        (&put_away["state"], &put_away["approval"]),
        (&json!("approved"), &approval)
    );
    let said = world.run(&show);
    assert!(said.contains("put away: unwanted"), "{said}");
    world.refused(&format!("spec reject {spec}"), 1);

    let up = world.up();
    world.run(&format!("spec revise {spec} rests too"));
    let second = until(&world, &show, |spec| spec["revision"] == 2);
    assert_eq!(
        (&second["state"], &second["approval"]),
        (&json!("generated"), &approval)
    );
    let folder = text(&world.json("idea show walks")["folder"]).to_owned();
    let document = std::fs::read_to_string(std::path::Path::new(&folder).join("build/spec.md"));
    assert!(
        !document.unwrap().contains("approved_by"),
        "nobody approved revision 2"
    );
    let said = world.run(&format!("spec reject {spec}"));
    assert!(said.contains("stays as it was approved"), "{said}");
    let stands = world.json(&show);
    assert_eq!(
        (&stands["state"], &stands["revision"], &stands["hash"]),
        (&json!("approved"), &json!(1), &approval["hash"])
    );
    assert_eq!(stands["approval"], approval);
    assert_eq!(stands.get("reason"), None, "nobody said why");
    drop(up);
}
