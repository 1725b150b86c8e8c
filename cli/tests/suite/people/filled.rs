//! A store in which everything that can be named is there, and a description of the API that names it: who makes up requests
//! by that comes to what is there as often as to what is not.

use ropewalk_schemas::question::QuestionKind;
use serde_json::{Value, json};

use crate::alerts::alert;
use crate::approvals::{documented, specified, text, until};
use crate::questions::question;
use crate::world::World;

/// The beginning of a path or a schema, what it calls a name, and the names that there are.
type NameRow = (&'static str, &'static str, Vec<String>);

/// What names something in paths and bodies.
pub(super) struct Names {
    paths: Vec<NameRow>,
    bodies: Vec<NameRow>,
}

/// Lists the texts of one field of `rows`.
fn each(rows: &Value, field: &str) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    let names: Vec<String> = rows.map(|row| text(&row[field]).to_owned()).collect();
    assert!(!names.is_empty(), "there is no {field}");
    names
}

/// Fills the store: a conversation with a file, specifications to approve and approved, a build that ended and one that
/// does not, questions, lessons, a review, events that nobody could handle, alerts.
pub(super) fn fill(world: &World) {
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    let up = world.up();
    let walks = text(&specified(world)["id"]).to_owned();
    world.write_untrusted("../notes.md", "Count steps.\n");
    let notes = world.root().join("notes.md");
    world.run(&format!("idea attach walks {}", notes.display()));
    world.run(&format!("spec revise {walks} rests too"));
    approved(world, &walks, 2);
    let ended = world.json("build wait walks");
    assert_eq!(ended["state"], "succeeded", "{ended}");
    documented(world, "runs");
    let runs = world.json("spec generate runs --complexity simple");
    approved(world, text(&runs["id"]), 1);
    for idea in ["hills", "dales", "moors"] {
        documented(world, idea);
        world.run(&format!("spec generate {idea} --complexity simple"));
    }
    documented(world, "lakes");
    world.run("knowledge add Rivers flood in spring so keep the tables apart");
    until(world, "event list --type review.completed", |reviews| {
        reviews
            .as_array()
            .is_some_and(|reviews| !reviews.is_empty())
    });
    assert_eq!(up.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
    world.run("idea new Mute --slug mute --text Steps");
    let mut chat = world.ropewalk(["idea", "chat", "mute"]);
    chat.write_stdin("hello\nand another thing\n")
        .assert()
        .code(1);
    world.commit(|changes| {
        changes.insert(&question(1, QuestionKind::Blocking, false, true));
        changes.insert(&question(2, QuestionKind::Clarifying, true, false));
        changes.insert(&alert("component/loop-1", "`loop-1` is silent"));
        changes.insert(&alert("component/monitor", "`monitor` is silent"));
    });
}

/// Approves a revision once it is there.
fn approved(world: &World, spec: &str, revision: u32) {
    let shown = until(world, &format!("spec show {spec}"), |shown| {
        shown["state"] == "generated" && shown["revision"] == revision
    });
    let hash = text(&shown["hash"]);
    world.run(&format!("spec approve {spec} --hash {hash}"));
    until(world, "build list", |builds| {
        let mut builds = builds.as_array().unwrap().iter();
        builds.any(|build| build["hash"] == hash)
    });
}

/// Returns one field of the row of an idea.
fn of(rows: &Value, idea: &str, field: &str) -> Vec<String> {
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["idea"] == idea).unwrap();
    one(text(&row[field]))
}

