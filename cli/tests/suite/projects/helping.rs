//! What helps at a shell: completions and manual pages of all verbs.

use std::process::Command;

use crate::world::{World, one_line};

#[test]
fn a_shell_reads_the_completions_and_knows_the_verbs() {
    let world = World::bare_of_project();
    let output = world.ropewalk(["completions", "bash"]).output().unwrap();
    assert!(output.status.success());
    let file = world.root().join("completions");
    std::fs::write(&file, &output.stdout).unwrap();
    let script = "source \"$0\"; COMP_WORDS=(ropewalk spec app); COMP_CWORD=2; _ropewalk ropewalk app spec; echo \"${COMPREPLY[@]}\"";
    let completed = Command::new("bash")
        .args(["--norc", "-c", script])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(completed.stdout).unwrap();
    assert_eq!(
        said.trim(),
        "approve",
        "{}",
        String::from_utf8_lossy(&completed.stderr)
    );
    for shell in ["zsh", "fish"] {
        let output = world.ropewalk(["completions", shell]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            said.contains("approve") && said.contains("dead-letter"),
            "{shell}: {said}"
        );
    }
}

#[test]
fn a_provider_of_ones_own_is_named_where_keys_are_shown() {
    let world = World::bare_of_project();
    world.run("init --untried");
    let file = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    let help = world.run("config show --help");
    let said = world.refused("config show providers", 1);
    for text in [&file, &help, &said] {
        for key in ["[providers.", "kind", "base_url", "key_variable", "prices"] {
            assert!(text.contains(key), "`{key}` is missing in {text}");
        }
    }
    let other = world.refused("config show nothing", 1);
    assert!(other.contains("see `ropewalk config show`"), "{other}");
}

#[test]
fn every_verb_has_a_page_of_the_manual_with_an_example() {
    let world = World::bare_of_project();
    let pages = world.root().join("pages/man1");
    let output = world
        .ropewalk(["man", pages.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = std::fs::read_to_string(pages.join("ropewalk-spec-approve.1")).unwrap();
    assert!(page.contains(".TH ropewalk-spec-approve 1"), "{page}");
    assert!(page.contains("ropewalk spec approve 3f9a1c2b"), "{page}");
    assert!(std::fs::read_dir(&pages).unwrap().count() > 60);
    let whole = world.ropewalk(["man"]).output().unwrap();
    assert!(
        String::from_utf8(whole.stdout)
            .unwrap()
            .contains(".TH ropewalk 1")
    );
    std::fs::write(world.root().join("file"), "").unwrap();
    let taken = world.root().join("file/man1");
    let said = one_line(world.ropewalk(["man", taken.to_str().unwrap()]), 1);
    assert!(
        said.contains("name a folder that you can write to"),
        "{said}"
    );
}
