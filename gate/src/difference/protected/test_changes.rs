//! Judges the change of an existing test: it may gain, and nothing else.

use std::borrow::Cow;
use std::collections::HashMap;

use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::clip;

use super::Change;
use super::imports::Imports;

/// What skips or narrows tests, in the common languages; matched anywhere in an added line.
const SKIPS: &[&str] = &[
    "@unittest.skip",
    "@unittest.expectedFailure",
    "@expectedFailure",
    "@skip",
    "pytest.mark.skip",
    "pytest.mark.xfail",
    "pytest.skip(",
    "pytest.xfail(",
    ".skipTest(",
    "SkipTest",
    "collect_ignore",
    "pytest_collection_modifyitems",
    "__test__ = False",
    "#[ignore",
    "#[cfg(any())]",
    "#![cfg(",
    ".skip(",
    ".skip.",
    "it.only",
    "test.only",
    "describe.only",
    "suite.only",
    "fit(",
    "fdescribe(",
    "xit(",
    "xtest(",
    "xdescribe(",
    "t.Skip(",
    "t.Skipf(",
    "t.SkipNow(",
    "@Disabled",
    "@Ignore",
    "assumeTrue(",
    "assumeFalse(",
    "[Ignore",
    "Skip =",
];

/// Lines that end a test program before it has tested all.
const EXITS: &[&str] = &[
    "exit",
    "exit 0",
    "exit;",
    "exit 0;",
    "sys.exit(0)",
    "sys.exit()",
    "os._exit(0)",
    "exit(0)",
    "quit()",
    "process.exit(0)",
    "process.exit(0);",
    "process.exit()",
    "process.exit();",
    "os.Exit(0)",
    "std::process::exit(0);",
];

/// How lines begin that git puts around what stands against each other.
const CONFLICT_MARKS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];
/// The line that it puts between the two.
const BETWEEN: &str = "=======";

/// So many lost lines are named.
const LINES: usize = 8;
/// So many letters of each.
const LINE_LETTERS: usize = 100;

/// Says why a change of an existing test is not the agent's to make.
pub(super) fn why(change: &Change<'_>) -> Option<String> {
    let path = change.path;
    let Some(after) = change.after else {
        return Some(format!("`{path}` is an existing test, which is removed"));
    };
    let before = &without_conflict_marks(change.before.unwrap_or_default());
    if let Some(sign) = sign(before, after) {
        return Some(format!(
            "`{path}` is an existing test, which is weakened: {sign}"
        ));
    }
    let imports = Imports::read(path, before).zip(Imports::read(path, after));
    let replaced = imports.as_ref().and_then(|(had, has)| had.replaced_by(has));
    if let Some(name) = replaced {
        return Some(format!(
            "`{path}` is an existing test, in which an import may put something else in the place of `{name}`"
        ));
    }
    let lost = match &imports {
        // A line of imports that only gains a name is lost as a line, and as nothing else.
        Some((had, has)) if had.are_kept_by(has) => lost_lines(path, &had.rest, &has.rest),
        _ => lost_lines(path, before, after),
    };
    let lost = named(&lost)?;
    Some(format!(
        "`{path}` is an existing test, which loses or changes{lost}"
    ))
}

/// Says whether a text bears the marks that git puts around what stands against each other.
pub(in super::super) fn is_in_conflict(text: &str) -> bool {
    text.lines().any(is_conflict_mark)
}

fn is_conflict_mark(line: &str) -> bool {
    CONFLICT_MARKS.iter().any(|mark| line.starts_with(mark))
}

/// Returns a text without those marks: who joins branches begins where both sides stand, and keeps both.
fn without_conflict_marks(text: &str) -> Cow<'_, str> {
    if !is_in_conflict(text) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n');
    let kept = lines.filter(|line| !is_conflict_mark(line) && line.trim_end() != BETWEEN);
    Cow::Owned(kept.collect())
}

