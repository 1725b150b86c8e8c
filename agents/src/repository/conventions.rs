//! Reads what people wrote for whoever works on the repository, as far as it matters to who plans.

use ropewalk_engine::conventions::{Conventions, MOST_BYTES, TOLD_LETTERS};
use ropewalk_schemas::{CommitId, clip};
use ropewalk_workspace::{GitError, LocalClone};

/// The sections of the conventions that matter to a plan.
const SECTIONS: [&str; 4] = [
    "database conventions",
    "api conventions",
    "file locations",
    "atomic task conventions",
];

/// What was found.
pub(crate) struct FoundConventions {
    /// The file that comes first.
    pub(crate) path: String,
    /// What matters of all of them.
    pub(crate) text: String,
}

impl FoundConventions {
    /// Reads them at `commit`; none where nobody wrote any.
    pub(super) async fn read(
        clone: &LocalClone,
        commit: &CommitId,
    ) -> Result<Option<Self>, GitError> {
        let mut written = Conventions::of_the_whole();
        loop {
            let wanted = written.wanted();
            if wanted.is_empty() {
                return Ok(written.told().map(|told| Self {
                    path: told.path.to_string(),
                    text: for_a_plan(&told.text),
                }));
            }
            written.take(clone.read_small_files(commit, &wanted, MOST_BYTES).await?);
        }
    }
}

/// Returns the sections of a conventions file that matter to a plan; all of it when none has such a heading.
fn for_a_plan(text: &str) -> String {
    let mut kept = String::new();
    let mut depth = None;
    for line in text.lines() {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let named = SECTIONS
                .iter()
                .any(|name| line[level..].to_lowercase().contains(name));
            depth = match depth {
                _ if named => Some(level),
                Some(outer) if level > outer => Some(outer),
                _ => None,
            };
        }
        if depth.is_some() {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let chosen = if kept.is_empty() { text } else { &kept };
    clip::lines(chosen.trim(), TOLD_LETTERS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::for_a_plan;

    #[test]
    fn the_sections_of_a_plan_are_taken_whole_and_the_others_left() {
        let text = "# Project\nintro\n## Database Conventions\nsnake case\n### Keys\nuuid\n## Release\nnever on friday\n# File Locations\nsrc\n";
        assert_eq!(
            for_a_plan(text),
            "## Database Conventions\nsnake case\n### Keys\nuuid\n# File Locations\nsrc"
        );
        assert_eq!(
            for_a_plan("# Other\nUse tabs.\n#no heading\n"),
            "# Other\nUse tabs.\n#no heading"
        );
    }
}
