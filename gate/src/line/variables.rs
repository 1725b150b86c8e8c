//! Tells what the words of a shell line may be, as far as that is written: by variables, loops over lists, and what commands tell
//! others.
//!
//! A variable may hold every value that it is given anywhere, since nobody knows which way a script goes. What is not known of a
//! word stands in it as [`UNKNOWN`]. All of it is bounded: what has more forms than are counted is not known.

use std::collections::BTreeMap;

use super::lists::{self, LONGEST_BYTES, MOST_FORMS, MOST_WORDS};
use super::tokens::{Substitution, parts};
use super::{DEEPEST, KEYWORDS, SimpleCommand, UNKNOWN, is_assignment, name_of, simple_commands};

/// Of a text that is put together of more pieces nothing is known.
const MOST_PIECES: usize = 64;
/// So much the values of all variables may hold, each with what it takes to keep it.
const MOST_BYTES: usize = 128 * 1024;
const KEPT_BYTES: usize = 64;
/// So many arguments of a script have a number.
const MOST_NUMBERS: usize = 9;
/// Commands that declare the variables that they are given.
const DECLARES: &[&str] = &["export", "readonly", "local", "declare", "typeset"];

/// What variables may hold, and what the last command told of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Variables {
    values: BTreeMap<String, Vec<String>>,
    bytes: usize,
    told: Vec<String>,
}

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// A variable, and what stands for it where it holds nothing.
    Variable(&'a str, Option<&'a str>),
    /// What a line tells.
    Line(&'a str),
    Unknown,
}

impl Variables {
    /// Adds what a variable may hold.
    pub(crate) fn add(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        for value in values {
            let known = self.values.get(name);
            let known = known.map(Vec::as_slice).unwrap_or_default();
            let is_new = !value.is_empty() && !known.contains(&value);
            let bytes = self.bytes + name.len() + value.len() + KEPT_BYTES;
            if is_new && known.len() < MOST_FORMS && bytes <= MOST_BYTES {
                self.values.entry(name.to_owned()).or_default().push(value);
                self.bytes = bytes;
            }
        }
    }

    /// Adds the variables of a file in which each may be made of others, wherever these stand.
    pub(crate) fn define(&mut self, assigned: &[(String, String)]) {
        let outer = self.clone();
        for _ in 0..DEEPEST {
            let known = std::mem::replace(self, outer.clone());
            for (name, value) in assigned {
                self.add(name, known.forms_of(value, 0));
            }
        }
    }

    /// Returns how many bytes the values of all variables hold, each with what it takes to keep it.
    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// Says whether something is known of a variable.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the variables of a script, or of a line, that is given these arguments.
    pub(crate) fn with_arguments(&self, arguments: &[String]) -> Self {
        let mut inner = self.clone();
        inner.told.clear();
        inner.values.retain(|name, _| {
            let is_number = name.starts_with(|letter: char| letter.is_ascii_digit());
            !is_number && !matches!(name.as_str(), "@" | "*")
        });
        for (number, argument) in (1..=MOST_NUMBERS).zip(arguments) {
            inner.add(&number.to_string(), [argument.clone()]);
        }
        for all in ["@", "*"] {
            inner.add(all, arguments.iter().cloned());
        }
        inner
    }

    /// Takes what a command gives variables, which is before it runs.
    pub(crate) fn assign(&mut self, simple: &SimpleCommand) {
        let is_before = |word: &&String| is_assignment(word) || KEYWORDS.contains(&word.as_str());
        let before = simple.words.iter().take_while(is_before);
        let (program, arguments) = simple.program().unwrap_or_default();
        let name = name_of(program);
        let declared = if DECLARES.contains(&name) {
            arguments
        } else {
            &[]
        };
        for word in before.chain(declared) {
            if let Some((variable, value)) = word.split_once('=')
                && is_assignment(word)
            {
                let values = self.forms_of(value, 0);
                self.add(variable, values);
            }
        }
        match (name, arguments) {
            ("for" | "select", [variable, rest @ ..]) => {
                let listed = match rest {
                    [word, words @ ..] if word == "in" => self.words_of(words, 0),
                    // Without a list it goes over what the script is given.
                    _ => self.words_of(&["$@".to_owned()], 0),
                };
                self.add(variable, listed);
            }
            ("read" | "mapfile" | "readarray", variables) => {
                let told = self.told_to(simple).to_vec();
                // What is no name is a flag, or the number behind one.
                let is_name = |word: &&String| is_assignment(&format!("{word}="));
                for variable in variables.iter().filter(is_name) {
                    self.add(variable, told.clone());
                }
            }
            _ => {}
        }
    }

