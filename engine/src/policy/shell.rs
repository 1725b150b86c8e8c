//! Reads a shell line: which commands it runs, and which files it writes by redirection.
//!
//! Rules judge words as they stand; what a command does then, the sandbox bounds. So whatever hides its words is told
//! apart from a command that can be judged: a line that does not parse, a name that is only known once it runs.

mod word;
mod wrapped;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use word::Word;

/// The longest line that is read.
const LONGEST_BYTES: usize = 64 * 1024;
/// So long a line may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// So deep shells may lie in shells.
const DEEPEST: usize = 4;
/// The most commands of one line.
const MOST: usize = 2_000;
/// Shells, which run the text that they are given.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Is what a line comes to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShellLine {
    /// The commands, in order of appearance.
    pub commands: Vec<ShellCommand>,
    /// The files that redirections write, as they are written.
    pub writes: Vec<String>,
}

/// Is one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// Its words, joined by single spaces.
    pub words: String,
    /// What else it runs or may be called, for rules that refuse: the name without its directory, and the words that
    /// begin later where it runs what it is given.
    pub also: Vec<String>,
}

/// Says why a line cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellLineError {
    /// It is too long, or took too long.
    #[error("it is too long to be read; write it into a script file and run that")]
    TooLong,
    /// It is no shell line that can be read.
    #[error("it cannot be read near `{0}`; write it more simply, or as several calls")]
    Unparsed(String),
    /// What it runs is only known once it runs.
    #[error("what `{0}` runs cannot be told before it runs; name the program itself in the line")]
    Hidden(String),
}

/// Reads a line.
pub fn read(line: &str) -> Result<ShellLine, ShellLineError> {
    let mut found = ShellLine::default();
    let mut texts = vec![(line.to_owned(), 0)];
    while let Some((text, depth)) = texts.pop() {
        let mut reading = Reading {
            source: &text,
            found: &mut found,
            inner: Vec::new(),
        };
        reading.over(&parse(&text)?)?;
        let inner = reading.inner;
        if let (Some(first), true) = (inner.first(), depth == DEEPEST) {
            return Err(ShellLineError::Hidden(shortened(first)));
        }
        texts.extend(inner.into_iter().map(|text| (text, depth + 1)));
    }
    Ok(found)
}

fn parse(line: &str) -> Result<Tree, ShellLineError> {
    if line.len() > LONGEST_BYTES {
        return Err(ShellLineError::TooLong);
    }
    let mut parser = Parser::new();
    let grammar = tree_sitter_bash::LANGUAGE.into();
    parser
        .set_language(&grammar)
        .map_err(|_| ShellLineError::Unparsed(shortened(line)))?;
    let until = Instant::now() + PATIENCE;
    let mut watch = |_: &_| {
        if Instant::now() < until {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let line = bounded_braces(line)?;
    let bytes = line.as_bytes();
    let tree = parser.parse_with_options(
        &mut |offset, _| bytes.get(offset..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut watch)),
    );
    tree.ok_or(ShellLineError::TooLong)
}

/// Puts another letter where the grammar looks one up in a table of the system that ends before it, and may take the process
/// down: behind a brace, and behind the first number of a range there. No such letter is one of a number, so that nothing but
/// the end of a document could be read otherwise.
fn bounded_braces(line: &str) -> Result<Cow<'_, str>, ShellLineError> {
    let mut bounded = Cow::Borrowed(line);
    for (at, brace) in line.match_indices('{') {
        let inner = &line[at + brace.len()..];
        let is_digit = |letter: char| letter.is_ascii_digit();
        let rest = inner.trim_start_matches(is_digit);
        let rest = rest
            .strip_prefix("..")
            .map_or(rest, |end| end.trim_start_matches(is_digit));
        let Some(letter) = rest.chars().next().filter(|&letter| letter > '\u{ff}') else {
            continue;
        };
        if line.contains("<<") {
            return Err(ShellLineError::Unparsed(shortened(&line[at..])));
        }
        let from = line.len() - rest.len();
        let other = "x".repeat(letter.len_utf8());
        bounded
            .to_mut()
            .replace_range(from..from + letter.len_utf8(), &other);
    }
    Ok(bounded)
}

/// Goes through the tree of one text.
struct Reading<'a> {
    source: &'a str,
    found: &'a mut ShellLine,
    /// Texts that shells are told to run.
    inner: Vec<String>,
}

