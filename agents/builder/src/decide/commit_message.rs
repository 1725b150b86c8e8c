//! Says what a commit tells of a task: its title, what its agent said it did, and for which requirements.

use ropewalk_schemas::RequirementId;
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::task::{Action, Task, TaskBlock};

/// A subject that is longer is cut.
pub(crate) const SUBJECT_LETTERS: usize = 72;
/// So much of what an agent says of its work goes into a commit.
const SAID_BYTES: usize = 2 * 1024;

/// Returns the line that names a task.
pub(crate) fn subject(task: &Task) -> String {
    let block = &task.block;
    let verb = match block.action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Add => "add to",
        Action::Delete => "delete",
        Action::Verify => "verify",
    };
    match block.title() {
        Some(title) => {
            format!("{}: {}", task.id, clip::line(title, SUBJECT_LETTERS))
        }
        None => format!("{}: {verb} {}", task.id, block.file),
    }
}

/// Returns what was `said` of a task, and what it was to do.
pub(crate) fn body(block: &TaskBlock, said: Option<&str>) -> String {
    let said = said.map(|said| clip::ends(said.trim(), SAID_BYTES, Weight::Tail).into_owned());
    let requirements = block.requirements.iter();
    let requirements: Vec<String> = requirements
        .map(|requirement| format!("- {}", requirement.text.trim()))
        .collect();
    let paragraphs = said.into_iter().chain([requirements.join("\n")]);
    let body: Vec<String> = paragraphs.filter(|text| !text.is_empty()).collect();
    body.join("\n\n")
}

/// Lists the ids of the requirements of tasks, each once.
pub(crate) fn requirements<'b>(
    blocks: impl IntoIterator<Item = &'b TaskBlock>,
) -> Vec<&'b RequirementId> {
    let mut named: Vec<&RequirementId> = Vec::new();
    let lines = blocks.into_iter().flat_map(|block| &block.requirements);
    for id in lines.filter_map(|line| line.id.as_ref()) {
        if !named.contains(&id) {
            named.push(id);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::task::TaskState;

    use super::*;
    use crate::decide::fixture;

    #[test]
    fn a_title_is_one_line_of_a_subject_and_shows_where_it_was_cut() {
        let long = "word ".repeat(40);
        for (title, told) in [
            ("Keep a list", "T-1: Keep a list".to_owned()),
            ("Keep\n a list\n", "T-1: Keep a list".to_owned()),
            (
                long.as_str(),
                format!(
                    "T-1: {}…",
                    "word ".repeat(15).chars().take(71).collect::<String>()
                ),
            ),
        ] {
            let mut task = fixture::task("T-1", TaskState::Complete, &[]);
            task.block.title = Some(title.to_owned());
            assert_eq!(subject(&task), told);
        }
    }
}
