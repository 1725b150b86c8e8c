//! A person lands the branch of a finished build, on real git (V12, V30.5).

mod commenting;
mod confining;
mod shaping;
mod unfinished;

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command as Process;
use std::time::Duration;

use ropewalk_schemas::attempt::Evidence;
use ropewalk_schemas::build::Build;
use serde_json::{Value, json};

use crate::approvals::{specified, text, until};
use crate::lessons::objections_to;
use crate::world::{World, one_task};

/// How long a process that has ended may have poked before.
const HEARD: Duration = Duration::from_secs(10);

/// What checks the only task: its file is there, and nobody else's poison.
const CHECK: &str = "test -s a.txt && test ! -e poison";

/// A project whose files are all committed, with a build that has succeeded; returns the build's id.
pub(crate) fn built(world: &World) -> String {
    built_by(world, CHECK)
}

/// The same with a check of its own for the only task.
fn built_by(world: &World, check: &str) -> String {
    world.write("../script.yaml", &one_task(check));
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    let spec = specified(world);
    let up = world.up();
    let approve = format!(
        "spec approve {} --hash {}",
        text(&spec["id"]),
        text(&spec["hash"])
    );
    world.run(&approve);
    // However busy the machine is: the verb itself does not wait for ever.
    until(world, "build list", |builds| builds[0]["id"].is_string());
    // Named by its idea.
    let ended = world.json("build wait walks");
    assert_eq!(ended["state"], "succeeded", "{ended}");
    drop(up);
    text(&ended["id"]).to_owned()
}

pub(crate) fn events(world: &World, name: &str) -> Vec<Value> {
    let listed = world.json(&format!("event list --type {name}"));
    listed.as_array().unwrap().clone()
}

pub(crate) fn open_questions(world: &World) -> usize {
    let listed = world.json("question list");
    let open = |question: &&Value| question["state"] == "pending";
    listed.as_array().unwrap().iter().filter(open).count()
}

