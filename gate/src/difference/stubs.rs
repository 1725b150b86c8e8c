//! Finds stub markers in the lines that a change adds.

mod python;

use std::collections::HashMap;

use ropewalk_schemas::clip;

/// So many letters of a stub are told.
const TEXT_LETTERS: usize = 200;

/// Calls and errors that say that something is not done, in any language; matched outside string literals.
const CALLS: &[&str] = &[
    "todo!(",
    "todo!{",
    "todo![",
    "unimplemented!(",
    "unimplemented!{",
    "raise NotImplementedError",
    "raise NotImplemented",
    "NotImplementedException(",
    "throw new UnsupportedOperationException(",
];

/// Texts that only a stub prints, matched inside string literals too.
const TEXTS: &[&str] = &[
    "panic!(\"not implemented",
    "panic!(\"not yet implemented",
    "panic!(\"todo",
    "panic!(\"TODO",
    "Error(\"not implemented",
    "Error('not implemented",
    "Error(\"Not implemented",
    "Error('Not implemented",
    "panic(\"not implemented",
    "panic(\"TODO",
    "your code here",
    "YOUR CODE HERE",
];

/// How a comment begins, in the common languages.
const COMMENTS: &[&str] = &["//", "#", "/*", "*", "--", "<!--", ";;", "\"\"\"", "'''"];

/// How the words of an unfinished comment begin.
const UNFINISHED: &[&str] = &[
    "TODO",
    "FIXME",
    "XXX",
    "stub",
    "Stub",
    "STUB",
    "placeholder",
    "Placeholder",
    "PLACEHOLDER",
    "not implemented",
    "Not implemented",
    "implement me",
    "implement this",
    "... rest of",
    "rest of the code",
    "... existing code",
];

/// A stub that a change adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    /// The file.
    pub file: String,
    /// The line in the new file.
    pub line: usize,
    /// What it says.
    pub text: String,
}

/// Finds the stubs in the lines that `after` holds and `before` does not.
pub fn find_added(file: &str, before: &str, after: &str) -> Vec<Stub> {
    let mut kept: HashMap<&str, usize> = HashMap::new();
    for line in before.lines() {
        *kept.entry(line.trim()).or_default() += 1;
    }
    let mut stubs = Vec::new();
    let lines: Vec<&str> = after.lines().collect();
    for (position, line) in lines.iter().enumerate() {
        match kept.get_mut(line.trim()) {
            Some(left) if *left > 0 => *left -= 1,
            _ if is_stub(line, file) || python::is_empty_body(file, &lines, position) => stubs
                .push(Stub {
                    file: file.to_owned(),
                    line: position + 1,
                    text: clip::letters(line.trim(), TEXT_LETTERS).into_owned(),
                }),
            _ => {}
        }
    }
    stubs
}

fn is_stub(line: &str, file: &str) -> bool {
    if is_prose(file) {
        return false;
    }
    let called = CALLS
        .iter()
        .any(|marker| line.match_indices(marker).any(|(at, _)| is_code(line, at)));
    called || TEXTS.iter().any(|marker| line.contains(marker)) || is_unfinished_comment(line)
}

/// A text may speak of what is still to be done.
fn is_prose(file: &str) -> bool {
    let extension = file
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(
        extension.as_deref(),
        Some("md" | "txt" | "rst" | "adoc" | "csv" | "json" | "snap" | "lock")
    )
}

/// Says whether position `at` of `line` is neither in a string literal nor inside a longer word.
fn is_code(line: &str, at: usize) -> bool {
    let before = &line[..at];
    let quotes = before.replace("\\\"", "").matches('"').count();
    let inside_word = before
        .chars()
        .next_back()
        .is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    quotes.is_multiple_of(2) && !inside_word
}

