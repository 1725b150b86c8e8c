//! Finds what people wrote for whoever works on the files of a task: the nearest first, the one of the whole repository last.

use std::collections::BTreeSet;

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::clip;
use ropewalk_schemas::repo_path::below;

/// What such a file is called; of two beside each other the first counts.
const NAMES: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];
/// So many directories are looked into.
const DIRECTORIES: usize = 32;
/// So much of all of them is told.
const LETTERS: usize = 16_000;

/// Where the conventions for some files may lie.
pub(super) struct Places<'a> {
    /// The nearest first; the last one is the root.
    directories: Vec<&'a str>,
}

impl<'a> Places<'a> {
    /// Looks at and above `files`.
    pub(super) fn of(files: impl Iterator<Item = &'a RepoPath>) -> Self {
        let above: BTreeSet<&str> = files.flat_map(RepoPath::directories).collect();
        let mut directories: Vec<&str> = above.into_iter().collect();
        directories.sort_by_key(|directory| std::cmp::Reverse(depth(directory)));
        let far = directories.len().saturating_sub(DIRECTORIES);
        directories.drain(..far);
        Self { directories }
    }

    /// Lists the paths to read.
    pub(super) fn paths(&self) -> Vec<String> {
        let names = |directory: &&str| NAMES.map(|name| below(directory, name));
        self.directories.iter().flat_map(names).collect()
    }

    /// Makes one text of what was read; none where there is nothing.
    pub(super) fn told(&self, contents: Vec<Option<Vec<u8>>>) -> Option<String> {
        let mut contents = contents.into_iter();
        let mut found = Vec::new();
        for directory in &self.directories {
            let here: Vec<Option<Vec<u8>>> = contents.by_ref().take(NAMES.len()).collect();
            let first = NAMES
                .iter()
                .zip(here)
                .find_map(|(name, text)| Some((name, text?)));
            if let Some((name, text)) = first {
                let text = String::from_utf8_lossy(&text).trim().to_owned();
                found.push((below(directory, name), text));
            }
        }
        found.retain(|(_, text)| !text.is_empty());
        let whole = match found.as_slice() {
            [] => return None,
            [(path, text)] if NAMES.contains(&path.as_str()) => text.clone(),
            many => {
                let parts = many
                    .iter()
                    .map(|(path, text)| format!("Of `{path}`:\n\n{text}"));
                parts.collect::<Vec<_>>().join("\n\n")
            }
        };
        Some(clip::lines(&whole, LETTERS).into_owned())
    }
}

fn depth(directory: &str) -> usize {
    match directory {
        "" => 0,
        directory => directory.split('/').count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[&str], there: &[(&str, &str)]) -> Option<String> {
        let files: Vec<RepoPath> = files
            .iter()
            .map(|file| RepoPath::parse(file).unwrap())
            .collect();
        let places = Places::of(files.iter());
        let read = |path: String| {
            let text = there.iter().find(|(name, _)| *name == path);
            text.map(|(_, text)| text.as_bytes().to_vec())
        };
        places.told(places.paths().into_iter().map(read).collect())
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
        let alone = told(&["a.txt"], &there);
        assert_eq!(alone.as_deref(), Some("root"));
        let nested = told(&["web/src/x/a.ts", "b.txt"], &there);
        assert_eq!(
            nested.as_deref(),
            Some(
                "Of `web/src/AGENTS.md`:\n\nof its sources\n\nOf `web/CLAUDE.md`:\n\nof the web\n\n\
                 Of `AGENTS.md`:\n\nroot"
            )
        );
        let only = told(&["docs/a.md"], &[("docs/AGENTS.md", "of the documents")]);
        assert_eq!(
            only.as_deref(),
            Some("Of `docs/AGENTS.md`:\n\nof the documents")
        );
        assert_eq!(told(&["a.txt"], &[("AGENTS.md", " \n")]), None);
    }
}