#[test]
fn a_finished_branch_goes_into_the_checked_out_branch_and_to_a_bare_remote() {
    let world = World::scripted();
    let build = built(&world);
    assert_eq!(open_questions(&world), 1);
    let bare = world.root().join("remote.git");
    let made = Process::new("git")
        .args(["init", "--quiet", "--bare"])
        .arg(&bare)
        .status();
    assert!(made.unwrap().success());
    world.git(&["remote", "add", "origin", "../remote.git"]);
    let before = world.git(&["rev-parse", "main"]);
    let mut preview = world.json(&format!("build land {build} --dry-run"));
    // Its review may have come by now, or not.
    let unreviewed = preview.as_object_mut().unwrap().remove("unreviewed");
    assert!(unreviewed.is_some_and(|known| known.is_boolean()));
    assert_eq!(
        preview,
        json!({ "build": build, "into": "main", "onto": before, "way": "fast-forward", "gate": false, "documents": "ideas/walks", "requirements": "1 met", "without_gate": true })
    );
    let said = world.run(&format!("build land {build} --dry-run"));
    for told in ["come along in `ideas/walks`", "gate: the project has none"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    let bare_said = world.run(&format!("build land {build} --dry-run --without-ideas"));
    assert!(!bare_said.contains("come along"), "{bare_said}");
    assert_eq!(world.git(&["rev-parse", "main"]), before);
    assert_eq!(events(&world, "build.merged"), [] as [Value; 0]);
    let done = world.json(&format!("build land {build} --push origin"));
    assert_eq!(
        (text(&done["way"]), text(&done["into"])),
        ("fast-forward", "main")
    );
    let head = world.git(&["rev-parse", "main"]);
    assert_eq!(head, world.git(&["rev-parse", "build/walks"]));
    assert_eq!(text(&done["commit"]), head);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    let file = std::fs::read_to_string(world.repository().join("a.txt"));
    assert_eq!(file.unwrap(), "a walk\n");
    assert_eq!(of_bare(&bare, "main"), head);
    let merged = events(&world, "build.merged");
    assert_eq!(merged.len(), 1);
    let shown = world.json(&format!("build show {build}"));
    assert_eq!(text(&shown["merged"]), head);
    let landed = format!("build/walks, landed in main as {}", &head[..12]);
    let said = world.run(&format!("build show {build}"));
    assert!(said.contains(&landed), "{said}");
    let spec = text(&shown["spec"]);
    let said = world.refused("spec generate walks", 1);
    let next = format!("`walks` has landed; for a change say `ropewalk spec revise {spec} WORDS`");
    assert!(said.contains(&next), "{said}");
    assert_eq!(
        open_questions(&world),
        0,
        "nobody is asked about it any more"
    );
    let said = world.refused(&format!("build land {build}"), 1);
    assert!(said.contains("landed already"), "{said}");
    world.run(&format!("build land {build} --push {}", bare.display()));
    assert_eq!(events(&world, "build.merged").len(), 1);
}

#[test]
fn who_lands_is_told_what_the_review_holds_against_it() {
    let world = World::scripted();
    let build = built(&world);
    let looked = format!("build land {build} --dry-run");
    // What was seen of an end before is no word about this one.
    let mut later: Build =
        serde_json::from_value(world.json(&format!("build show {build}"))).unwrap();
    later.completed_at = Some("2190-01-01T00:00:00Z".parse().unwrap());
    world.commit(|changes| {
        changes.put(&later);
    });
    assert_eq!(world.json(&looked)["unreviewed"], true);
    let unseen = "but nobody has reviewed it as it stands\n";
    let said = world.run(&looked);
    assert!(said.contains(unseen), "{said}");
    world.commit(|changes| {
        changes.insert(&objections_to(build.parse().unwrap()));
    });
    let told = "FR-6 of T-001 for missed: planned help names both, done it names one";
    let objections = &world.json(&looked)["objections"];
    assert_eq!(objections[0]["requirement"], "FR-6", "{objections}");
    for verb in [looked, format!("build land {build}")] {
        let said = world.run(&verb);
        assert!(said.contains(told), "{verb}: {said}");
        assert!(!said.contains(unseen), "{verb}: {said}");
    }
    assert_eq!(
        events(&world, "build.merged").len(),
        1,
        "it refuses nothing"
    );
    let plan = world.git(&["show", "main:ideas/walks/build/spec.md"]);
    for said in ["status: approved\n", "approved_by: "] {
        assert!(plan.contains(said), "{plan}");
    }
}

#[test]
fn documents_that_another_project_landed_are_not_replaced() {
    let world = World::scripted();
    let others = "ideas/walks/build/spec.md";
    world.write(others, "# Specification: somebody else's\n");
    let build = built(&world);
    let land = format!("build land {build}");
    let why = "`main` has documents in `ideas/walks` that no landing of this project brought";
    let asked = &world.json("question list")[0];
    let told = text(&asked["text"]);
    assert!(told.contains(why), "{told}");
    let choices = asked["choices"].as_array().unwrap().iter();
    let recommended = choices.filter(|choice| choice["recommended"] == true);
    let recommended: Vec<&str> = recommended.map(|choice| text(&choice["id"])).collect();
    assert_eq!(recommended, ["leave"], "merging would be refused");
    for refused in [land.clone(), format!("{land} --dry-run")] {
        let said = world.refused(&refused, 1);
        assert!(said.contains(why), "{said}");
        assert!(said.contains("--without-ideas` leaves them"), "{said}");
    }
    world.run(&format!("{land} --without-ideas"));
    let kept = world.git(&["show", &format!("main:{others}")]);
    assert_eq!(kept, "# Specification: somebody else's");
    assert_eq!(world.git(&["show", "main:a.txt"]), "a walk");
}

#[test]
fn the_beginning_of_a_name_is_enough_while_no_other_begins_so() {
    let world = World::scripted();
    let build = built(&world);
    assert_eq!(world.json("build show wal")["id"], build);
    let spec = world.json("spec show wa");
    assert_eq!(spec["idea"], "walks");
    world.run("idea new Walls");
    let said = world.refused("build show wal", 1);
    assert!(said.contains("fits 2 of them: walks, walls"), "{said}");
    assert_eq!(world.json("build show walk")["id"], build);
    let said = world.refused("question show walk", 1);
    assert!(said.contains("no question is called `walk`"), "{said}");
    world.refused("build show walkers", 1);
}

#[test]
fn after_an_earlier_landing_only_a_branch_that_has_it_is_sent_on() {
    let world = World::scripted();
    let build = built(&world);
    let bare = world.root().join("remote.git");
    world.git(&["init", "--quiet", "--bare", "../remote.git"]);
    world.git(&["branch", "release"]);
    world.run(&format!("build land {build} --into release"));
    let landed = world.git(&["rev-parse", "release"]);
    let push = format!("build land {build} --push {}", bare.display());
    // The build began from `main`, which has nothing of it.
    let said = world.refused(&push, 1);
    assert!(
        said.contains("`main`") && said.contains("`--into`"),
        "{said}"
    );
    assert_eq!(of_bare(&bare, "--branches"), "");
    world.git(&["checkout", "--quiet", "release"]);
    world.write("b.txt", "later\n");
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=later"]);
    let sent = world.json(&format!("{push} --into release"));
    assert_eq!(text(&sent["commit"]), landed);
    assert_eq!(of_bare(&bare, "release"), landed);
    assert_eq!(
        of_bare(&bare, "--branches"),
        landed,
        "and nothing else is sent, what came on the branch since least of all"
    );
    // Whoever sends the branch on himself is not in the way of another try.
    world.git(&["push", "--quiet", "../remote.git", "release"]);
    let tip = world.git(&["rev-parse", "release"]);
    world.run(&format!("{push} --into release"));
    assert_eq!(of_bare(&bare, "release"), tip);
}

#[test]
fn who_runs_hears_of_a_landing_that_could_not_be_sent_on() {
    let world = World::scripted();
    let build = built(&world);
    let socket = world.state().join("poke.sock");
    // The process that was killed left its own.
    drop(std::fs::remove_file(&socket));
    let socket = UnixDatagram::bind(socket).unwrap();
    socket.set_read_timeout(Some(HEARD)).unwrap();
    // What is no place at all is refused before anything moves.
    let said = world.refused(&format!("build land {build} --push nowhere"), 1);
    assert!(said.contains("it is not landed"), "{said}");
    assert_eq!(events(&world, "build.merged").len(), 0);
    let no_repository = world.home();
    let said = world.refused(
        &format!("build land {build} --push {}", no_repository.display()),
        1,
    );
    assert!(said.contains("not pushed"), "{said}");
    assert_eq!(events(&world, "build.merged").len(), 1);
    assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 1);
}

