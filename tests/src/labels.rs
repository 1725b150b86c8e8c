//! Rewords every label of the question files, so that a suite can be run again with labels that mean nothing.
//!
//! Labels are for eyes: whoever decides by an answer reads the id of its choice. A suite reads its templates through
//! [`worded`], and one of its tests runs the others again with [`run_again_reworded`].

use std::io;
use std::process::Command;

/// Says to the second run that every label is replaced.
const REWORDED: &str = "ROPEWALK_TEST_LABELS";

/// Why the tests did not pass with other labels.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// The test program could not be started again.
    #[error("cannot run this test program again")]
    Start(#[source] io::Error),
    /// A name is that of no test any more.
    #[error("`{0}` is the name of no test that was run with every label replaced")]
    Unmet(String),
    /// Something depends on the wording of a label.
    #[error("with every label replaced `{tests}` fail, so something reads a label:\n{output}")]
    Failed {
        /// The tests.
        tests: String,
        /// What they printed.
        output: String,
    },
}

/// Returns the text of a question file as this run reads it: as it is, or with every label replaced by nonsense.
pub fn worded(text: &str) -> String {
    if std::env::var_os(REWORDED).is_some() {
        reworded(text)
    } else {
        text.to_owned()
    }
}

fn reworded(text: &str) -> String {
    let mut number = 0_u32;
    let mut lines = String::new();
    for line in text.lines() {
        if let Some((before, _)) = line.split_once("label: ") {
            number += 1;
            lines.push_str(before);
            lines.push_str("label: qx ");
            lines.push_str(&number.to_string());
        } else {
            lines.push_str(line);
        }
        lines.push('\n');
    }
    lines
}

/// Runs those tests of this test program again whose names contain one of `tests`, with every label replaced.
pub fn run_again_reworded(tests: &[&str]) -> Result<(), LabelsError> {
    let program = std::env::current_exe().map_err(LabelsError::Start)?;
    let output = Command::new(program)
        .args(tests)
        .env(REWORDED, "yes")
        .output()
        .map_err(LabelsError::Start)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // A name that no test has any more would pass.
    let unmet: Vec<&str> = tests
        .iter()
        .copied()
        .filter(|name| !passed(&said, name))
        .collect();
    if output.status.success() && unmet.is_empty() {
        return Ok(());
    }
    if output.status.success() {
        return Err(LabelsError::Unmet(unmet.join(" ")));
    }
    Err(LabelsError::Failed {
        tests: tests.join(" "),
        output: format!("{said}{}", String::from_utf8_lossy(&output.stderr)),
    })
}

/// Says that a test passed whose name contains `name`.
fn passed(said: &str, name: &str) -> bool {
    let mut lines = said.lines().filter_map(|line| line.strip_prefix("test "));
    lines.any(|line| line.ends_with(" ... ok") && line.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_test_has_is_not_met() {
        let said = "running 2 tests\ntest consent::a_yes ... ok\ntest budget::more ... FAILED\n";
        assert!(passed(said, "consent::a_"));
        assert!(!passed(said, "budget::") && !passed(said, "verdicts::"));
    }

    #[test]
    fn every_label_is_replaced_and_nothing_else() {
        let text = "  choices:\n    - id: merge\n      label: Merge it\n    - id: leave\n      label: Leave it\n";
        let expected =
            "  choices:\n    - id: merge\n      label: qx 1\n    - id: leave\n      label: qx 2\n";
        assert_eq!(reworded(text), expected);
    }
}
