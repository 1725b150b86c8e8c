//! What is not worth remembering.

use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::{GlobPattern, GlobPatternError};

use crate::draft::Draft;
use crate::similarity::normalise;
use crate::telling::{is_of_counts, is_output};

/// The longest content, in characters.
pub const LONGEST: usize = 2_000;
/// The most files, topics and places of evidence that one item names: whoever looks for one compares them all.
pub const MOST_NAMED: usize = 20;
/// The longest topic that a person names, in characters: it is a word, or a few.
pub const LONGEST_TOPIC: usize = 100;
/// The fewest words that can say something of use.
const FEWEST_WORDS: usize = 4;
/// What is true of everything teaches nothing: such a text, or hardly more than that, is refused.
const GENERIC: [&str; 16] = [
    "an error occurred",
    "be careful",
    "check the code",
    "check your work",
    "command failed",
    "exit code 1",
    "fix the error",
    "follow best practices",
    "follow the requirements",
    "make sure it works",
    "read the error message",
    "something went wrong",
    "test your code",
    "tests failed",
    "validation failed",
    "write better code",
];
/// So many words beside a generic phrase make it a text of its own.
const OWN_WORDS: usize = 5;
/// What only says how the machine or the network was that day.
const ENVIRONMENTAL: [&str; 18] = [
    "address already in use",
    "broken pipe",
    "cannot allocate memory",
    "connection refused",
    "connection reset",
    "connection timed out",
    "could not resolve host",
    "disk quota exceeded",
    "network is unreachable",
    "no route to host",
    "no space left on device",
    "out of memory",
    "rate limit",
    "service unavailable",
    "temporary failure in name resolution",
    "too many open files",
    "too many requests",
    "operation timed out",
];