fn of_bare(bare: &Path, branch: &str) -> String {
    let output = Process::new("git")
        .arg("--git-dir")
        .arg(bare)
        .args(["rev-parse", branch])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_requirement_leads_to_its_commit_and_a_commit_to_its_requirement() {
    let world = World::scripted();
    let build = built(&world);
    let shown = world.json(&format!("build show {build}"));
    assert_eq!(shown["requirements"][0]["met"], true, "{shown}");
    assert_eq!(shown["spending"]["calls"], 2);
    assert!(
        shown["quote"]["tokens_low"].as_u64().unwrap() > 0,
        "{shown}"
    );
    assert!(shown["spent"]["tokens"].as_u64().unwrap() > 0, "{shown}");
    let traced = world.json(&format!("build show {build} --requirement fr-1"));
    assert_eq!(text(&traced["text"]), "Walks are listed.");
    let link = &traced["tasks"][0];
    let commit = text(&link["commit"]);
    // The last commit of a branch notes what became of the tasks.
    assert_eq!(commit, world.git(&["rev-parse", "build/walks~1"]));
    assert_eq!(text(&link["evidence"][0]["verdict"]), "passed");
    assert_eq!(text(&link["evidence"][0]["commit"]), commit);
    let origin = world.json(&format!("build show {build} --commit {}", &commit[..10]));
    assert_eq!(text(&origin["task"]), "T-001");
    assert_eq!(origin["requirements"][0]["id"], "FR-1");
    assert_eq!(origin["landed"], true);
    let told = world.run(&format!("build show {build}"));
    assert!(told.contains("quoted") && told.contains("FR-1"), "{told}");
    let said = world.refused(&format!("build show {build} --requirement FR-9"), 1);
    assert!(said.contains("no requirement is called `FR-9`"), "{said}");
    let said = world.refused(&format!("build show {build} --commit 0000000"), 1);
    assert!(said.contains("no commit"), "{said}");
    let twin = twin(&world, &build, commit);
    let said = world.refused(&format!("build show {build} --commit {}", &commit[..10]), 1);
    assert!(said.contains(commit) && said.contains(&twin), "{said}");
    let origin = world.json(&format!("build show {build} --commit {commit}"));
    assert_eq!(text(&origin["commit"]), commit);
}

#[test]
fn a_requirement_that_no_check_shows_is_told_as_unverified() {
    let world = World::scripted();
    let build = built_by(&world, "true");
    let shown = world.json(&format!("build show {build}"));
    assert_eq!(shown["requirements"][0]["fulfilment"], "unverified");
    assert_eq!(shown["requirements"][0]["met"], false, "{shown}");
    let said = world.run(&format!("build land {build} --dry-run"));
    assert!(said.contains("0 met, 1 unverified (FR-1)"), "{said}");
    let told = world.run(&format!("build show {build}"));
    let line = told
        .lines()
        .find(|line| line.contains("T-001") && line.contains("FR-1"));
    assert!(
        line.is_some_and(|line| line.contains("unverified")),
        "{told}"
    );
    // What the landing says of them stands below.
    let summed_up = "\nrequirements: 0 met, 1 unverified (FR-1)";
    assert!(told.contains(summed_up), "{told}");
    let traced = world.run(&format!("build show {build} --requirement FR-1"));
    assert!(traced.starts_with("FR-1 is unverified: "), "{traced}");
}

/// Puts into the store that the gate saw a commit whose id begins like `commit`; returns its id.
fn twin(world: &World, build: &str, commit: &str) -> String {
    let last = if commit.ends_with('0') { '1' } else { '0' };
    let twin = format!("{}{last}", &commit[..commit.len() - 1]);
    let evidence: Evidence = serde_json::from_value(json!({
        "build": build, "commit": twin, "tree": "", "verdict": "failed", "at": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    world.commit(|changes| {
        changes.insert(&evidence);
    });
    twin
}

/// A model that specifies a second task beside the first, and writes the file of each.
fn two_tasks() -> String {
    let first = one_task(CHECK);
    let (specifies, builds) = first.split_once("- agent: \"build\"").unwrap();
    let end = "depends_on: [] } ] } }] }";
    let (whole, _) = specifies.split_once(end).unwrap();
    let second = r#"depends_on: [] },
      { id: "T-002", phase: "project", action: "CREATE", file: "b.txt", more_files: [], requirements: [{ id: "FR-1", text: "b" }], gotchas: [], validation: { command: "test -s b.txt", expected: "exit 0" }, depends_on: [] } ] } }] }