    /// Takes what a command tells the one behind it, which is after it ran.
    pub(crate) fn tell(&mut self, simple: &SimpleCommand) {
        self.told = self.told_after(&self.told, simple, 0);
    }

    /// Lists what a command is told of by the one before it.
    pub(crate) fn told_to(&self, simple: &SimpleCommand) -> &[String] {
        if simple.is_piped { &self.told } else { &[] }
    }

    fn told_after(&self, before: &[String], simple: &SimpleCommand, depth: usize) -> Vec<String> {
        // An end of what stands in brackets or words of the shell is no command.
        let Some((program, arguments)) = simple.program() else {
            return before.to_vec();
        };
        // Whoever is told passes it on, less what it leaves out.
        let mut told = if simple.is_piped {
            before.to_vec()
        } else {
            Vec::new()
        };
        let name = name_of(program);
        if lists::is_lister(name) {
            told.extend(lists::listed(name, &self.words_of(arguments, depth)));
        }
        told.truncate(MOST_FORMS);
        told
    }

    /// Lists the commands that a command runs with what it is told of, or finds.
    pub(crate) fn commands_within(&self, simple: &SimpleCommand) -> Vec<SimpleCommand> {
        let Some((program, arguments)) = simple.program() else {
            return Vec::new();
        };
        let nothing = unknown();
        let told = match self.told_to(simple) {
            [] => nothing.as_slice(),
            told => told,
        };
        let within = lists::within(name_of(program), arguments, told).into_iter();
        let commands = within.map(|words| SimpleCommand {
            words,
            ..SimpleCommand::default()
        });
        commands.collect()
    }

    /// Lists the forms of a command, with values in the places of variables.
    pub(crate) fn forms(&self, simple: &SimpleCommand) -> Vec<SimpleCommand> {
        if simple.words.len() > MOST_WORDS {
            return vec![simple.clone()];
        }
        let mut forms: Vec<Vec<String>> = vec![Vec::new()];
        let mut added = 0;
        for word in &simple.words {
            let mut places = self.forms_in_place(word);
            added += places.iter().map(Vec::len).sum::<usize>().saturating_sub(1);
            if forms.len() * places.len() > MOST_FORMS || added > MOST_WORDS {
                places = vec![vec![without_values(word)]];
            }
            if let [only] = places.as_slice() {
                for form in &mut forms {
                    form.extend_from_slice(only);
                }
                continue;
            }
            let longer = forms.iter().flat_map(|form| {
                let places = places.iter();
                places.map(move |place| [form.as_slice(), place.as_slice()].concat())
            });
            forms = longer.collect();
        }
        let reads = simple.reads.iter();
        let reads = reads.flat_map(|word| self.forms_in_place(word)).flatten();
        let reads: Vec<String> = reads.collect();
        let commands = forms.into_iter().map(|words| SimpleCommand {
            words,
            reads: reads.clone(),
            ..*simple
        });
        commands.collect()
    }

    /// Lists the forms of a word of a command, each of which may be several words. What holds blanks is a line by itself, or
    /// prose, and stays as it is.
    fn forms_in_place(&self, word: &str) -> Vec<Vec<String>> {
        if !word.contains(['$', '`']) || is_prose(&pieces(word)) {
            return vec![vec![word.to_owned()]];
        }
        let forms = self.forms_of(word, 0).into_iter();
        forms.map(|form| split(&form).collect()).collect()
    }

    /// Lists the words that words may stand for.
    pub(crate) fn words_of(&self, words: &[String], depth: usize) -> Vec<String> {
        let forms = words.iter().flat_map(|word| self.forms_of(word, depth));
        let words = forms.flat_map(|form| split(&form).collect::<Vec<String>>());
        words.take(MOST_WORDS).collect()
    }

    /// Lists what a text may be.
    fn forms_of(&self, text: &str, depth: usize) -> Vec<String> {
        let pieces = pieces(text);
        if pieces.len() > MOST_PIECES {
            return unknown();
        }
        let mut forms = vec![String::new()];
        for piece in pieces {
            let mut values = match piece {
                Piece::Text(text) => vec![text.to_owned()],
                Piece::Variable(name, other) => self.values_or(name, other, depth),
                Piece::Line(line) => self.told_by(line, depth),
                Piece::Unknown => unknown(),
            };
            if forms.len() * values.len() > MOST_FORMS {
                values = unknown();
            }
            if let [only] = values.as_slice() {
                for form in &mut forms {
                    form.push_str(only);
                }
            } else {
                let longer = forms.iter().flat_map(|form| {
                    let values = values.iter();
                    values.map(move |value| format!("{form}{value}"))
                });
                forms = longer.collect();
            }
            for form in &mut forms {
                if form.len() > LONGEST_BYTES {
                    *form = UNKNOWN.to_string();
                }
            }
        }
        forms
    }

