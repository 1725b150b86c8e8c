//! Tells to which files an item applies, and how far a lesson from one file reaches.

use globset::{GlobBuilder, GlobMatcher};
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::knowledge::KnowledgeItem;

/// Directories that mean the same in every project; a lesson keeps them.
const CUSTOMARY: [&str; 52] = [
    "api",
    "app",
    "assets",
    "backend",
    "benches",
    "bin",
    "cli",
    "cmd",
    "components",
    "config",
    "controllers",
    "core",
    "database",
    "db",
    "docs",
    "entities",
    "examples",
    "frontend",
    "handlers",
    "hooks",
    "internal",
    "layouts",
    "lib",
    "middleware",
    "migrations",
    "models",
    "pages",
    "pkg",
    "prisma",
    "public",
    "queries",
    "routes",
    "schema",
    "schemas",
    "scripts",
    "seeds",
    "server",
    "services",
    "sql",
    "src",
    "store",
    "stores",
    "styles",
    "templates",
    "test",
    "tests",
    "types",
    "ui",
    "utils",
    "views",
    "web",
    "__tests__",
];
/// Endings of two parts, of which the first says as much as the second.
const DOUBLE: [&str; 5] = ["test", "spec", "d", "config", "stories"];
/// Files that are called the same in every project.
const NAMED: [&str; 14] = [
    "Cargo.toml",
    "Dockerfile",
    "Makefile",
    "README.md",
    "build.rs",
    "go.mod",
    "index.html",
    "package.json",
    "pyproject.toml",
    "requirements.txt",
    "rust-toolchain.toml",
    "tsconfig.json",
    "vite.config.ts",
    "wrangler.toml",
];

/// Says how closely an item fits a file; the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It names the file.
    Path,
    /// One of its globs matches.
    Glob,
    /// It applies to every file.
    General,
}

/// Returns how closely `item` fits `file`; none when it does not apply.
pub fn fit(item: &KnowledgeItem, file: &RepoPath) -> Option<Fit> {
    if item.globs.is_empty() {
        return Some(Fit::General);
    }
    if item.globs.iter().any(|glob| glob == file.as_str()) {
        return Some(Fit::Path);
    }
    item.globs
        .iter()
        .filter_map(|glob| matcher(glob))
        .any(|matcher| matcher.is_match(file.as_str()))
        .then_some(Fit::Glob)
}

/// Says whether a text is a glob that can match.
pub fn is_glob(text: &str) -> bool {
    !text.is_empty() && matcher(text).is_some()
}

/// Returns the glob of the files that a lesson from `file` applies to: the same kind of file, and in the same
/// directory as far as that means the same in other projects.
pub fn generalise(file: &RepoPath) -> String {
    let parts: Vec<&str> = file.as_str().split('/').collect();
    let (name, directories) = match parts.split_last() {
        Some((name, directories)) => (*name, directories),
        None => (file.as_str(), &[][..]),
    };
    let names = kind_of_name(name);
    let kept: Vec<&str> = directories
        .iter()
        .copied()
        .take_while(|part| CUSTOMARY.contains(&part.to_lowercase().as_str()))
        .collect();
    if kept.is_empty() || NAMED.contains(&name) {
        names
    } else if kept.len() == directories.len() {
        format!("{}/{names}", kept.join("/"))
    } else {
        format!("{}/**/{names}", kept.join("/"))
    }
}

fn kind_of_name(name: &str) -> String {
    if NAMED.contains(&name) {
        return escaped(name);
    }
    let mut endings = name.rsplit('.');
    let last = endings.next().unwrap_or(name);
    match (endings.next(), endings.next()) {
        // A hidden file such as `.gitignore`, or a name without ending, stands for itself.
        (None, _) | (Some(""), None) => escaped(name),
        (Some(double), Some(_)) if DOUBLE.contains(&double) => {
            format!("*.{}.{}", escaped(double), escaped(last))
        }
        _ => format!("*.{}", escaped(last)),
    }
}

fn escaped(text: &str) -> String {
    globset::escape(text)
}

/// A glob without a slash is for the file name in any directory.
fn matcher(glob: &str) -> Option<GlobMatcher> {
    let anywhere = if glob.contains('/') {
        glob.to_owned()
    } else {
        format!("**/{glob}")
    };
    GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .build()
        .ok()
        .map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::item;

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    #[test]
    fn a_lesson_reaches_the_same_kind_of_file() {
        let cases = [
            (
                "database/migrations/001_habits.sql",
                "database/migrations/*.sql",
            ),
            ("src/main.rs", "src/*.rs"),
            ("src/habits/streak.rs", "src/**/*.rs"),
            ("habits/streak.rs", "*.rs"),
            ("001.sql", "*.sql"),
            ("src/components/List.test.tsx", "src/components/*.test.tsx"),
            ("Cargo.toml", "Cargo.toml"),
            ("server/package.json", "package.json"),
            ("Makefile", "Makefile"),
            (".gitignore", ".gitignore"),
            ("src/a[b].rs", "src/*.rs"),
            ("src/archive.tar.gz", "src/*.gz"),
        ];
        for (file, glob) in cases {
            assert_eq!(generalise(&path(file)), glob, "{file}");
            let mut lesson = item(1);
            lesson.globs = vec![glob.to_owned()];
            assert!(fit(&lesson, &path(file)).is_some(), "{glob} fits {file}");
        }
    }

    #[test]
    fn the_closest_fit_counts() {
        let cases: [(&[&str], &str, Option<Fit>); 10] = [
            (&[], "src/a.rs", Some(Fit::General)),
            (&["src/a.rs"], "src/a.rs", Some(Fit::Path)),
            (&["*.rs", "src/a.rs"], "src/a.rs", Some(Fit::Path)),
            (&["*.rs"], "src/deep/a.rs", Some(Fit::Glob)),
            (&["src/*.rs"], "src/a.rs", Some(Fit::Glob)),
            (&["src/*.rs"], "src/deep/a.rs", None),
            (&["src/**/*.rs"], "src/a.rs", Some(Fit::Glob)),
            (&["*.{ts,tsx}"], "a.tsx", Some(Fit::Glob)),
            (&["*.sql"], "a.rs", None),
            (&["a["], "a[", Some(Fit::Path)),
        ];
        for (globs, file, expected) in cases {
            let mut lesson = item(1);
            lesson.globs = globs.iter().map(ToString::to_string).collect();
            assert_eq!(fit(&lesson, &path(file)), expected, "{globs:?} {file}");
        }
    }

    #[test]
    fn a_broken_glob_is_told() {
        assert!(is_glob("src/*.rs"));
        assert!(!is_glob("a["));
        assert!(!is_glob(""));
    }
}
