//! Walks the files of a slot as git sees them: ignored ones and `.git` are left out, links are not followed. Plans are left out, too,
//! where nobody names them: a model was told what they say of its work, and would find each word of it again.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ropewalk_schemas::RepoPath;
use ropewalk_workspace::path::EntryKind;

use super::ignored::IgnoreRules;
use super::workbench::{Workbench, refused};
use crate::policy::Policy;
use crate::tool::ToolFailure;

/// Where the folders of ideas lie that travel with their code.
const IDEAS: &str = "ideas";
/// What tells the folder of an idea from one of the project that is called alike.
const PLAN: &str = "build/spec.md";

/// Says whether a path, or the pattern of one, names the folders of ideas.
fn names_plans(path: &str) -> bool {
    path.split(['/', '{', ',', '}']).any(|part| part == IDEAS)
}

/// Returns what a searching tool says of itself: that plans are left out is told where there is one.
pub(super) fn described(workbench: &Workbench, does: &str, fields: &str) -> String {
    let ideas = workbench.files().root().join(IDEAS);
    let mut folders = std::fs::read_dir(ideas).into_iter().flatten().flatten();
    if folders.any(|folder| holds_plan(&folder.path())) {
        format!("{does}, and so are the folders of ideas in `{IDEAS}/` unless {fields} names it.")
    } else {
        format!("{does}.")
    }
}

fn holds_plan(folder: &Path) -> bool {
    folder.join(PLAN).is_file()
}

/// A regular file of the slot.
pub(super) struct WalkEntry {
    /// Where it lies.
    pub(super) file: PathBuf,
    /// Its path in the repository.
    pub(super) path: String,
}

/// A part of a slot that lies inside the slot for certain.
pub(super) struct Area {
    root: PathBuf,
    start: PathBuf,
    policy: Policy,
    /// Whether plans are among its files.
    with_plans: bool,
}

impl Area {
    /// Names the whole slot, or the directory or file `below`, which must be no link and lie behind none. Plans are among its files
    /// where `below` or the `pattern` that they have to match names them.
    pub(super) fn new(
        workbench: &Workbench,
        below: Option<&RepoPath>,
        pattern: Option<&str>,
    ) -> Result<Self, ToolFailure> {
        let files = workbench.files();
        let root = files.root().to_owned();
        let policy = workbench.options().policy.clone();
        let mut named = below.map(RepoPath::as_str).into_iter().chain(pattern);
        let with_plans = named.any(names_plans);
        let Some(below) = below else {
            return Ok(Self {
                start: root.clone(),
                root,
                policy,
                with_plans,
            });
        };
        match files.kind(below).map_err(|error| refused(&error))? {
            Some(EntryKind::Directory | EntryKind::File) => Ok(Self {
                start: root.join(below.as_str()),
                root,
                policy,
                with_plans,
            }),
            _ => Err(ToolFailure::refused(format!(
                "there is no directory or file `{below}`"
            ))),
        }
    }

    /// Lists its files, without those that rules keep from being shown.
    pub(super) fn files(&self) -> impl Iterator<Item = WalkEntry> {
        let ignored = IgnoreRules::below(&self.start);
        let ideas = (!self.with_plans).then(|| self.root.join(IDEAS));
        WalkBuilder::new(&self.start)
            .standard_filters(false)
            .follow_links(false)
            .filter_entry(move |entry| {
                let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                let is_plan = ideas.is_some()
                    && entry.path().parent() == ideas.as_deref()
                    && holds_plan(entry.path());
                entry.file_name() != ".git"
                    && !is_plan
                    && !ignored.takes(entry.path(), is_directory)
            })
            .sort_by_file_name(std::cmp::Ord::cmp)
            .build()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .filter_map(|entry| {
                let path = entry.path().strip_prefix(&self.root).ok()?;
                let path = path.to_str()?.to_owned();
                self.policy.shows(&path).then(|| WalkEntry {
                    file: entry.into_path(),
                    path,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::workbench::tests::{Bench, repo_path};

    #[test]
    fn no_link_leads_out_of_the_slot() {
        let bench = Bench::new(&[("a", ""), ("src/b", "")], &[]);
        let outside = bench.directory.path();
        std::fs::write(outside.join("secret"), "").unwrap();
        for (target, link) in [("..", "up"), ("../secret", "file"), ("..", "src/up")] {
            std::os::unix::fs::symlink(target, outside.join("slot").join(link)).unwrap();
        }
        for below in ["up", "file", "src/up", "up/secret", "missing"] {
            assert!(
                Area::new(&bench.workbench, Some(&repo_path(below)), None).is_err(),
                "{below}"
            );
        }
        let paths = |below: Option<&RepoPath>| -> Vec<String> {
            let area = Area::new(&bench.workbench, below, None).unwrap();
            area.files().map(|found| found.path).collect()
        };
        assert_eq!(paths(None), ["a", "src/b"]);
        assert_eq!(paths(Some(&repo_path("src"))), ["src/b"]);
        assert_eq!(paths(Some(&repo_path("a"))), ["a"]);
    }

    #[test]
    fn plans_are_among_the_files_where_they_are_named() {
        let plan = "ideas/walks/build/spec.md";
        let brief = "ideas/walks/planning/brief.md";
        // A folder of the project that is called alike is no plan.
        let other = "ideas/list.py";
        let bench = Bench::new(&[("a", ""), (plan, ""), (brief, ""), (other, "")], &[]);
        let all: &[&str] = &["a", other, plan, brief];
        let rows: [(Option<&str>, Option<&str>, &[&str]); 6] = [
            (None, None, &["a", other]),
            (None, Some("**/*.md"), &["a", other]),
            (None, Some("ideas/**"), all),
            (None, Some("./ideas/walks/*"), all),
            (Some("ideas"), None, &[other, plan, brief]),
            (Some("ideas/walks"), None, &[plan, brief]),
        ];
        for (below, pattern, expected) in rows {
            let below = below.map(repo_path);
            let area = Area::new(&bench.workbench, below.as_ref(), pattern).unwrap();
            let paths: Vec<String> = area.files().map(|found| found.path).collect();
            assert_eq!(paths, expected, "{below:?} {pattern:?}");
        }
        let said = |workbench: &Workbench| described(workbench, "Finds files", "`path`");
        assert_eq!(
            said(&bench.workbench),
            "Finds files, and so are the folders of ideas in `ideas/` unless `path` names it."
        );
        let without = Bench::new(&[(other, "")], &[]);
        assert_eq!(said(&without.workbench), "Finds files.");
    }

    #[test]
    fn a_line_of_gitignore_that_nests_too_deep_counts_for_nothing() {
        let deep = format!("*.log\n{}a{}\n", "{".repeat(8_000), "}".repeat(8_000));
        let bench = Bench::new(&[("a", ""), ("b.log", ""), (".gitignore", &deep)], &[]);
        let area = Area::new(&bench.workbench, None, None).unwrap();
        let paths: Vec<String> = area.files().map(|found| found.path).collect();
        assert_eq!(paths, [".gitignore", "a"]);
    }
}
