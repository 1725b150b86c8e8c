//! Reads the entries of files that hold several: targets of a Makefile, recipes of a justfile, scripts of a package.json.

mod settings;

use std::collections::BTreeSet;

pub(super) use settings::settings;

/// Which kind of file it is, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Make,
    Just,
    Package,
}

fn kind(path: &str) -> Option<Kind> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        "package.json" => Some(Kind::Package),
        "justfile" | "Justfile" | ".justfile" => Some(Kind::Just),
        "Makefile" | "makefile" | "GNUmakefile" => Some(Kind::Make),
        name => match name.rsplit_once('.')?.1 {
            "mk" => Some(Kind::Make),
            "just" => Some(Kind::Just),
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
        Some(Kind::Package) => scripts(content, name).join("\n"),
        Some(kind) => {
            let file = Recipes::read(content, kind);
            let recipes = file.reached(name);
            let used = file.variables(&recipes);
            used.into_iter()
                .chain(recipes)
                .collect::<Vec<_>>()
                .join("\n")
        }
        // A file of another kind, given by name: all of it.
        None => content.to_owned(),
    }
}

/// Returns the command lines of an entry.
pub(super) fn commands(path: &str, content: &str, name: &str) -> String {
    match kind(path) {
        Some(Kind::Package) => scripts(content, name).join("\n"),
        Some(kind) => {
            let file = Recipes::read(content, kind);
            let recipes = file.reached(name);
            let lines = recipes.iter().flat_map(|recipe| recipe.lines().skip(1));
            let plain =
                lines.map(|line| file.expanded(line.trim().trim_start_matches(['@', '-', '+'])));
            plain.collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}

/// Lists the script, those that run before and after it, and those of the same file that it runs.
fn scripts(content: &str, name: &str) -> Vec<String> {
    let manifest =
        serde_json::from_str::<serde_json::Value>(settings::plain(content)).unwrap_or_default();
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

/// The rules of a Makefile, or the recipes of a justfile.
struct Recipes<'a> {
    /// Each rule with its names, what it needs, and its text.
    rules: Vec<(Vec<&'a str>, Vec<&'a str>, String)>,
    /// Names with values, and lines that hold for all rules.
    assignments: Vec<(&'a str, &'a str, &'a str)>,
    always: Vec<&'a str>,
}

impl<'a> Recipes<'a> {
    fn read(content: &'a str, kind: Kind) -> Self {
        let mut file = Self {
            rules: Vec::new(),
            assignments: Vec::new(),
            always: Vec::new(),
        };
        let mut in_rule = false;
        for line in content.lines() {
            if line.starts_with('\t') || (kind == Kind::Just && line.starts_with(' ')) {
                if let Some((_, _, text)) = file.rules.last_mut().filter(|_| in_rule) {
                    text.push('\n');
                    text.push_str(line);
                }
                continue;
            }
            let plain = line.trim();
            if plain.is_empty() || plain.starts_with('#') {
                continue;
            }
            in_rule = file.heading(line, kind);
        }
        file
    }

    /// Reads a line that is no part of a recipe; says whether a rule begins.
    fn heading(&mut self, line: &'a str, kind: Kind) -> bool {
        if let Some((name, value)) = assignment(line) {
            self.assignments.push((name, value, line));
            if matches!(name, "SHELL" | ".SHELLFLAGS" | "MAKEFLAGS") {
                self.always.push(line);
            }
            return false;
        }
        let Some((names, rest)) = line.split_once(':') else {
            self.always.push(line);
            return false;
        };
        let names: Vec<&str> = match kind {
            // What follows the name of a recipe are its parameters.
            Kind::Just => names
                .trim_start_matches('@')
                .split_whitespace()
                .take(1)
                .collect(),
            _ => names.split_whitespace().collect(),
        };
        let (needs, recipe) = rest.split_once(';').unwrap_or((rest, ""));
        let needs = needs.trim_start_matches(':').split_whitespace().collect();
        let mut text = line.to_owned();
        if !recipe.trim().is_empty() {
            text.push_str("\n\t");
            text.push_str(recipe.trim());
        }
        self.rules.push((names, needs, text));
        true
    }

    /// Lists the texts of a rule and of all that it needs.
    fn reached(&self, name: &str) -> Vec<String> {
        let first = self
            .rules
            .iter()
            .flat_map(|(names, _, _)| names)
            .find(|name| !name.starts_with('.'));
        let start = if name.is_empty() {
            first.copied().unwrap_or_default()
        } else {
            name
        };
        let mut open = vec![start];
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            for (_, needs, text) in self
                .rules
                .iter()
                .filter(|(names, _, _)| names.contains(&name))
            {
                found.push(text.clone());
                open.extend(needs);
            }
        }
        found
    }

    /// Lists the assignments that texts use, and what holds for all rules.
    fn variables(&self, texts: &[String]) -> Vec<String> {
        let used = |name: &str| {
            let marks = [
                format!("$({name})"),
                format!("${{{name}}}"),
                format!("{{{{{name}}}}}"),
                format!("{{{{ {name} }}}}"),
            ];
            texts
                .iter()
                .any(|text| marks.iter().any(|mark| text.contains(mark)))
        };
        let assigned = self
            .assignments
            .iter()
            .filter(|(name, _, _)| used(name))
            .map(|(_, _, line)| *line);
        assigned
            .chain(self.always.iter().copied())
            .map(str::to_owned)
            .collect()
    }

    /// Puts the values of variables in their places.
    fn expanded(&self, line: &str) -> String {
        let mut text = line.to_owned();
        for (name, value, _) in &self.assignments {
            for mark in [
                format!("$({name})"),
                format!("${{{name}}}"),
                format!("{{{{{name}}}}}"),
                format!("{{{{ {name} }}}}"),
            ] {
                text = text.replace(&mark, value.trim_matches(['"', '\'']));
            }
        }
        text
    }
}

/// Reads `NAME = value`, with any of the signs of make and just.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(plain)).then(|| (name, value.trim()))
}
