//! Decides whether a failure taught something.

use ropewalk_knowledge::{is_lesson, is_output};
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::clip;
use ropewalk_schemas::task::Action;

/// What is known of a failure that no further try follows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureFacts {
    /// Its class.
    pub class: FailureClass,
    /// Whether the task passed after it: then the build has written the lesson down.
    pub self_corrected: bool,
    /// Whether another try follows, which may yet correct it.
    pub will_retry: bool,
    /// How often the same class failed at this task.
    pub repeated: usize,
    /// Whether the very same failure was seen in another task.
    pub seen_before: bool,
}

/// Decides whether to remember a failure. A day on which the network was down teaches nothing, however often.
pub fn should_record_gotcha(failure: &FailureFacts) -> bool {
    let environmental = matches!(
        failure.class,
        FailureClass::Network
            | FailureClass::Timeout
            | FailureClass::Resource
            | FailureClass::Quota
            | FailureClass::ProviderDown
            | FailureClass::ContextFull
            | FailureClass::ReplyTooLarge
            | FailureClass::ToolMissing
            | FailureClass::SandboxDenied
    );
    // Nor does what breaks a rule that every prompt tells.
    let of_conduct = matches!(
        failure.class,
        FailureClass::EmptyChange
            | FailureClass::OutOfScope
            | FailureClass::StubMarker
            | FailureClass::SecretFound
            | FailureClass::Tampered
    );
    if environmental || of_conduct {
        return false;
    }
    if failure.self_corrected {
        return is_lesson(failure.class);
    }
    if failure.will_retry {
        return false;
    }
    failure.seen_before || is_reproducible(failure)
}

/// The same class at least twice, of a kind that the code itself causes.
fn is_reproducible(failure: &FailureFacts) -> bool {
    let of_the_code = matches!(
        failure.class,
        FailureClass::SyntaxError
            | FailureClass::MissingDependency
            | FailureClass::ValidationFailed
            | FailureClass::WeakenedTest
            | FailureClass::NoProgress
    );
    of_the_code && failure.repeated >= 2
}

/// So much of an error becomes part of a lesson.
const ERROR_LETTERS: usize = 300;
/// How lines begin that name a fault.
const FAULTS: [&str; 8] = [
    "error[",
    "error:",
    "error ",
    "fatal",
    "panicked at",
    "assertion",
    "thread '",
    "fail",
];

/// Puts a failure that was never mended into words, or `None` when its output names no fault. What a test compares is no word
/// of it.
pub fn lesson_of(action: Action, file: &str, tries: usize, output: &str) -> Option<String> {
    let lines = || {
        output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !is_output(line))
    };
    let named = lines().find(|line| {
        let plain = line.to_lowercase();
        FAULTS
            .iter()
            .any(|fault| plain.starts_with(fault) || plain.contains(": error"))
    });
    let line = named.or_else(|| lines().next())?;
    let cut = clip::letters(line, ERROR_LETTERS);
    let verb = match action {
        Action::Create => "Creating",
        Action::Update => "Updating",
        Action::Add => "Adding to",
        Action::Delete => "Deleting",
        Action::Verify => "Verifying",
    };
    Some(format!(
        "{verb} `{file}` failed in {tries} tries and was never mended; take another approach than the one that ends in: {cut}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_when_it_taught_something() {
        use FailureClass::{Network, OutOfScope, SyntaxError, Timeout, Unknown, ValidationFailed};
        // class, self-corrected, will retry, repeated, seen before, recorded
        let rows = [
            (SyntaxError, true, false, 1, false, true),
            (SyntaxError, false, true, 2, true, false),
            (SyntaxError, false, false, 1, false, false),
            (SyntaxError, false, false, 2, false, true),
            (ValidationFailed, false, false, 3, false, true),
            (ValidationFailed, false, false, 1, true, true),
            (Unknown, false, false, 3, false, false),
            (Unknown, false, false, 1, true, true),
            (OutOfScope, true, false, 1, false, false),
            (OutOfScope, false, false, 3, true, false),
            (Network, true, false, 3, true, false),
            (Timeout, false, false, 3, true, false),
        ];
        for (class, self_corrected, will_retry, repeated, seen_before, expected) in rows {
            let facts = FailureFacts {
                class,
                self_corrected,
                will_retry,
                repeated,
                seen_before,
            };
            assert_eq!(should_record_gotcha(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn a_lesson_names_the_fault_and_not_the_noise() {
        let output =
            "   Compiling habits v0.1.0\nerror[E0308]: mismatched types\n --> src/lib.rs:3";
        let lesson = lesson_of(Action::Create, "src/lib.rs", 3, output).unwrap();
        assert!(
            lesson.contains("mismatched types") && lesson.contains("src/lib.rs"),
            "{lesson}"
        );
        assert_eq!(lesson_of(Action::Create, "src/lib.rs", 3, " \n"), None);
        let compared = "assertion `left == right` failed\n  left: 1\n right: 2";
        assert_eq!(lesson_of(Action::Create, "src/lib.rs", 3, compared), None);
        let long = format!("error: {}", "no such thing ".repeat(40));
        let lesson = lesson_of(Action::Create, "src/lib.rs", 3, &long).unwrap();
        assert!(lesson.ends_with('…'), "what is cut says so: {lesson}");
    }
}
