//! Finds what people wrote for whoever works on a repository, or on some files of it: the nearest to these first, each followed by
//! the files that it names as `@path`. What holds for the whole is read apart from what holds for files: it is the same for all work.
//!
//! Reads nothing itself: it says which paths it wants until it has everything.

use std::collections::{BTreeMap, BTreeSet};

pub use ropewalk_schemas::repo_path::CONVENTIONS as NAMES;
use ropewalk_schemas::repo_path::{below, joined};
use ropewalk_schemas::{RepoPath, clip};

/// How many letters a model is told of what holds for the whole, and as many of what holds for the files of its task.
pub const TOLD_LETTERS: usize = 16_000;
/// No file that is larger is words for whoever works here.
pub const MOST_BYTES: usize = 256 * 1024;
/// So many directories are looked into.
const DIRECTORIES: usize = 32;
/// So many files are read because another one names them.
const IMPORTS: usize = 32;
/// So many files may lead from one to the next.
const HOPS: usize = 5;

/// Where a file stands among all that are told: its directory, then which import of which it is.
type Position = Vec<usize>;

/// What people wrote for whoever works on the whole, or on some files.
#[derive(Debug, Clone, Default)]
pub struct Conventions {
    wanted: Vec<(Position, RepoPath)>,
    found: BTreeMap<Position, (RepoPath, String)>,
    /// What was asked for, whether it is there or not.
    asked: BTreeSet<RepoPath>,
    /// What is told elsewhere.
    left: BTreeSet<RepoPath>,
}

/// What a model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldConventions {
    /// The file that comes first.
    pub path: RepoPath,
    /// All of them as one text, whole.
    pub text: String,
}

impl ToldConventions {
    /// Returns as much of it as a model is told; `[…]` stands where something is missing.
    pub fn clipped(&self) -> String {
        clip::lines(&self.text, TOLD_LETTERS).into_owned()
    }

    /// Counts the letters, where they are more than a model is told.
    pub fn too_many_letters(&self) -> Option<usize> {
        let letters = self.text.chars().count();
        (letters > TOLD_LETTERS).then_some(letters)
    }
}

impl Conventions {
    /// Looks beside and above `files`, below the root.
    pub fn beside<'a>(files: impl Iterator<Item = &'a RepoPath>) -> Self {
        let above: BTreeSet<&str> = files.flat_map(RepoPath::directories).collect();
        let mut directories: Vec<&str> = above.into_iter().filter(|one| !one.is_empty()).collect();
        directories.sort_by_key(|directory| std::cmp::Reverse(depth(directory)));
        let far = directories.len().saturating_sub(DIRECTORIES);
        Self::of_directories(&directories[far..])
    }

    /// Looks at the root alone.
    pub fn of_the_whole() -> Self {
        Self::of_directories(&[""])
    }

    fn of_directories(directories: &[&str]) -> Self {
        let mut conventions = Self::default();
        for (place, directory) in directories.iter().enumerate() {
            for name in NAMES {
                if let Ok(path) = RepoPath::parse(&below(directory, name)) {
                    conventions.want(vec![place], path);
                }
            }
        }
        conventions
    }

    fn want(&mut self, position: Position, path: RepoPath) {
        if self.asked.insert(path.clone()) {
            self.wanted.push((position, path));
        }
    }

    /// Lists the paths to read next; there are none once everything was read.
    pub fn wanted(&self) -> Vec<RepoPath> {
        self.wanted.iter().map(|(_, path)| path.clone()).collect()
    }

    /// Takes what was read, in the order of [`Self::wanted`].
    pub fn take(&mut self, contents: Vec<Option<Vec<u8>>>) {
        let wanted = std::mem::take(&mut self.wanted);
        for ((position, path), content) in wanted.into_iter().zip(contents) {
            let Some(content) = content else { continue };
            if self.found.contains_key(&position) {
                // It was asked for beside the first of its directory, and may still be named by that one.
                self.asked.remove(&path);
                continue;
            }
            let text = String::from_utf8_lossy(&content).trim().to_owned();
            match linked(&path, &text) {
                Some(target) => self.want(position, target),
                None => drop(self.found.insert(position, (path, text))),
            }
        }
        self.want_imports();
    }

    /// Asks for what the files name that nobody asked for.
    fn want_imports(&mut self) {
        let mut named = Vec::new();
        for (position, (path, text)) in &self.found {
            if position.len() > HOPS {
                continue;
            }
            for (number, import) in imports(path, text).into_iter().enumerate() {
                let mut at = position.clone();
                at.push(number);
                named.push((at, import));
            }
        }
        for (position, path) in named {
            let imports = self.found.keys().filter(|at| at.len() > 1).count();
            if imports + self.wanted.len() < IMPORTS {
                self.want(position, path);
            }
        }
    }

    /// Leaves out what `others` hold: nothing is told twice.
    pub fn leave_to(&mut self, others: &Self) {
        self.asked.extend(others.asked.iter().cloned());
        let told = others.found.values().map(|(path, _)| path.clone());
        self.left.extend(told);
    }

    /// Makes one text of what was read; none where there is nothing.
    pub fn told(&self) -> Option<ToldConventions> {
        let written = self.found.values();
        let written = written.filter(|(path, text)| !text.is_empty() && !self.left.contains(path));
        let written: Vec<&(RepoPath, String)> = written.collect();
        let text = match written.as_slice() {
            [] => return None,
            [(path, text)] if NAMES.contains(&path.as_str()) => text.clone(),
            many => {
                let parts = many
                    .iter()
                    .map(|(path, text)| format!("Of `{path}`:\n\n{text}"));
                parts.collect::<Vec<_>>().join("\n\n")
            }
        };
        let path = written.first()?.0.clone();
        Some(ToldConventions { path, text })
    }
}