    fn values_or(&self, name: &str, other: Option<&str>, depth: usize) -> Vec<String> {
        let mut values = self.values.get(name).cloned().unwrap_or_default();
        if let Some(other) = other.filter(|_| depth < DEEPEST) {
            let others = self.forms_of(other, depth + 1).into_iter();
            values.extend(others.filter(|value| !value.is_empty()));
        }
        values.truncate(MOST_FORMS);
        if values.is_empty() { unknown() } else { values }
    }

    /// Lists what a line may tell that stands in a word; in a Makefile that is a variable, or a function.
    fn told_by(&self, line: &str, depth: usize) -> Vec<String> {
        let line = line.trim();
        let line = line.strip_prefix("shell ").unwrap_or(line);
        let call = line.strip_prefix("call ").unwrap_or(line);
        let name = call.split(',').next().unwrap_or(call).trim();
        if let Some(values) = self.values.get(name) {
            return values.clone();
        }
        if depth == DEEPEST {
            return unknown();
        }
        let mut told = Vec::new();
        for simple in simple_commands(line) {
            // What a file says is not known.
            let says = simple
                .program()
                .is_some_and(|(program, _)| program == "cat");
            if !says {
                told = self.told_after(&told, &simple, depth + 1);
            }
        }
        told.retain(|word| !word.is_empty());
        if told.is_empty() { unknown() } else { told }
    }
}

fn unknown() -> Vec<String> {
    vec![UNKNOWN.to_string()]
}

fn split(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

fn is_prose(pieces: &[Piece<'_>]) -> bool {
    let mut pieces = pieces.iter();
    pieces.any(|piece| matches!(piece, Piece::Text(text) if text.contains(char::is_whitespace)))
}

/// Returns what a word says without its variables.
fn without_values(word: &str) -> String {
    let pieces = pieces(word);
    if is_prose(&pieces) {
        return word.to_owned();
    }
    let plain = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => (*text).to_owned(),
        _ => UNKNOWN.to_string(),
    });
    plain.collect()
}

/// Cuts a word into what it says itself, and what is put in its place.
fn pieces(word: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    for (begin, end, part) in parts(word) {
        // One that lies in another one is a part of that.
        if begin < at {
            continue;
        }
        add_plain(&word[at..begin], &mut found);
        found.push(match part {
            Substitution::Value(inner) => in_braces(inner),
            Substitution::Line(line) if word[begin..].starts_with(['$', '`']) => Piece::Line(line),
            // The name of a stream.
            Substitution::Line(_) => Piece::Unknown,
        });
        at = end;
    }
    add_plain(&word[at..], &mut found);
    found
}

/// Adds what stands between what has brackets.
fn add_plain<'a>(mut text: &'a str, found: &mut Vec<Piece<'a>>) {
    while let Some(at) = text.find('$') {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        let length = match behind.chars().next() {
            Some(first) if first.is_ascii_digit() || "@*#?!$-".contains(first) => 1,
            _ => behind
                .find(|letter: char| !is_of_name(letter))
                .unwrap_or(behind.len()),
        };
        if length == 0 {
            // A letter like any other.
            found.push(Piece::Text(&text[..=at]));
            text = behind;
            continue;
        }
        if !before.is_empty() {
            found.push(Piece::Text(before));
        }
        found.push(Piece::Variable(&behind[..length], None));
        text = &behind[length..];
    }
    if !text.is_empty() {
        found.push(Piece::Text(text));
    }
}

