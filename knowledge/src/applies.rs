//! Tells to which files an item applies, and how far a lesson from one file reaches.

use ropewalk_schemas::advice::Words;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::{GlobPattern, RepoPath};
use tracing::warn;

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
        .any(|glob| match GlobPattern::anywhere(glob) {
            Ok(glob) => glob.matches(file.as_str()),
            // Written before globs were bounded: what cannot be read matches nothing and harms nobody.
            Err(error) => {
                warn!(knowledge.id = %item.id, "a glob of `{}` is left out: {}", item.id, Words::of(&error));
                false
            }
        })
        .then_some(Fit::Glob)
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
        return GlobPattern::escape(name);
    }
    let mut endings = name.rsplit('.');
    let last = endings.next().unwrap_or(name);
    match (endings.next(), endings.next()) {
        // A hidden file such as `.gitignore`, or a name without ending, stands for itself.
        (None, _) | (Some(""), None) => GlobPattern::escape(name),
        (Some(double), Some(_)) if DOUBLE.contains(&double) => {
            format!(
                "*.{}.{}",
                GlobPattern::escape(double),
                GlobPattern::escape(last)
            )
        }
        _ => format!("*.{}", GlobPattern::escape(last)),
    }
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
        let cases: [(&[&str], &str, Option<Fit>); 11] = [
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
            (&["a["], "b", None),
        ];
        for (globs, file, expected) in cases {
            let mut lesson = item(1);
            lesson.globs = globs.iter().map(ToString::to_string).collect();
            assert_eq!(fit(&lesson, &path(file)), expected, "{globs:?} {file}");
        }
    }

    #[test]
    fn a_glob_that_was_stored_without_bounds_matches_nothing_and_harms_nobody() {
        let mut lesson = item(1);
        let nested = format!("{}a{}", "{".repeat(8_000), "}".repeat(8_000));
        lesson.globs = vec![nested, "*.rs".to_owned()];
        assert_eq!(fit(&lesson, &path("a")), None);
        assert_eq!(fit(&lesson, &path("src/a.rs")), Some(Fit::Glob));
    }
}