- agent: "build"
  task: "T-002"
  turn: 1
  reply: { tools: [{ name: "write", input: { path: "b.txt", content: "a rest\n" } }] }
"#;
    format!("{whole}{second}- agent: \"build\"{builds}")
}

#[test]
fn a_build_that_went_on_from_another_is_done_again_to_the_same_commits() {
    let world = World::scripted();
    let build = built(&world);
    let first = world.json(&format!("build show {build}"));
    let spec = text(&first["spec"]);
    world.write("../script.yaml", &two_tasks());
    let up = world.up();
    world.run(&format!("spec revise {spec} rests too"));
    let second = until(&world, &format!("spec show {spec}"), |spec| {
        spec["state"] == "generated" && spec["revision"] == 2
    });
    let approve = format!("spec approve {spec} --hash {}", text(&second["hash"]));
    world.run(&approve);
    let builds = until(&world, "build list", |builds| builds[1]["id"].is_string());
    let next = text(&builds[1]["id"]).to_owned();
    let ended = until(&world, &format!("build show {next}"), |build| {
        build["completed_at"].is_string()
    });
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(text(&ended["continues"]), build);
    assert_ne!(ended["spending"]["calls"], 0, "one task was built");
    drop(up);

    // Nobody would answer.
    world.write("../script.yaml", "[]");
    let into = world.root().join("again");
    let replayed = world.json(&format!("build replay {next} --into {}", into.display()));
    assert_eq!(replayed["same"], true, "{replayed}");
    assert_eq!(replayed["strayed"], Value::Null, "{replayed}");
    let log = |repository: &Path| {
        let mut git = Process::new("git");
        git.args([
            "log",
            "--format=%s %T",
            "build/walks",
            "--",
            "a.txt",
            "b.txt",
        ]);
        let output = git.current_dir(repository).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (had, has) = (log(&world.repository()), log(&into.join("repo")));
    assert_eq!(had.lines().count(), 2, "{had}");
    assert_eq!(had, has);
}

#[test]
fn an_amended_specification_is_built_on_what_stands() {
    let world = World::scripted();
    let build = built(&world);
    let first = world.json(&format!("build show {build}"));
    let spec = text(&first["spec"]);
    let up = world.up();
    world.run(&format!("spec revise {spec} say it differently"));
    let second = until(&world, &format!("spec show {spec}"), |spec| {
        spec["state"] == "generated" && spec["revision"] == 2
    });
    let approve = format!("spec approve {spec} --hash {}", text(&second["hash"]));
    world.run(&approve);
    let builds = until(&world, "build list", |builds| builds[1]["id"].is_string());
    let next = text(&builds[1]["id"]).to_owned();
    let ended = until(&world, &format!("build show {next}"), |build| {
        build["completed_at"].is_string()
    });
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(text(&ended["continues"]), build);
    assert_eq!(ended["tasks"][0]["commit"], first["tasks"][0]["commit"]);
    assert_eq!(ended["requirements"][0]["met"], true, "{ended}");
    assert_eq!(ended["spending"]["calls"], 0, "nothing was built again");
    let said = world.refused(&format!("build resume {build}"), 1);
    assert!(said.contains("was amended"), "{said}");
    let said = world.refused(&format!("build retry {build} T-001"), 1);
    assert_eq!(said.matches("so it cannot").count(), 1, "{said}");
    drop(up);
}

#[test]
fn work_that_went_on_beside_a_build_is_joined_and_gated() {
    let world = World::scripted();
    let build = built(&world);
    world.write("b.txt", "beside\n");
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=beside"]);
    let beside = world.git(&["rev-parse", "main"]);
    world.write("b.txt", "not committed\n");
    for verb in ["build land {} --dry-run", "build land {}"] {
        let said = world.refused(&verb.replace("{}", &build), 1);
        assert!(said.contains("commit or stash them"), "{verb}: {said}");
    }
    world.write("b.txt", "beside\n");
    let preview = world.json(&format!("build land {build} --dry-run"));
    assert_eq!(
        (text(&preview["way"]), &preview["gate"]),
        ("merge", &json!(true))
    );
    assert_eq!(world.git(&["rev-parse", "main"]), beside);
    let done = world.json(&format!("build land {build}"));
    assert_eq!(text(&done["way"]), "merge");
    let parents = world.git(&["log", "-1", "--format=%P", "main"]);
    let head = world.git(&["rev-parse", "build/walks"]);
    assert_eq!(parents, format!("{beside} {head}"));
    for (file, content) in [("a.txt", "a walk\n"), ("b.txt", "beside\n")] {
        let found = std::fs::read_to_string(world.repository().join(file));
        assert_eq!(found.unwrap(), content);
    }
}

#[test]
fn what_stands_against_a_landing_changes_nothing_and_is_said() {
    let world = World::scripted();
    let build = built(&world);
    let land = format!("build land {build}");
    // A checkout with changes of its own.
    world.write(
        "ropewalk.toml",
        &format!("{}\n# mine\n", world.git(&["show", "main:ropewalk.toml"])),
    );
    let before = world.git(&["rev-parse", "main"]);
    let said = world.refused(&land, 1);
    assert!(said.contains("not committed"), "{said}");
    assert_eq!(world.git(&["rev-parse", "main"]), before);
    assert_eq!(world.git(&["status", "--porcelain"]), "M ropewalk.toml");
    world.git(&["checkout", "--quiet", "ropewalk.toml"]);
    // A branch that is not there, and the build's own.
    let said = world.refused(&format!("{land} --into trunk"), 1);
    assert!(said.contains("no branch `trunk`"), "{said}");
    let said = world.refused(&format!("{land} --into build/walks"), 1);
    assert!(said.contains("of the build itself"), "{said}");
    // What passes alone does not pass together.
    world.git(&["branch", "poisoned"]);
    world.git(&["checkout", "--quiet", "poisoned"]);
    world.write("poison", "x\n");
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=poison"]);
    world.git(&["checkout", "--quiet", "main"]);
    let poisoned = world.git(&["rev-parse", "poisoned"]);
    let said = world.refused(&format!("{land} --into poisoned"), 1);
    assert!(said.contains("not together"), "{said}");
    assert_eq!(world.git(&["rev-parse", "poisoned"]), poisoned);
    // Both sides changed the same place.
    world.write("a.txt", "another walk\n");
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=mine"]);
    let mine = world.git(&["rev-parse", "main"]);
    let refused = world.ropewalk(land.split_whitespace()).assert().code(1);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    for side in ["a walk", "another walk", "git merge build/walks"] {
        assert!(said.contains(side), "{said}");
    }
    assert_eq!(world.git(&["rev-parse", "main"]), mine);
    assert_eq!(events(&world, "build.merged").len(), 0);
    assert_eq!(open_questions(&world), 1);
    // Merged by hand, it is only recorded.
    world.git(&[
        "merge",
        "--quiet",
        "--strategy-option=ours",
        "--no-edit",
        "build/walks",
    ]);
    let done = world.json(&land);
    assert_eq!(text(&done["way"]), "contained");
    assert_eq!(events(&world, "build.merged").len(), 1);
}

#[test]
fn an_unknown_or_unfinished_build_is_refused_in_one_line() {
    let world = World::scripted();
    world.write("../script.yaml", &one_task(CHECK));
    let said = world.refused("build land 0197a3c0-1111-7abc-8def-0123456789ab", 1);
    assert!(said.contains("build list"), "{said}");
    let spec = specified(&world);
    // Read at the start, it keeps the build from ending before it is stopped.
    world.write(
        "../script.yaml",
        "- agent: build\n  reply: { delay_ms: 60000, text: \"x\" }\n",
    );
    let up = world.up();
    let approve = format!(
        "spec approve {} --hash {}",
        text(&spec["id"]),
        text(&spec["hash"])
    );
    let build = text(&world.json(&approve)["build"]).to_owned();
    let of_build = format!("build show {build}");
    until(&world, &of_build, |build| {
        build["tasks"][0]["state"] == "working"
    });
    let preview = world.json(&format!("build stop {build} --dry-run"));
    assert_eq!(preview["build"], build.as_str(), "{preview}");
    assert_eq!(
        preview["interrupts"].as_array().unwrap().len(),
        1,
        "{preview}"
    );
    assert_eq!(preview["landed"], serde_json::json!([]), "{preview}");
    assert_eq!(world.json(&of_build)["state"], "running");
    world.run(&format!("build stop {build}"));
    let twice = world.refused(&format!("build stop {build} --dry-run"), 1);
    assert!(twice.contains("it has ended"), "{twice}");
    let said = world.refused(&format!("build land {build}"), 1);
    let next = format!("only one that succeeded is landed: `ropewalk build resume {build}`");
    assert!(said.contains(&next), "{said}");
    drop(up);
}