fn depth(directory: &str) -> usize {
    match directory {
        "" => 0,
        directory => directory.split('/').count(),
    }
}

/// Lists the files that the text of `file` names as `@path`, outside of code; what leads out of the repository is none.
fn imports(file: &RepoPath, text: &str) -> Vec<RepoPath> {
    let directory = directory_of(file);
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let prose = line.split('`').step_by(2);
        let words = prose.flat_map(str::split_whitespace);
        let named = words.filter_map(|word| word.strip_prefix('@'));
        found.extend(named.filter_map(|path| resolved(directory, path)));
    }
    found
}

/// Returns where a link leads: git keeps nothing of it but the path.
fn linked(link: &RepoPath, text: &str) -> Option<RepoPath> {
    let is_path = text
        .rsplit_once('.')
        .is_some_and(|(_, extension)| extension == "md")
        && !text.starts_with('@')
        && !text.contains(char::is_whitespace);
    is_path.then(|| resolved(directory_of(link), text))?
}

fn directory_of(file: &RepoPath) -> &str {
    file.directories().next().unwrap_or_default()
}

/// Returns the path of the repository that `path` means in `directory`.
fn resolved(directory: &str, path: &str) -> Option<RepoPath> {
    let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
    let is_of_people = path.starts_with('~');
    let path = joined(directory, path).filter(|_| !is_of_people)?;
    RepoPath::parse(&path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(conventions: Conventions, there: &[(&str, &str)]) -> Option<String> {
        read_all(conventions, there).1
    }

    fn read_all(
        mut conventions: Conventions,
        there: &[(&str, &str)],
    ) -> (Conventions, Option<String>) {
        for round in 0.. {
            let wanted = conventions.wanted();
            if wanted.is_empty() {
                break;
            }
            assert!(round <= HOPS, "{wanted:?} is wanted and wanted");
            let read = |path: RepoPath| {
                let text = there.iter().find(|(name, _)| *name == path.as_str());
                text.map(|(_, text)| text.as_bytes().to_vec())
            };
            conventions.take(wanted.into_iter().map(read).collect());
        }
        let text = conventions.told().map(|told| told.text);
        (conventions, text)
    }

    fn told_of(files: &[&str], there: &[(&str, &str)]) -> Option<String> {
        let files: Vec<RepoPath> = files
            .iter()
            .map(|file| RepoPath::parse(file).unwrap())
            .collect();
        told(Conventions::beside(files.iter()), there)
    }

    #[test]
    fn the_nearest_words_come_first_and_those_of_elsewhere_not_at_all() {
        let there = [
            ("AGENTS.md", "root\n"),
            ("web/CLAUDE.md", "of the web"),
            ("web/AGENTS.md", "not read"),
            ("web/src/AGENTS.md", "of its sources"),
            ("docs/AGENTS.md", "of the documents"),
        ];
        assert_eq!(told_of(&["a.txt"], &there), None);
        let whole = told(Conventions::of_the_whole(), &there);
        assert_eq!(whole.as_deref(), Some("root"));
        let nested = told_of(&["web/src/x/a.ts", "b.txt"], &there);
        assert_eq!(
            nested.as_deref(),
            Some("Of `web/src/AGENTS.md`:\n\nof its sources\n\nOf `web/CLAUDE.md`:\n\nof the web")
        );
        let only = told_of(&["docs/a.md"], &[("docs/AGENTS.md", "of the documents")]);
        assert_eq!(
            only.as_deref(),
            Some("Of `docs/AGENTS.md`:\n\nof the documents")
        );
        let blank = told(Conventions::of_the_whole(), &[("AGENTS.md", " \n")]);
        assert_eq!(blank, None);
    }

    #[test]
    fn what_the_whole_names_is_told_with_it_alone() {
        let there = [
            ("AGENTS.md", "See @docs/style.md"),
            ("docs/style.md", "short lines"),
            ("web/AGENTS.md", "See @../docs/style.md and @../docs/web.md"),
            ("docs/web.md", "of pages"),
        ];
        let (whole, text) = read_all(Conventions::of_the_whole(), &there);
        assert!(text.is_some_and(|text| text.contains("short lines")));
        let file = RepoPath::parse("web/a.ts").unwrap();
        let mut beside = Conventions::beside(std::iter::once(&file));
        beside.leave_to(&whole);
        let (_, text) = read_all(beside, &there);
        let expected = "Of `web/AGENTS.md`:\n\nSee @../docs/style.md and @../docs/web.md\n\nOf `docs/web.md`:\n\nof pages";
        assert_eq!(text.as_deref(), Some(expected));
    }

    #[test]
    fn what_a_file_names_follows_it_once_and_nothing_leads_out_of_the_repository() {
        let there = [
            (
                "CLAUDE.md",
                "See @AGENTS.md, and (@docs/style.md).\nNot `@docs/code.md`, @nobody, @/etc/passwd, @~/mine.md or @../out.md.\n```\n@docs/code.md\n```",
            ),
            ("AGENTS.md", "agents; @docs/style.md once more"),
            ("docs/style.md", "style of @./deep/names.md"),
            ("docs/deep/names.md", "names, as in @../style.md"),
            ("docs/code.md", "code"),
        ];
        let whole = told(Conventions::of_the_whole(), &there).unwrap();
        let order: Vec<&str> = whole
            .lines()
            .filter_map(|line| line.strip_prefix("Of `")?.strip_suffix("`:"))
            .collect();
        assert_eq!(
            order,
            [
                "CLAUDE.md",
                "AGENTS.md",
                "docs/style.md",
                "docs/deep/names.md"
            ]
        );
        assert!(!whole.contains("\ncode"), "{whole}");
    }

    #[test]
    fn a_link_stands_for_what_it_leads_to() {
        let whole = |there: &[(&str, &str)]| told(Conventions::of_the_whole(), there);
        let beside = [("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "root")];
        assert_eq!(whole(&beside).as_deref(), Some("root"));
        let elsewhere = [
            ("CLAUDE.md", "docs/agents.md"),
            ("docs/agents.md", "of all"),
            ("web/AGENTS.md", "../docs/agents.md"),
        ];
        let once = told_of(&["web/a.txt"], &elsewhere);
        assert_eq!(once.as_deref(), Some("Of `docs/agents.md`:\n\nof all"));
        assert_eq!(whole(&[("AGENTS.md", "AGENTS.md")]), None);
        let named = [("CLAUDE.md", "@AGENTS.md"), ("AGENTS.md", "root")];
        let both = "Of `CLAUDE.md`:\n\n@AGENTS.md\n\nOf `AGENTS.md`:\n\nroot";
        assert_eq!(whole(&named).as_deref(), Some(both));
    }

    #[test]
    fn files_that_lead_to_each_other_for_ever_are_followed_for_a_while() {
        let names: Vec<String> = (0..99).map(|number| format!("n{number}.md")).collect();
        let next: Vec<String> = (1..100).map(|number| format!("@n{number}.md")).collect();
        let mut there: Vec<(&str, &str)> = vec![("AGENTS.md", "@n0.md")];
        there.extend(
            names
                .iter()
                .zip(&next)
                .map(|(name, text)| (&**name, &**text)),
        );
        let chain = told(Conventions::of_the_whole(), &there).unwrap();
        assert_eq!(chain.matches("Of `n").count(), HOPS);
        let all = next.join(" ");
        there[0].1 = &all;
        let many = told(Conventions::of_the_whole(), &there).unwrap();
        assert_eq!(many.matches("Of `n").count(), IMPORTS);
    }

    #[test]
    fn what_is_too_long_is_cut_between_lines_and_told() {
        let text = "a line\n".repeat(TOLD_LETTERS / 5);
        let conventions = |text: &str| ToldConventions {
            path: RepoPath::parse("AGENTS.md").unwrap(),
            text: text.to_owned(),
        };
        assert_eq!(conventions(&text).too_many_letters(), Some(text.len()));
        assert!(conventions(&text).clipped().ends_with("a line\n[…]"));
        assert_eq!(conventions("short").too_many_letters(), None);
        assert_eq!(conventions("short").clipped(), "short");
    }
}
