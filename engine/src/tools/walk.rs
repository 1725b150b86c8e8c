//! Walks the files of a slot as git sees them: ignored ones and `.git` are left out, links are not followed.

use std::path::PathBuf;

use ignore::WalkBuilder;
use ropewalk_schemas::RepoPath;
use ropewalk_workspace::path::EntryKind;

use super::ignored::IgnoreRules;
use super::workbench::{Workbench, refused};
use crate::policy::Policy;
use crate::tool::ToolFailure;

/// Is a regular file of the slot.
pub(super) struct WalkEntry {
    /// Where it lies.
    pub(super) file: PathBuf,
    /// Its path in the repository.
    pub(super) path: String,
}

/// Is a part of a slot that lies inside the slot for certain.
pub(super) struct Area {
    root: PathBuf,
    start: PathBuf,
    policy: Policy,
}

impl Area {
    /// Names the whole slot, or the directory or file `below`, which must be no link and lie behind none.
    pub(super) fn new(
        workbench: &Workbench,
        below: Option<&RepoPath>,
    ) -> Result<Self, ToolFailure> {
        let files = workbench.files();
        let root = files.root().to_owned();
        let policy = workbench.options().policy.clone();
        let Some(below) = below else {
            return Ok(Self {
                start: root.clone(),
                root,
                policy,
            });
        };
        match files.kind(below).map_err(|error| refused(&error))? {
            Some(EntryKind::Directory | EntryKind::File) => Ok(Self {
                start: root.join(below.as_str()),
                root,
                policy,
            }),
            _ => Err(ToolFailure::refused(format!(
                "there is no directory or file `{below}`"
            ))),
        }
    }

    /// Lists its files, without those that rules keep from being shown.
    pub(super) fn files(&self) -> impl Iterator<Item = WalkEntry> {
        let ignored = IgnoreRules::below(&self.start);
        WalkBuilder::new(&self.start)
            .standard_filters(false)
            .follow_links(false)
            .filter_entry(move |entry| {
                let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.file_name() != ".git" && !ignored.takes(entry.path(), is_directory)
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
                Area::new(&bench.workbench, Some(&repo_path(below))).is_err(),
                "{below}"
            );
        }
        let paths = |below: Option<&RepoPath>| -> Vec<String> {
            let area = Area::new(&bench.workbench, below).unwrap();
            area.files().map(|found| found.path).collect()
        };
        assert_eq!(paths(None), ["a", "src/b"]);
        assert_eq!(paths(Some(&repo_path("src"))), ["src/b"]);
        assert_eq!(paths(Some(&repo_path("a"))), ["a"]);
    }

    #[test]
    fn a_line_of_gitignore_that_nests_too_deep_counts_for_nothing() {
        let deep = format!("*.log\n{}a{}\n", "{".repeat(8_000), "}".repeat(8_000));
        let bench = Bench::new(&[("a", ""), ("b.log", ""), (".gitignore", &deep)], &[]);
        let area = Area::new(&bench.workbench, None).unwrap();
        let paths: Vec<String> = area.files().map(|found| found.path).collect();
        assert_eq!(paths, [".gitignore", "a"]);
    }
}