fn is_unfinished_comment(line: &str) -> bool {
    COMMENTS.iter().any(|opening| {
        line.match_indices(opening)
            .filter(|(at, _)| is_code(line, *at) && opens_comment(line, *at, opening))
            .any(|(at, _)| {
                let text =
                    line[at + opening.len()..].trim_start_matches(['/', '!', '*', '#', '-', ' ']);
                UNFINISHED.iter().any(|word| begins_with_word(text, word)) || is_note(text)
            })
    })
}

/// `todo: …` and `fixme(me)`, in whatever letters; a sentence may well begin with the word.
fn is_note(text: &str) -> bool {
    let plain = text.to_ascii_lowercase();
    ["todo", "fixme", "xxx"].iter().any(|word| {
        plain
            .strip_prefix(word)
            .is_some_and(|rest| rest.trim().is_empty() || rest.starts_with([':', '(', '!']))
    })
}

/// A lone `*`, `--` or `#` in the middle of code is an operator or an attribute, not a comment.
fn opens_comment(line: &str, at: usize, opening: &str) -> bool {
    let first = line[..at].trim().is_empty();
    match opening {
        "*" | "--" | ";;" => first,
        "#" => first || line[..at].ends_with(' '),
        _ => true,
    }
}

fn begins_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| {
        !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(file: &str, line: &str) -> Vec<Stub> {
        find_added(file, "kept\nlast\n", &format!("kept\n{line}\nlast\n"))
    }

    #[test]
    fn a_stub_is_found_with_its_place() {
        let stub = Stub {
            file: "src/lib.rs".to_owned(),
            line: 2,
            text: "todo!()".to_owned(),
        };
        assert_eq!(added("src/lib.rs", "    todo!()"), [stub]);
    }

    #[test]
    fn a_long_stub_is_seen_to_be_cut() {
        let line = format!("todo!(\"{}\")", "x".repeat(TEXT_LETTERS));
        let [stub] = added("src/lib.rs", &line).try_into().unwrap();
        assert_eq!(stub.text.chars().count(), TEXT_LETTERS);
        assert!(stub.text.ends_with("x…"), "{}", stub.text);
    }

    #[test]
    fn every_marker_is_a_stub_and_ordinary_code_is_not() {
        let stubs = [
            ("a.rs", "unimplemented!(\"later\")"),
            ("a.rs", "let x = 1; // TODO: the real thing"),
            ("a.rs", "/// FIXME"),
            ("a.rs", "panic!(\"not implemented\")"),
            ("a.rs", "0 // stub"),
            ("a.py", "    raise NotImplementedError"),
            ("a.py", "    pass  # TODO"),
            ("a.ts", "throw new Error('Not implemented')"),
            ("a.sql", "-- TODO"),
            ("a.html", "<!-- placeholder -->"),
            ("a.js", "/* XXX */"),
            ("a.py", "# todo: the real thing"),
            ("a.rs", "// Todo(me) later"),
            ("a.sh", "# fixme"),
            ("a.py", "def a(): ..."),
        ];
        for (file, line) in stubs {
            assert_eq!(added(file, line).len(), 1, "{line}");
        }
        let fine = [
            ("a.rs", "let todo = Todo::new();"),
            ("a.rs", "assert!(text.contains(\"todo!()\"));"),
            ("a.rs", "enum State { TODO, DONE }"),
            ("a.rs", "// the list of TODO items"),
            ("a.rs", "my_todo!(x)"),
            ("a.html", "<input placeholder=\"name\">"),
            ("a.rs", "let x = a * TODO;"),
            ("a.md", "# TODO"),
            ("a.rs", "// todo lists are shown here"),
            ("a.py", "class NotFound(Exception): ..."),
            ("a.pyi", "def a(): ..."),
            ("a.py", "x = numbers[..., 1]"),
            ("a.rs", "#[derive(Debug)]"),
        ];
        for (file, line) in fine {
            assert_eq!(added(file, line), [], "{line}");
        }
    }

    #[test]
    fn a_removed_or_kept_stub_is_not_held_against_the_change() {
        assert_eq!(find_added("x.rs", "todo!()\ntodo!()", "  todo!()"), []);
    }
}