/// Returns the added line that skips, narrows or disarms tests, if there is one.
pub(super) fn sign<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    added(before, after, str::trim)
        .into_iter()
        .map(str::trim)
        .find(|line| {
            SKIPS.iter().any(|skip| holds(line, skip))
                || EXITS.contains(line)
                || patches_assertion(line, before)
                || defines_again(line, before)
        })
}

/// Looks for a mark that is not the end of a longer word.
fn holds(line: &str, mark: &str) -> bool {
    let begins_word = mark.starts_with(|letter: char| letter.is_ascii_alphabetic());
    line.match_indices(mark).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !begins_word
            || !before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

/// `unittest.TestCase.assertEqual = …`, `def assertEqual(`, `setattr(TestCase, "assertEqual", …)`.
///
/// A test may have assertions of its own; what takes the place of one that was used before is no gain.
fn patches_assertion(line: &str, before: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let set = line.contains("setattr(") || line.contains("patch");
    line.match_indices("assert").any(|(at, _)| {
        let (ahead, from) = line.split_at(at);
        let rest = from.trim_start_matches(is_word);
        let name = &from[..from.len() - rest.len()];
        let used = [format!("{name}("), format!("{name}!(")];
        let is_used = used.iter().any(|call| before.contains(call.as_str()));
        let rest = rest.trim_start();
        let assigned = rest.starts_with('=') && !rest.starts_with("==") && !ahead.contains('(');
        let defined = ["def ", "function ", "macro_rules! "]
            .iter()
            .any(|word| ahead.ends_with(word));
        is_used && !ahead.ends_with(is_word) && (assigned || defined || set)
    })
}

/// A second definition of the same name takes the place of the first, in Python and in a shell.
fn defines_again(line: &str, before: &str) -> bool {
    let Some(rest) = line.strip_prefix("def test") else {
        return false;
    };
    let name = rest.split('(').next().unwrap_or(rest);
    let defined = format!("def test{name}(");
    before.lines().any(|line| line.trim().starts_with(&defined))
}

/// How a line is compared with another one.
type Form = fn(&str) -> &str;

/// Lists the lines that `after` has more often than `before`.
fn added<'a>(before: &str, after: &'a str, form: Form) -> Vec<&'a str> {
    let mut known = counted(before, form);
    after
        .lines()
        .filter(|line| match known.get_mut(form(line)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => !line.trim().is_empty(),
        })
        .collect()
}

/// Names lost lines: how many there are, and so many of them that nobody is shown a harmless one in the place of others.
fn named(lost: &[&str]) -> Option<String> {
    let (first, more) = lost.split_first()?;
    let told = |line: &&str| clip::letters(line.trim(), LINE_LETTERS).into_owned();
    if more.is_empty() {
        return Some(format!(": {}", told(first)));
    }
    // Those that assert something first: a long difference shows a person its beginning alone.
    let asserts = |line: &&str| {
        ["assert", "expect", "should"]
            .iter()
            .any(|word| line.contains(word))
    };
    let (telling, others): (Vec<&str>, Vec<&str>) = lost.iter().copied().partition(asserts);
    let lines = telling.iter().chain(&others).take(LINES).map(told);
    let lines: Vec<String> = lines.chain(and_more(lost.len(), LINES)).collect();
    let number = lost.len();
    Some(format!(" {number} lines: {}", lines.join("; ")))
}

/// Lists the lines of `before` that `after` does not have; a changed line is a lost one and a new one.
///
/// A list of JSON that goes on gains a comma behind its last line. Elsewhere a comma may change what a line says: it makes a
/// tuple of Python, which is always true.
fn lost_lines<'a>(path: &str, before: &'a str, after: &str) -> Vec<&'a str> {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    let form = match ending {
        Some("json") => without_comma,
        _ => str::trim,
    };
    added(after, before, form)
}

fn counted(text: &str, form: Form) -> HashMap<&str, usize> {
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        *lines.entry(form(line)).or_default() += 1;
    }
    lines
}

fn without_comma(line: &str) -> &str {
    let line = line.trim();
    line.strip_suffix(',').unwrap_or(line)
}

#[cfg(test)]
mod tests;
