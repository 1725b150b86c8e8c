//! The forms that imports have in each language.

mod go;
mod python;
mod rust;
mod script;

use super::ImportedName;
use super::text::is_name;

/// So many lines an import may have.
const MOST_LINES: usize = 100;

/// A language whose imports are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Rust,
    /// JavaScript and TypeScript.
    Script,
    Go,
}

impl Language {
    /// Returns the language that the name of a file says.
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path.rsplit_once('.')?.1 {
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Self::Script,
            "go" => Self::Go,
            _ => return None,
        })
    }

    /// Lists what begins and ends a string of several lines.
    pub(super) const fn string_marks(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["\"\"\"", "'''"],
            Self::Rust => &["\""],
            Self::Script | Self::Go => &["`"],
        }
    }
}

/// An import as it stands in a file.
pub(super) struct Statement {
    /// How many lines it has.
    pub(super) lines: usize,
    pub(super) bindings: Vec<ImportedName>,
}

impl Statement {
    /// Reads the import that begins with the first of `lines`; none where there is none, or none that is understood.
    pub(super) fn at(language: Language, lines: &[&str]) -> Option<Self> {
        let first = lines.first()?.trim_start();
        let (begins, ends): (bool, fn(&str) -> bool) = match language {
            Language::Python => (python::begins(first), python::ends),
            Language::Rust => (rust::begins(first), rust::ends),
            Language::Script => (script::begins(first), script::ends),
            Language::Go => (go::begins(first), go::ends),
        };
        if !begins {
            return None;
        }
        let mut text = String::new();
        for (line, count) in lines.iter().zip(1..=MOST_LINES) {
            text.push_str(without_comment(language, line).trim());
            text.push('\n');
            if ends(&text) {
                let bindings = match language {
                    Language::Python => python::bindings(&text),
                    Language::Rust => rust::bindings(&text),
                    Language::Script => script::bindings(&text),
                    Language::Go => go::bindings(&text),
                };
                let mut bindings = bindings?;
                let (indent, _) = lines[0].split_at(lines[0].len() - first.len());
                for one in &mut bindings {
                    // What is moved below a condition may run no more.
                    one.key.insert_str(0, indent);
                    // In a module of its own it takes the place of nothing outside.
                    one.is_glob &= language != Language::Rust || indent.is_empty();
                }
                return Some(Self {
                    lines: count,
                    bindings,
                });
            }
        }
        None
    }
}

/// Cuts off what a line says to people.
fn without_comment(language: Language, line: &str) -> &str {
    let mark = if language == Language::Python {
        "#"
    } else {
        "//"
    };
    // The address of a module may hold the same mark.
    let end = line.match_indices(mark).find(|(at, _)| {
        let before = &line[..*at];
        before.is_empty() || before.ends_with(char::is_whitespace)
    });
    end.map_or(line, |(at, _)| &line[..at])
}

/// Reads `name`, or `name as other` with the word `by` between them; what the name is there, and here.
fn renamed<'a>(item: &'a str, by: &str) -> Option<(&'a str, &'a str)> {
    let (name, bound) = match item.split_once(by) {
        Some((name, bound)) => (name.trim(), bound.trim()),
        None => (item.trim(), item.trim()),
    };
    (is_name(name) && is_name(bound)).then_some((name, bound))
}

/// Makes the binding of a name that comes out of `module`.
fn named(module: &str, name: &str, bound: &str) -> ImportedName {
    ImportedName {
        key: format!("{module} {name} {bound}"),
        bound: (bound != "_").then(|| bound.to_owned()),
        origin: format!("{module} {name}"),
        is_glob: false,
    }
}
