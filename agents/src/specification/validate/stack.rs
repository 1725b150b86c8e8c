//! Checks that people chose what the first code of a repository is built with: they would approve what a plan decided in silence.

use ropewalk_gate::project::is_code;
use ropewalk_schemas::task::TaskBlock;

use super::Facts;

/// A repository that holds no code yet, and of which nobody has seen a plan that brings some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmptyRepository {
    /// What this machine has to build with, as people are told it.
    pub choices: Vec<String>,
    /// What people wrote and what they answered.
    pub said: Vec<String>,
}

impl EmptyRepository {
    /// Returns whether people said these words, however they are broken into lines.
    fn holds(&self, words: &str) -> bool {
        let words = in_one_line(words);
        let mut said = self.said.iter();
        !words.is_empty() && said.any(|said| in_one_line(said).contains(&words))
    }
}

/// Returns whether tasks change more than words about a project.
pub fn brings_code(tasks: &[TaskBlock]) -> bool {
    let mut files = tasks.iter().flat_map(TaskBlock::files);
    files.any(|file| is_code(file.as_str()))
}

/// Returns the fault of a plan that brings the first code while `built_with`, the words that say with what, are nobody's.
pub fn unchosen(built_with: Option<&str>, tasks: &[TaskBlock], facts: &Facts) -> Option<String> {
    let empty = facts.empty.as_ref()?;
    if !brings_code(tasks) || built_with.is_some_and(|words| empty.holds(words)) {
        return None;
    }
    let why = match built_with {
        None => "and `built_with` does not say by which words people chose what it is built with",
        Some(_) => "and the words of `built_with` stand in no document and in no answer",
    };
    Some(format!(
        "the repository holds no code yet, {why}; copy theirs, or ask first with a blocking `question` whose options are {}",
        empty.choices.join(", ")
    ))
}

fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::RepoPath;

    use super::*;
    use crate::specification::validate::tests::task;

    #[test]
    fn the_first_code_is_built_with_what_people_said() {
        let empty = EmptyRepository {
            choices: vec!["Go (go)".to_owned(), "Python (python3)".to_owned()],
            said: vec!["A list of walks,\nin Python.".to_owned()],
        };
        let empty = Facts {
            empty: Some(empty),
            ..Facts::default()
        };
        let code = [task("A", &[])];
        let words = [TaskBlock {
            file: RepoPath::parse("docs/walks.md").unwrap(),
            ..task("A", &[])
        }];
        let anywhere = Facts::default();
        let rows = [
            (&empty, &code, None, Some("`built_with` does not say")),
            (&empty, &code, Some("walks, in python"), None),
            (&empty, &code, Some("in Go"), Some("stand in no document")),
            (&empty, &code, Some(" "), Some("stand in no document")),
            (&empty, &words, None, None),
            (&anywhere, &code, None, None),
        ];
        for (facts, tasks, built_with, expected) in rows {
            let fault = unchosen(built_with, tasks, facts);
            assert_eq!(fault.is_some(), expected.is_some(), "{built_with:?}");
            let told = fault.unwrap_or_default();
            assert!(told.contains(expected.unwrap_or_default()), "{told}");
            assert_eq!(
                told.contains("Go (go), Python (python3)"),
                expected.is_some()
            );
        }
    }
}