fn one(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

/// Reads what there is in a filled store.
pub(super) fn names(world: &World) -> Names {
    let (specs, builds) = (world.json("spec list"), world.json("build list"));
    let listed = |noun: &str| each(&world.json(&format!("{noun} list")), "id");
    let mut paths = ended(world, &specs, &builds);
    let ideas = each(&world.json("idea list"), "slug");
    paths.extend([
        ("/api/ideation/sessions", "slug", ideas),
        ("/api/specifications/{id}/difference", "from", one("1")),
        ("/api/specifications/{id}/difference", "to", one("2")),
        ("/api/specifications", "id", each(&specs, "id")),
        ("/api/builds", "id", each(&builds, "id")),
        ("/api/tasks", "build", each(&builds, "id")),
        ("/api/tasks", "task", one("T-001")),
        ("/api/events", "id", listed("event")),
        ("/api/questions", "id", listed("question")),
        ("/api/knowledge", "id", listed("knowledge")),
        ("/api/reviews", "id", listed("review")),
    ]);
    let bodies = in_bodies(world, &specs);
    Names { paths, bodies }
}

/// Names what ends something, so that it ends that alone.
fn ended(world: &World, specs: &Value, builds: &Value) -> Vec<NameRow> {
    let letters = each(&world.json("dead-letter list"), "id");
    // What is replayed comes back, what is discarded does not.
    let [replayed, .., discarded] = letters.as_slice() else {
        panic!("{letters:?}");
    };
    let position = |letter: &str| one(letter.split_once('/').unwrap().0);
    let discard = "/api/dead-letters/{position}/{subscriber}/discard";
    let of_spec = |idea: &str| of(specs, idea, "id");
    vec![
        (discard, "position", position(discarded)),
        ("/api/dead-letters", "position", position(replayed)),
        ("/api/dead-letters", "subscriber", one("ideation")),
        (
            "/api/ideation/sessions/{slug}/abandon",
            "slug",
            one("lakes"),
        ),
        ("/api/specifications/{id}/approve", "id", of_spec("dales")),
        ("/api/specifications/{id}/reject", "id", of_spec("moors")),
        ("/api/specifications/{id}/comments", "id", of_spec("hills")),
        ("/api/builds/{id}/stop", "id", of(builds, "runs", "id")),
    ]
}

fn in_bodies(world: &World, specs: &Value) -> Vec<NameRow> {
    let lines = world.json("spec lines hills");
    let file = text(&lines["files"][0]["file"]);
    let causes = each(&world.json("alert list"), "cause");
    let ideas = each(&world.json("idea list"), "slug");
    let choices = ["go", "merge"].map(str::to_owned).to_vec();
    vec![
        ("SpecificationRequest", "idea", ideas),
        ("ApprovalRequest", "hash", of(specs, "dales", "hash")),
        ("CommentsRequest", "of", of(specs, "hills", "hash")),
        ("Comment", "file", one(file)),
        ("Comment", "line", one("1")),
        ("Retry", "task", one("T-001")),
        ("Tell", "task", one("T-001")),
        ("AnswerRequest", "choice", choices),
        ("SeenAlert", "cause", causes),
    ]
}

impl Names {
    /// Puts the names into a description, beside as many that nothing has.
    pub(super) fn put_into(&self, description: &mut Value) {
        let paths = description["paths"].as_object_mut().unwrap();
        for (path, operations) in paths {
            let parameters = operations.as_object_mut().unwrap().values_mut();
            let parameters =
                parameters.filter_map(|each| each.get_mut("parameters")?.as_array_mut());
            for parameter in parameters.flatten() {
                let here = |(below, name, _): &&NameRow| {
                    path.starts_with(below) && parameter["name"] == *name
                };
                let Some((_, _, names)) = self.paths.iter().find(here) else {
                    assert_ne!(parameter["in"], "path", "{path}: {parameter}");
                    continue;
                };
                parameter["schema"] = json!({ "enum": half(names) });
            }
        }
        for (schema, field, names) in &self.bodies {
            let field = &mut description["components"]["schemas"][schema]["properties"][field];
            assert!(field.is_object(), "{schema}");
            field["enum"] = json!(half(names));
        }
    }
}

/// Lists the names and as many of the same kind that nothing has.
fn half(names: &[String]) -> Vec<Value> {
    let made_up = names.iter().map(|name| {
        let other = |digit: char| if digit == '9' { '8' } else { '9' };
        let last = name.chars().next_back().filter(char::is_ascii_hexdigit);
        let kept = &name[..name.len() - usize::from(last.is_some())];
        format!("{kept}{}", last.map_or('9', other))
    });
    let both = names.iter().cloned().chain(made_up);
    let spelled = both.map(|name| {
        let number = name.parse::<u32>().ok();
        number.map_or_else(|| json!(name), |number| json!(number))
    });
    spelled.collect()
}