/// Reads what stands in the braces of `${…}`.
fn in_braces(inner: &str) -> Piece<'_> {
    let inner = inner.trim();
    let length = match inner.chars().next() {
        Some('@' | '*') => 1,
        _ => inner
            .find(|letter: char| !is_of_name(letter))
            .unwrap_or(inner.len()),
    };
    let (name, rest) = inner.split_at(length);
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let other = rest.strip_prefix(['-', '=']);
    let is_value = rest.is_empty() || rest.starts_with(['?', '[']) || other.is_some();
    if name.is_empty() || !is_value {
        return Piece::Unknown;
    }
    Piece::Variable(name, other)
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists what the last command of a line may be, with a dot for what is not known.
    fn forms(line: &str) -> Vec<String> {
        let mut variables = Variables::default();
        let mut commands = simple_commands(line);
        let last = commands.pop().expect("a command");
        for simple in &commands {
            variables.assign(simple);
            variables.tell(simple);
        }
        variables.assign(&last);
        let forms = variables.forms(&last).into_iter();
        let words = forms.map(|form| form.words.join(" ").replace(UNKNOWN, "."));
        words.collect()
    }

    #[test]
    fn the_words_of_a_command_are_what_its_variables_may_hold() {
        let rows: &[(&str, &[&str])] = &[
            ("D=a; sh $D/x.sh", &["sh a/x.sh"]),
            ("D=a; D=b; sh \"${D}/x.sh\"", &["sh a/x.sh", "sh b/x.sh"]),
            ("export D=a/$X && sh $D/x.sh", &["sh a/./x.sh"]),
            ("sh $D/x.sh", &["sh ./x.sh"]),
            ("sh ${D:-a}/x.sh", &["sh a/x.sh"]),
            ("sh ${D%/}/x.sh", &["sh ./x.sh"]),
            ("PY='python3 -B'; $PY x.py", &["python3 -B x.py"]),
            (
                "for f in a/*.sh b.sh; do sh $f",
                &["do sh a/*.sh", "do sh b.sh"],
            ),
            (
                "for f in $(ls a/*.sh); do sh $f",
                &["do sh a/*.sh", "do sh a/*.sh/*", "do sh ."],
            ),
            (
                "L='a.sh b.sh'; for f in $L; do sh $f",
                &["do sh a.sh", "do sh b.sh"],
            ),
            (
                "find a -name '*.sh' | while read -r f; do sh \"$f\"",
                &["do sh a", "do sh a/**/*.sh"],
            ),
            ("for f in $(cat list); do sh $f", &["do sh ."]),
            ("echo a.sh; read -r f; sh $f", &["sh ."]),
            ("sh \"$(dirname \"$0\")/x.sh\"", &["sh ./x.sh"]),
            ("for f; do sh $f", &["do sh ."]),
            ("D=; sh $D/x.sh", &["sh ./x.sh"]),
            ("D=a; sh -c 'sh $D/x.sh'", &["sh -c sh $D/x.sh"]),
            ("echo $5 100$ a$", &["echo . 100$ a$"]),
        ];
        for (line, expected) in rows {
            assert_eq!(forms(line), *expected, "{line}");
        }
    }

    #[test]
    fn variables_of_a_file_may_be_made_of_later_ones() {
        let assigned = [
            ("SCRIPT", "$(DIR)/$(NAME).sh"),
            ("DIR", "a"),
            ("NAME", "x"),
            ("LIST", "$(wildcard $(DIR)/*.mk)"),
        ];
        let assigned = assigned.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut variables = Variables::default();
        variables.define(&assigned);
        let words = |word: &str| variables.words_of(&[word.to_owned()], 0);
        assert_eq!(words("$(SCRIPT)"), ["a/x.sh"]);
        assert_eq!(words("${LIST}"), ["a/*.mk"]);
        assert!(variables.holds("DIR") && !variables.holds("OTHER"));
    }

    #[test]
    fn a_script_sees_what_it_is_given_and_nothing_that_others_were() {
        let mut variables = Variables::default();
        variables.add("1", ["old".to_owned()]);
        variables.add("2", ["old".to_owned()]);
        let inner = variables.with_arguments(&["a/*.sh".to_owned()]);
        let words = |word: &str| inner.words_of(&[word.to_owned()], 0);
        assert_eq!(words("$1"), ["a/*.sh"]);
        assert_eq!(words("$@"), ["a/*.sh"]);
        assert_eq!(words("$2"), unknown());
    }

    #[test]
    fn whatever_grows_without_end_is_not_known() {
        let values = |name: &str| format!("{name}=a; {name}=b; ");
        let mut many = String::new();
        for number in 0..40 {
            many.push_str(&values(&format!("v{number}")));
        }
        let all = (0..40).map(|number| format!("$v{number}"));
        let all = all.collect::<Vec<_>>().concat();
        let found = forms(&format!("{many} sh {all}/x.sh"));
        assert_eq!(found.len(), MOST_FORMS);
        assert!(
            found.iter().all(|line| line.ends_with("./x.sh")),
            "{found:?}"
        );
        let doubled: Vec<(String, String)> = (0..99)
            .map(|number| {
                (
                    format!("v{}", number + 1),
                    format!("$(v{number})").repeat(60),
                )
            })
            .chain([("v0".to_owned(), "x".repeat(99))])
            .collect();
        let mut variables = Variables::default();
        variables.define(&doubled);
        let length = variables.words_of(&["$(v99)".to_owned()], 0).concat().len();
        assert!(length <= 2 * LONGEST_BYTES, "{length}");
    }
}