impl Reading<'_> {
    /// Goes through a tree without calling itself: how deep a line nests is up to whoever wrote it.
    fn over(&mut self, tree: &Tree) -> Result<(), ShellLineError> {
        let is_whole = !tree.root_node().has_error();
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            if is_whole {
                self.node(node)?;
            } else if node.is_error() || node.is_missing() {
                return Err(self.unparsed(node));
            }
            if self.found.commands.len() > MOST {
                return Err(ShellLineError::TooLong);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    let whole = Some(()).filter(|()| is_whole);
                    return whole.ok_or_else(|| self.unparsed(tree.root_node()));
                }
            }
        }
    }

    fn node(&mut self, node: Node<'_>) -> Result<(), ShellLineError> {
        match node.kind() {
            "command" => self.command(node),
            "declaration_command" | "unset_command" | "test_command" => {
                let words = self.text(node).split_whitespace();
                let words = words.collect::<Vec<_>>().join(" ");
                self.add(words, Vec::new());
                Ok(())
            }
            "file_redirect" => {
                self.redirect(node);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn unparsed(&self, node: Node<'_>) -> ShellLineError {
        let near = self.source.get(node.start_byte()..);
        let near = near.map(str::trim).filter(|rest| !rest.is_empty());
        ShellLineError::Unparsed(shortened(near.unwrap_or(self.source)))
    }

    fn command(&mut self, node: Node<'_>) -> Result<(), ShellLineError> {
        let mut cursor = node.walk();
        let mut words = Vec::new();
        if let Some(name) = node.child_by_field_name("name") {
            words.push(Word::read(name, self.source));
        }
        for argument in node.children_by_field_name("argument", &mut cursor) {
            words.push(Word::read(argument, self.source));
        }
        let Some(name) = words.first() else {
            return Ok(());
        };
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let Some(base) = name.base().filter(|base| !name.is_pattern || *base == "[") else {
            return Err(hidden());
        };
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let mut also = vec![joined(base, &texts[1..])];
        self.shell(node, (base, &words[1..]))?;
        for at in wrapped::starts(&words) {
            also.push(texts[at..].join(" "));
            if let Some(base) = words[at].base() {
                also.push(joined(base, &texts[at + 1..]));
                self.shell(node, (base, &words[at + 1..]))?;
            }
        }
        self.add(texts.join(" "), also);
        Ok(())
    }

    /// Takes in the text that a shell is told to run; one that reads what it runs from elsewhere hides it.
    fn shell(
        &mut self,
        node: Node<'_>,
        (base, words): (&str, &[Word]),
    ) -> Result<(), ShellLineError> {
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let texts = || words.iter().map(|word| word.text.as_str());
        let is_fixed = words.iter().all(|word| word.is_fixed);
        match base {
            "eval" | "alias" | "trap" if !is_fixed => return Err(hidden()),
            "eval" => self.inner.push(texts().collect::<Vec<_>>().join(" ")),
            "alias" => {
                let values = texts().filter_map(|text| Some(text.split_once('=')?.1.to_owned()));
                self.inner.extend(values);
            }
            // What it runs later; `-` and a number undo one.
            "trap" => {
                let first = texts().find(|text| *text != "--");
                let runs = first.filter(|text| !text.starts_with('-'));
                self.inner.extend(runs.map(str::to_owned));
            }
            "env" => {
                let split = |text: &str| {
                    let rest = text.strip_prefix("-S");
                    let rest = rest.or_else(|| text.strip_prefix("--split-string="));
                    rest.filter(|rest| !rest.is_empty()).map(str::to_owned)
                };
                self.inner.extend(texts().filter_map(split));
            }
            "hash" if texts().any(|text| text.starts_with("-p")) => return Err(hidden()),
            "source" | "." => return self.script(node, words.first()),
            _ if SHELLS.contains(&base) => return self.own_shell(node, words),
            _ => {}
        }
        Ok(())
    }

    /// Lets a script file be run: what it holds is not part of the line, unless it is what the line itself feeds.
    fn script(&mut self, node: Node<'_>, file: Option<&Word>) -> Result<(), ShellLineError> {
        let Some(file) = file else { return Ok(()) };
        let is_fed = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/", "<("];
        if !is_fed.iter().any(|place| file.text.starts_with(place)) {
            return Ok(());
        }
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let text = self.fed(node).ok_or_else(hidden)?;
        self.inner.push(text);
        Ok(())
    }

    fn own_shell(&mut self, node: Node<'_>, words: &[Word]) -> Result<(), ShellLineError> {
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let is_option = |word: &Word| word.text.starts_with(['-', '+']) && word.text.len() > 1;
        let options = words.iter().take_while(|word| is_option(word)).count();
        let has = |letter: char| {
            let mut short = words[..options].iter();
            short.any(|word| !word.text.starts_with("--") && word.text.contains(letter))
        };
        let text = if has('c') {
            let text = words.get(options).filter(|word| word.is_fixed);
            text.ok_or_else(hidden)?.text.clone()
        } else if words.len() > options && !has('s') {
            return self.script(node, words.get(options));
        } else if words
            .iter()
            .any(|word| word.text == "--version" || word.text == "--help")
        {
            return Ok(());
        } else {
            self.fed(node).ok_or_else(hidden)?
        };
        self.inner.push(text);
        Ok(())
    }

    /// Returns the text in the line that a command reads.
    fn fed(&self, node: Node<'_>) -> Option<String> {
        let around = node
            .parent()
            .filter(|one| one.kind() == "redirected_statement")?;
        let mut cursor = around.walk();
        let redirects = around.children_by_field_name("redirect", &mut cursor);
        for redirect in redirects {
            let mut inner = redirect.walk();
            let mut parts = redirect.named_children(&mut inner);
            let body = parts.find(|part| part.kind() == "heredoc_body");
            if let Some(body) = body {
                return Some(self.text(body).to_owned());
            }
        }
        None
    }

    fn redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let writes = node
            .children(&mut cursor)
            .any(|part| matches!(part.kind(), ">" | ">>" | ">|" | "&>" | "&>>" | "<>"));
        let mut cursor = node.walk();
        if writes {
            for target in node.children_by_field_name("destination", &mut cursor) {
                let target = Word::read(target, self.source);
                if target.is_fixed {
                    self.found.writes.push(target.text);
                }
            }
        }
    }

    fn add(&mut self, words: String, also: Vec<String>) {
        self.found.commands.push(ShellCommand { words, also });
    }

    fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }
}

fn joined(name: &str, rest: &[&str]) -> String {
    let words = std::iter::once(name).chain(rest.iter().copied());
    words.collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
