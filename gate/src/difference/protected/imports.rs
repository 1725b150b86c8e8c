//! Reads what a test file imports, so that a line of imports which only gains a name is not taken for one that changed, and
//! what a script of Python is made of.
//!
//! Python, Rust, JavaScript, TypeScript and Go. What is not understood is no import, and judged as any other line.

mod forms;
mod text;

use std::collections::BTreeSet;

use forms::{Language, Statement};

/// Files of more lines are not taken apart, and judged line by line.
const MOST_LINES: usize = 10_000;
/// Nor are those that import more names.
const MOST_NAMES: usize = 2_000;

/// A name that an import brings in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ImportedName {
    /// All that is written of it: where it comes from, its name there, and what it is called here.
    pub(super) key: String,
    /// What it is called here; none where it brings in no name, or all that there are.
    pub(super) bound: Option<String>,
    /// What that name stands for.
    pub(super) origin: String,
    /// Whether it brings in whatever there is, over what was there before.
    pub(super) is_glob: bool,
}

/// A file, taken apart.
#[derive(Debug)]
pub(super) struct Imports {
    bindings: Vec<ImportedName>,
    /// The file without its imports.
    pub(super) rest: String,
}

impl Imports {
    /// Reads a file of the language that its name says; none for one of another language, or one that is too long.
    pub(super) fn read(path: &str, content: &str) -> Option<Self> {
        let language = Language::of(path)?;
        let (mut bindings, mut rest) = (Vec::new(), String::new());
        let lines: Vec<&str> = content.lines().take(MOST_LINES + 1).collect();
        if lines.len() > MOST_LINES {
            return None;
        }
        let inside = text::inside_strings(language.string_marks(), &lines);
        let mut at = 0;
        while at < lines.len() {
            let found = (!inside[at]).then(|| Statement::at(language, &lines[at..]));
            if let Some(statement) = found.flatten() {
                at += statement.lines;
                bindings.extend(statement.bindings);
            } else {
                rest.push_str(lines[at]);
                rest.push('\n');
                at += 1;
            }
        }
        (bindings.len() <= MOST_NAMES).then_some(Self { bindings, rest })
    }

    /// Says whether `after` imports all of this, and each name still stands for one thing alone.
    pub(super) fn are_kept_by(&self, after: &Self) -> bool {
        let mut left: Vec<&ImportedName> = after.bindings.iter().collect();
        let all = self.bindings.iter().all(|binding| {
            let at = left.iter().position(|other| *other == binding);
            at.map(|at| left.swap_remove(at)).is_some()
        });
        let origins: BTreeSet<(&str, &str)> = self.named().collect();
        let names: BTreeSet<&str> = origins.iter().map(|(name, _)| *name).collect();
        all && origins.len() == names.len()
    }

    /// Returns a name that `after` brings in, although this file uses another one by that name already; `*` where it
    /// brings in whatever there is.
    pub(super) fn replaced_by<'a>(&self, after: &'a Self) -> Option<&'a str> {
        let mut gained = after
            .bindings
            .iter()
            .filter(|binding| !self.bindings.contains(binding));
        let known: BTreeSet<(&str, &str)> = self.named().collect();
        gained.find_map(|binding| match &binding.bound {
            _ if binding.is_glob => Some("*"),
            Some(name) => {
                let is_same = known.contains(&(name.as_str(), binding.origin.as_str()));
                let is_known = known.iter().any(|(known, _)| *known == name.as_str());
                (!is_same && (is_known || text::uses(&self.rest, name))).then_some(name.as_str())
            }
            None => None,
        })
    }

    /// Lists each name with what it stands for.
    fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let bindings = self.bindings.iter();
        bindings.filter_map(|binding| Some((binding.bound.as_deref()?, binding.origin.as_str())))
    }
}

/// Lists the modules that code of Python imports, and what it takes out of them, which may be modules, too; with dots before
/// those that are told from where the code lies. Code that is too long is not read.
pub(super) fn modules_of_python(code: &str) -> Vec<String> {
    // Several statements may stand on a line.
    let Some(imports) = Imports::read("code.py", &code.replace(';', "\n")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for binding in &imports.bindings {
        let mut words = binding.key.split_whitespace();
        let (Some(module), Some(name), bound) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        found.push(module.to_owned());
        // Whatever is taken out of a module has a name here, too.
        if bound.is_some() {
            let dot = if module.ends_with('.') { "" } else { "." };
            found.push(format!("{module}{dot}{name}"));
        }
    }
    found
}

/// Says whether a text names a module of Python.
pub(super) fn is_module(name: &str) -> bool {
    name.split('.').all(text::is_name)
}

#[cfg(test)]
mod tests;
