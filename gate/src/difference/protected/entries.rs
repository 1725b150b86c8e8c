//! Reads the entries of files that hold several: targets of a Makefile, recipes of a justfile, scripts of a package.json, and the file
//! that it names as its main one.

mod recipes;
mod settings;

use std::collections::BTreeSet;

use recipes::{Reader, Recipes};
pub(super) use settings::settings;

/// The entry of a package.json that names its main file.
pub(super) const MAIN: &str = "main";

/// Which kind of file it is, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Recipes(Reader),
    Package,
}

fn kind(path: &str) -> Option<Kind> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        "package.json" => Some(Kind::Package),
        "justfile" | "Justfile" | ".justfile" => Some(Kind::Recipes(Reader::Just)),
        "Makefile" | "makefile" | "GNUmakefile" => Some(Kind::Recipes(Reader::Make)),
        name => match name.rsplit_once('.')?.1 {
            "mk" => Some(Kind::Recipes(Reader::Make)),
            "just" => Some(Kind::Recipes(Reader::Just)),
            _ => None,
        },
    }
}

/// Says whether a file holds entries.
pub(super) fn has_entries(path: &str) -> bool {
    kind(path).is_some()
}

/// Returns all that decides what an entry does; an empty name is the first entry.
pub(super) fn text(path: &str, content: &str, name: &str) -> String {
    match kind(path) {
        Some(Kind::Package) => {
            let main = main_file(content).filter(|_| name == MAIN);
            let texts = scripts(content, name).into_iter().chain(main);
            texts.collect::<Vec<String>>().join("\n")
        }
        Some(Kind::Recipes(reader)) => Recipes::read(content, reader).text(name),
        // A file of another kind, given by name: all of it.
        None => content.to_owned(),
    }
}

/// Returns the command lines of an entry.
pub(super) fn commands(path: &str, content: &str, name: &str) -> String {
    match kind(path) {
        Some(Kind::Package) => scripts(content, name).join("\n"),
        Some(Kind::Recipes(reader)) => Recipes::read(content, reader).commands(name),
        None => String::new(),
    }
}

/// Lists what a file gives variables, which may stand in the lines of its entries and in the names of its parts.
pub(super) fn assignments(path: &str, content: &str) -> Vec<(String, String)> {
    match kind(path) {
        Some(Kind::Recipes(reader)) => Recipes::read(content, reader).assignments(),
        _ => Vec::new(),
    }
}

/// Lists the files that are read as parts of this one, as it names them.
pub(super) fn included(path: &str, content: &str) -> Vec<String> {
    match kind(path) {
        Some(Kind::Recipes(reader)) => Recipes::read(content, reader).included(),
        _ => Vec::new(),
    }
}

/// Returns the name of an entry, where nothing is run for it once there is a file of that name.
pub(super) fn done_by_file(path: &str, content: &str, name: &str) -> Option<String> {
    match kind(path) {
        Some(Kind::Recipes(reader)) => Recipes::read(content, reader).done_by_file(name),
        _ => None,
    }
}

/// Returns the main file of a package, as its package.json names it.
pub(super) fn main_file(content: &str) -> Option<String> {
    manifest(content)[MAIN].as_str().map(str::to_owned)
}

fn manifest(content: &str) -> serde_json::Value {
    serde_json::from_str(settings::plain(content)).unwrap_or_default()
}

/// Lists the script, those that run before and after it, and those of the same file that it runs.
fn scripts(content: &str, name: &str) -> Vec<String> {
    let manifest = manifest(content);
    let mut open = vec![name.to_owned()];
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        for name in [format!("pre{name}"), name.clone(), format!("post{name}")] {
            let Some(script) = manifest["scripts"][&name].as_str() else {
                continue;
            };
            found.push(script.to_owned());
            let words: Vec<&str> = script.split_whitespace().collect();
            let runs = words
                .windows(2)
                .filter(|pair| matches!(pair[0], "run" | "yarn" | "pnpm"));
            open.extend(runs.map(|pair| pair[1].to_owned()));
        }
    }
    found
}
