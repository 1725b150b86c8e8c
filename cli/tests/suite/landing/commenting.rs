//! What people say about lines: of a specification, and of what a build changed.

use super::{built, events};
use crate::approvals::{text, until};
use crate::world::World;

/// What is said of a comment on what is there no more.
const CHANGED: &str = "has changed since it was shown";

/// Returns the number of the line of a file that holds `words`, as it is pointed at.
fn place(lines: &serde_json::Value, file: &str, words: &str) -> String {
    let files = lines["files"].as_array().unwrap();
    let file = files.iter().find(|one| one["file"] == file).unwrap();
    let all = file["lines"].as_array().unwrap();
    let line = all.iter().find(|line| text(&line["text"]).contains(words));
    let number = &line.unwrap_or_else(|| panic!("{file}"))["new"];
    format!("{}:{number}", text(&file["file"]))
}

#[test]
fn comments_on_lines_of_a_specification_and_of_a_build_ask_for_another_revision() {
    let world = World::scripted();
    let build = built(&world);
    let shown = world.json(&format!("build show {build}"));
    let spec = text(&shown["spec"]).to_owned();
    let lines = world.json(&format!("build lines {build}"));
    assert_eq!(lines["of"], shown["head"]);
    let at = place(&lines, "a.txt", "a walk");
    let said = world.run(&format!("build lines {build}"));
    assert!(said.contains("     1 +a walk"), "{said}");
    let of = text(&lines["of"]).to_owned();
    let before = world.json(&format!("spec show {spec}"));
    let comment = |of: &str, place: &str, words: &str| {
        let mut command = world.ropewalk(["build", "comment", &build, "--of", of]);
        command.args(["--on", place, words]);
        command
    };
    let refusals = [
        (of.as_str(), "a.txt:40", "so", 1, "shows no line 40"),
        (of.as_str(), "b.txt:1", "so", 1, "shows no line 1"),
        (of.as_str(), "a.txt:-1", "so", 1, "shows no line 1"),
        (of.as_str(), "a.txt", "so", 3, "names no line"),
        (of.as_str(), at.as_str(), " ", 1, "there is no comment"),
        (&"b".repeat(40), at.as_str(), "so", 1, CHANGED),
        (&"b".repeat(7), at.as_str(), "so", 1, CHANGED),
        (&of[..6], at.as_str(), "so", 3, "first 7 digits"),
        ("no-commit", at.as_str(), "so", 3, "first 7 digits"),
    ];
    for (of, place, words, code, told) in refusals {
        let said = crate::world::one_line(comment(of, place, words), code);
        assert!(said.contains(told), "{said}");
    }
    assert_eq!(world.json(&format!("spec show {spec}")), before);
    let begins = of[..7].to_ascii_uppercase();
    comment(&begins, &at, "say *which* walk").assert().success();
    let asked = world.json(&format!("spec show {spec}"));
    assert_eq!(asked["state"], "draft");
    let told = text(&asked["feedback"][0]);
    assert!(
        told.ends_with("- `a.txt`, line 1 (`a walk`): say *which* walk"),
        "{told}"
    );
    assert_eq!(events(&world, "spec.revision_requested").len(), 1);

    let up = world.up();
    let written = until(&world, &format!("spec show {spec}"), |spec| {
        spec["state"] == "generated"
    });
    drop(up);
    let lines = world.json(&format!("spec lines {spec}"));
    assert_eq!(lines["of"], written["hash"]);
    let at = place(&lines, "spec.md", "# ");
    let old = "b".repeat(64);
    let said = world.refused(
        &format!("spec comment {spec} --of {old} --on {at} shorter"),
        1,
    );
    assert!(said.contains(CHANGED), "{said}");
    let of = &text(&lines["of"])[..16];
    let few = world.refused(
        &format!("spec comment {spec} --of {} --on {at} x", &of[..15]),
        3,
    );
    assert!(few.contains("16 digits"), "{few}");
    let twice = format!("spec comment {spec} --of {of} --on {at} shorter --on {at} louder");
    let receipt = world.json(&twice);
    assert_eq!(receipt["comments"], 2);
    let asked = world.json(&format!("spec show {spec}"));
    let told = text(&asked["feedback"][1]);
    assert!(told.contains("): shorter\n- `spec.md`, line"), "{told}");
    assert_eq!(events(&world, "spec.revision_requested").len(), 2);
}