/// Says why something is not remembered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nothing in it, or hardly a word.
    #[error("`{0}` says too little to be of use")]
    TooShort(String),
    /// It has more characters than an item may have.
    #[error("the text has {0} characters; {LONGEST} is the most")]
    TooLong(usize),
    /// It names more globs or topics than an item has.
    #[error("there are {count} {what}; {MOST_NAMED} is the most")]
    TooMany {
        /// What there are too many of: `globs` or `topics`.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
    /// One of its topics has more characters than a few words.
    #[error("one of the topics has {0} characters; {LONGEST_TOPIC} is the most")]
    LongTopic(usize),
    /// It is true of everything.
    #[error("`{0}` is true of everything")]
    Generic(String),
    /// It only says how the machine or the network was.
    #[error("`{0}` is a passing state of the machine or the network, not a lesson")]
    Environmental(String),
    /// It is a line of a source, or of what an assertion shows.
    #[error("`{0}` is a line of a source or an assertion, and no lesson")]
    Output(String),
    /// One of its globs cannot match.
    #[error(transparent)]
    Glob(#[from] GlobPatternError),
}

impl Advice for Refusal {
    fn next(&self) -> Option<String> {
        match self {
            Self::TooShort(_) | Self::Output(_) => {
                Some("say what goes wrong and what to do instead".to_owned())
            }
            Self::TooLong(_) => Some("say it in fewer words, or in several items".to_owned()),
            Self::TooMany { .. } => Some("leave out those that say least".to_owned()),
            Self::LongTopic(_) => Some("name each in a word or two".to_owned()),
            Self::Generic(_) => Some("say what is special here".to_owned()),
            Self::Glob(error) => error.next(),
            // Nobody but an agent is refused so.
            Self::Environmental(_) => None,
        }
    }
}

/// Returns why a draft is not remembered, if so. What a person says is only bound in size.
pub fn refusal(draft: &Draft) -> Option<Refusal> {
    let content = draft.content.trim();
    let length = content.chars().count();
    let words = normalise(content);
    if length > LONGEST {
        return Some(Refusal::TooLong(length));
    }
    let fewest = if draft.from_person { 1 } else { FEWEST_WORDS };
    if word_count(&words) < fewest {
        return Some(Refusal::TooShort(content.to_owned()));
    }
    // Before each glob is read: of many thousands that would take a while.
    if let Some(refusal) = too_much(draft).filter(|_| draft.from_person) {
        return Some(refusal);
    }
    let mut globs = draft.globs.iter().map(|glob| GlobPattern::anywhere(glob));
    if let Some(error) = globs.find_map(Result::err) {
        return Some(error.into());
    }
    if draft.from_person {
        return None;
    }
    if is_output(content) {
        return Some(Refusal::Output(content.to_owned()));
    }
    if let Some(phrase) = ENVIRONMENTAL.iter().find(|phrase| words.contains(**phrase)) {
        return Some(Refusal::Environmental((*phrase).to_owned()));
    }
    GENERIC
        .iter()
        .find(|phrase| {
            words.contains(**phrase) && word_count(&words) < word_count(phrase) + OWN_WORDS
        })
        .map(|phrase| Refusal::Generic((*phrase).to_owned()))
}

/// Returns what a draft names too much of, if so. A person is refused for it; agents bound what their models hand in.
fn too_much(draft: &Draft) -> Option<Refusal> {
    let lists = [("globs", draft.globs.len()), ("topics", draft.topics.len())];
    if let Some((what, count)) = lists.into_iter().find(|(_, count)| *count > MOST_NAMED) {
        return Some(Refusal::TooMany { what, count });
    }
    let topics = draft.topics.iter();
    let longest = topics.map(|topic| topic.chars().count()).max()?;
    (longest > LONGEST_TOPIC).then_some(Refusal::LongTopic(longest))
}

/// Says whether a failure can teach something about the code: by its class, and not by a lack of tests alone.
pub fn teaches(failure: &Failure) -> bool {
    is_lesson(failure.class) && !is_of_counts(&failure.error)
}

/// Says whether a failure of this class can teach something about the code. What breaks a rule that every prompt tells, such as
/// a file that is not of the task, is of whoever did it.
pub const fn is_lesson(class: FailureClass) -> bool {
    match class {
        FailureClass::SyntaxError
        | FailureClass::MissingDependency
        | FailureClass::ValidationFailed
        | FailureClass::WeakenedTest
        | FailureClass::Unknown => true,
        FailureClass::Conflict
        | FailureClass::EmptyChange
        | FailureClass::OutOfScope
        | FailureClass::StubMarker
        | FailureClass::SecretFound
        | FailureClass::Tampered
        | FailureClass::ToolMissing
        | FailureClass::Network
        | FailureClass::Timeout
        | FailureClass::Resource
        | FailureClass::Quota
        | FailureClass::ProviderDown
        | FailureClass::ContextFull
        | FailureClass::ReplyTooLarge
        | FailureClass::DoomLoop
        | FailureClass::EvalExhausted
        | FailureClass::SandboxDenied
        | FailureClass::NoProgress
        | FailureClass::Blocked
        | FailureClass::Interrupted
        | FailureClass::AgentRefused => false,
    }
}

fn word_count(words: &str) -> usize {
    words.split(' ').filter(|word| !word.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::draft;

    #[test]
    fn what_is_not_remembered_is_no_advice() {
        use ropewalk_schemas::advice::Words;

        let short = Refusal::TooShort("a; b".to_owned());
        assert_eq!(
            Words::of(&short),
            (
                "`a; b` says too little to be of use",
                "say what goes wrong and what to do instead"
            )
                .into()
        );
        let glob = Refusal::from(GlobPatternError::Empty);
        let words = ("a glob is empty", "write for example `src/*.rs`");
        assert_eq!(Words::of(&glob), words.into());
        let long = (
            "the text has 2499 characters; 2000 is the most",
            "say it in fewer words, or in several items",
        );
        assert_eq!(Words::of(&Refusal::TooLong(2_499)), long.into());
    }

    #[test]
    fn what_teaches_nothing_is_refused() {
        let long = "word ".repeat(500);
        let cases = [
            ("SQLite has no DATETIME type; store dates as TEXT", None),
            (
                "Set a timeout on every HTTP client, the default waits for ever",
                None,
            ),
            (
                "The command failed because `cargo test` needs `--offline` when there is no registry",
                None,
            ),
            ("", Some(Refusal::TooShort(String::new()))),
            (
                "It failed again.",
                Some(Refusal::TooShort("It failed again.".to_owned())),
            ),
            (
                "Validation failed: exit code 1",
                Some(Refusal::Generic("exit code 1".to_owned())),
            ),
            (
                "Always be careful with this code",
                Some(Refusal::Generic("be careful".to_owned())),
            ),
            (
                "Error: connect: Connection refused (os error 111)",
                Some(Refusal::Environmental("connection refused".to_owned())),
            ),
            (
                "write /tmp/x: No space left on device",
                Some(Refusal::Environmental("no space left on device".to_owned())),
            ),
            (
                "self.assertEqual(render(basket), 'one line of tea')",
                Some(Refusal::Output(
                    "self.assertEqual(render(basket), 'one line of tea')".to_owned(),
                )),
            ),
            (long.as_str(), Some(Refusal::TooLong(2_499))),
        ];
        for (content, expected) in cases {
            assert_eq!(refusal(&draft(content)), expected, "{content}");
        }
    }

    #[test]
    fn what_a_person_says_is_bound_only_in_size_and_form() {
        let said = |content: &str, glob: &str| {
            let mut draft = draft(content);
            draft.from_person = true;
            draft.globs = vec![glob.to_owned()];
            refusal(&draft)
        };
        assert_eq!(said("be careful", "*.rs"), None);
        assert_eq!(said("  ", "*.rs"), Some(Refusal::TooShort(String::new())));
        let nested = format!("{}a{}", "{".repeat(8_000), "}".repeat(8_000));
        for (glob, told) in [("a[", "`a[` is no glob"), (&nested, "1000 is the most")] {
            let refused = said("be careful", glob).map(|refusal| refusal.to_string());
            assert!(
                refused.is_some_and(|refused| refused.contains(told)),
                "{told}"
            );
        }
    }

    #[test]
    fn what_a_person_names_is_bound_too_and_each_refusal_says_what_to_do() {
        let said = |globs: usize, topics: usize, letters: usize| {
            let mut draft = draft("Mind the gap");
            draft.from_person = true;
            draft.globs = vec!["*.rs".to_owned(); globs];
            draft.topics = vec!["é".repeat(letters); topics];
            refusal(&draft)
        };
        let too_many = |what, count| Some(Refusal::TooMany { what, count });
        let cases = [
            (said(0, 0, 0), None),
            (said(MOST_NAMED, MOST_NAMED, LONGEST_TOPIC), None),
            (said(21, 0, 0), too_many("globs", 21)),
            (said(0, 21, 1), too_many("topics", 21)),
            (said(0, 1, 101), Some(Refusal::LongTopic(101))),
        ];
        for (refused, expected) in cases {
            assert_eq!(refused, expected);
            assert!(refused.is_none_or(|refused| refused.next().is_some()));
        }
    }

    #[test]
    fn what_passes_or_breaks_a_rule_of_the_work_is_no_lesson() {
        assert!(is_lesson(FailureClass::ValidationFailed));
        assert!(is_lesson(FailureClass::SyntaxError));
        for class in [
            FailureClass::Network,
            FailureClass::Timeout,
            FailureClass::Resource,
            FailureClass::OutOfScope,
            FailureClass::Tampered,
        ] {
            assert!(!is_lesson(class), "{class:?}");
        }
    }
}
