//! Reads a shell line: which commands it runs, and which files it writes by redirection.
//!
//! Rules judge words as they stand; what a command does then, the sandbox bounds. So whatever hides its words is told
//! apart from a command that can be judged: a line that does not parse, a name that is only known once it runs. So is a
//! file of which only the end is known.

mod moves;
mod names;
mod nodes;
mod options;
mod redirects;
mod word;
mod wrapped;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

pub use redirects::RedirectTarget;

use moves::{Destination, Move, Place, Surroundings};
use names::builds_names;
use nodes::{arguments_behind, named, opened_at, own_start, redirected};
use options::{
    ScriptSource, callbacks, directory_of_env, leads_elsewhere, script_source, shell_call,
};
use redirects::{Assignment, ReadText, Redirects};
use word::{Word, document};
use wrapped::{is_reserved, rewrites, starts};

/// The longest line that is read.
const LONGEST_BYTES: usize = 64 * 1024;
/// So long a line may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// So deep shells may lie in shells.
const DEEPEST: usize = 4;
/// So deep the parts of a text may lie in each other: who looks what is around one goes through all of them.
const DEEPEST_PART: usize = 1_000;
/// The most commands of one line.
const MOST: usize = 2_000;
/// Shells, which run the text that they are given.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Is what a line comes to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShellLine {
    /// The commands, in order of appearance.
    pub commands: Vec<ShellCommand>,
    /// The files that redirections write.
    pub writes: Vec<RedirectTarget>,
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
    read_within(line, PATIENCE)
}

/// Reads a line of which no text may take longer than `patience`.
fn read_within(line: &str, patience: Duration) -> Result<ShellLine, ShellLineError> {
    let mut found = ShellLine::default();
    let mut read: Vec<ReadText> = Vec::new();
    let line = InnerText {
        text: line.to_owned(),
        around: None,
        depth: 0,
        place: None,
    };
    let mut open = vec![line];
    while let Some(next) = open.pop() {
        let mut reading = Reading {
            source: &next.text,
            found: &mut found,
            inner: Vec::new(),
            redirects: Redirects::default(),
            surroundings: Surroundings::default(),
            place: next.place,
        };
        reading.over(&parse(&next.text, patience)?)?;
        let (inner, redirects) = (reading.inner, reading.redirects);
        if let (Some((first, _)), true) = (inner.first(), next.depth == DEEPEST) {
            return Err(ShellLineError::Hidden(shortened(first)));
        }
        open.extend(inner.into_iter().map(|(text, place)| InnerText {
            text,
            around: Some(read.len()),
            depth: next.depth + 1,
            place: Some(place),
        }));
        read.push(ReadText {
            source: next.text,
            around: next.around,
            redirects,
        });
    }
    found.writes = redirects::files(&read);
    Ok(found)
}

/// Is a text that is still to be read.
struct InnerText {
    text: String,
    /// Which of those that are read holds it; none for the line.
    around: Option<usize>,
    depth: usize,
    /// Where in the line it runs; none for the line.
    place: Option<Place>,
}

fn parse(line: &str, patience: Duration) -> Result<Tree, ShellLineError> {
    if line.len() > LONGEST_BYTES {
        return Err(ShellLineError::TooLong);
    }
    let mut parser = Parser::new();
    let grammar = tree_sitter_bash::LANGUAGE.into();
    parser
        .set_language(&grammar)
        .map_err(|_| ShellLineError::Unparsed(shortened(line)))?;
    let until = Instant::now() + patience;
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
    /// Texts that shells are told to run, with where.
    inner: Vec<(String, Place)>,
    redirects: Redirects,
    /// What lies around the present part.
    surroundings: Surroundings,
    /// Where in the line the text runs; none where it is the line.
    place: Option<Place>,
}

impl Reading<'_> {
    /// Goes through a tree without calling itself: how deep a line nests is up to whoever wrote it.
    fn over(&mut self, tree: &Tree) -> Result<(), ShellLineError> {
        let is_whole = !tree.root_node().has_error();
        let mut cursor = tree.walk();
        let mut depth = 0;
        loop {
            let node = cursor.node();
            if is_whole {
                self.node(node)?;
            } else if node.is_error() || node.is_missing() {
                return Err(self.unparsed(node));
            }
            if self.found.commands.len() > MOST || depth > DEEPEST_PART {
                return Err(ShellLineError::TooLong);
            }
            if cursor.goto_first_child() {
                self.surroundings.enter(node);
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    let whole = Some(()).filter(|()| is_whole);
                    return whole.ok_or_else(|| self.unparsed(tree.root_node()));
                }
                self.surroundings.leave();
                depth -= 1;
            }
        }
    }

    fn node(&mut self, node: Node<'_>) -> Result<(), ShellLineError> {
        match node.kind() {
            "command" => self.command(node),
            kind @ ("declaration_command" | "unset_command" | "test_command") => {
                if kind == "declaration_command" {
                    self.declaration(node);
                }
                let words = self.text(node).split_whitespace();
                let words = words.collect::<Vec<_>>().join(" ");
                self.add(words, Vec::new());
                Ok(())
            }
            "file_redirect" => {
                self.redirect(node);
                Ok(())
            }
            "variable_assignment" => {
                self.assignment(node);
                Ok(())
            }
            "for_statement" => {
                self.loop_values(node);
                Ok(())
            }
            "function_definition" => {
                let name = node.child_by_field_name("name");
                let name = name.map(|name| Word::read(name, self.source).text);
                self.redirects.defined.extend(name);
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
        let behind = arguments_behind(node).into_iter();
        words.extend(behind.map(|argument| Word::read(argument, self.source)));
        let Some(name) = words.first() else {
            return Ok(());
        };
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let Some(base) = name.base().filter(|base| !name.is_pattern || *base == "[") else {
            return Err(hidden());
        };
        let starts = starts(&words).ok_or(ShellLineError::TooLong)?;
        let mut begins = starts.iter().map(|at| &words[*at]).chain([name]);
        if begins.any(is_reserved) {
            return Err(hidden());
        }
        let first_inner = self.inner.len();
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let mut also = vec![named_so(base, &texts[1..])];
        self.shell(node, (base, &words[1..]))?;
        let mut called = vec![(base, &words[1..])];
        for at in starts {
            also.push(texts[at..].join(" "));
            if let Some(base) = words[at].base() {
                also.push(named_so(base, &texts[at + 1..]));
                self.shell(node, (base, &words[at + 1..]))?;
                called.push((base, &words[at + 1..]));
            }
        }
        let inner = || self.inner[first_inner..].iter().map(|(text, _)| &**text);
        if called.into_iter().any(|call| rewrites(call, inner())) {
            return Err(ShellLineError::Hidden(shortened(self.text(node))));
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
        self.redirects.builds_names |= builds_names(base, words);
        self.go(node, (base, words));
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let texts = || words.iter().map(|word| word.text.as_str());
        let is_fixed = words.iter().all(|word| word.is_fixed);
        match base {
            "eval" | "alias" | "trap" if !is_fixed => return Err(hidden()),
            "eval" => {
                let text = texts().collect::<Vec<_>>().join(" ");
                self.run(node, [text]);
            }
            "alias" => {
                for (name, text) in texts().filter_map(|text| text.split_once('=')) {
                    self.redirects.defined.push(name.to_owned());
                    self.inner.push((text.to_owned(), Place::Anywhere));
                }
            }
            // What it runs later; `-` and a number undo one.
            "trap" => {
                let first = texts().find(|text| *text != "--");
                let runs = first.filter(|text| !text.starts_with('-'));
                self.inner
                    .extend(runs.map(|text| (text.to_owned(), Place::Anywhere)));
            }
            "mapfile" | "readarray" => {
                let later = callbacks(words).ok_or_else(hidden)?.into_iter();
                self.inner.extend(later.map(|text| (text, Place::Anywhere)));
            }
            "env" => {
                let split = |text: &str| {
                    let rest = text.strip_prefix("-S");
                    let rest = rest.or_else(|| text.strip_prefix("--split-string="));
                    rest.filter(|rest| !rest.is_empty()).map(str::to_owned)
                };
                self.run(node, texts().filter_map(split));
            }
            "hash" if texts().any(|text| text.starts_with('-') && text.contains('p')) => {
                return Err(hidden());
            }
            "runuser" | "script" | "su" => {
                let call = shell_call(base, words).ok_or_else(hidden)?;
                if call.texts.is_empty() {
                    return self.run_source(node, call.source(base));
                }
                self.run(node, call.texts);
            }
            "source" | "." => return self.script(node, words.first()),
            _ if SHELLS.contains(&base) => return self.run_source(node, script_source(words)),
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
        self.run(node, [text]);
        Ok(())
    }

    fn run_source(
        &mut self,
        node: Node<'_>,
        source: ScriptSource<'_>,
    ) -> Result<(), ShellLineError> {
        let text = match source {
            ScriptSource::Nowhere => return Ok(()),
            ScriptSource::File(file) => return self.script(node, Some(file)),
            ScriptSource::Text(text) => text
                .filter(|text| text.is_fixed && !text.is_pattern)
                .map(|text| text.text.clone()),
            ScriptSource::Input => self.fed(node),
        };
        let hidden = || ShellLineError::Hidden(shortened(self.text(node)));
        let text = text.ok_or_else(hidden)?;
        self.run(node, [text]);
        Ok(())
    }

    /// Takes in texts that the command at `node` runs.
    fn run(&mut self, node: Node<'_>, texts: impl IntoIterator<Item = String>) {
        let place = self.place_of(own_start(node));
        let texts = texts.into_iter().map(|text| (text, place));
        self.inner.extend(texts);
    }

    /// Takes in where a command goes, or leads what it runs.
    fn go(&mut self, node: Node<'_>, (base, words): (&str, &[Word])) {
        // By this one `cd` takes the names of variables.
        let names_variables = |word: &Word| !word.is_fixed || word.text == "cdable_vars";
        let to = match base {
            "cd" | "chdir" | "pushd" => moves::destination(words),
            "popd" => Destination::Back,
            "shopt" if words.iter().any(names_variables) => Destination::To(None),
            _ => {
                self.go_for(node, (base, words));
                return;
            }
        };
        let change = self.surroundings.change(to, node.end_byte());
        self.redirects.moves.push(change);
    }

    /// Takes in where a command leads what it runs, such as `env -C`.
    fn go_for(&mut self, node: Node<'_>, (base, words): (&str, &[Word])) {
        let to = if leads_elsewhere(base, words) {
            None
        } else if let ("env", Some((word, attached))) = (base, directory_of_env(words)) {
            let to = word.and_then(moves::known);
            to.map(|whole| attached.map_or(whole, str::to_owned))
        } else {
            return;
        };
        self.redirects.moves.push(Move {
            to: Destination::To(to),
            reach: own_start(node)..node.end_byte(),
        });
    }

    /// Returns where in the line a part runs that begins at this byte of the text.
    fn place_of(&self, at: usize) -> Place {
        match self.surroundings.place(at) {
            Place::At(at) => self.place.unwrap_or(Place::At(at)),
            Place::Anywhere => Place::Anywhere,
        }
    }

    /// Returns the text in the line that a command reads.
    fn fed(&self, node: Node<'_>) -> Option<String> {
        let around = redirected(node)?;
        let mut cursor = around.walk();
        let redirects = around.children_by_field_name("redirect", &mut cursor);
        for redirect in redirects {
            let mut inner = redirect.walk();
            let mut parts = redirect.named_children(&mut inner);
            let body = parts.find(|part| part.kind() == "heredoc_body");
            if let Some(body) = body {
                let mut inner = redirect.walk();
                let mut parts = redirect.named_children(&mut inner);
                let mark = parts.find(|part| part.kind() == "heredoc_start")?;
                return document(body, self.text(mark), self.source);
            }
        }
        None
    }

    fn redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let takes_streams = node
            .children(&mut cursor)
            .find_map(|part| match part.kind() {
                ">" | ">>" | ">|" | "&>" | "&>>" | "<>" => Some(false),
                ">&" => Some(true),
                _ => None,
            });
        // What stands behind it belongs to the command.
        let target = node.child_by_field_name("destination");
        let (Some(takes_streams), Some(target)) = (takes_streams, target) else {
            return;
        };
        let target = Word::read(target, self.source);
        let number = target.text.trim_end_matches('-');
        let is_stream = target.is_fixed && number.bytes().all(|byte| byte.is_ascii_digit());
        if !(takes_streams && is_stream) {
            let place = self.place_of(opened_at(node));
            self.redirects.targets.push((target, place));
        }
    }

    fn assignment(&mut self, node: Node<'_>) {
        let name = node.child_by_field_name("name");
        let name = name.filter(|name| name.kind() == "variable_name");
        let Some(name) = name.map(|name| self.text(name).to_owned()) else {
            return;
        };
        let value = node.child_by_field_name("value");
        let value = value.map_or_else(Word::default, |value| Word::read(value, self.source));
        let around = node.parent();
        let is_number = around.is_some_and(|around| self.declares_numbers(around));
        let next = node.next_named_sibling();
        let next = next.filter(|next| next.kind() == "command_name");
        self.redirects.assigned.push(Assignment {
            name,
            // A number is what the value comes to.
            values: vec![if is_number { Word::unknown() } else { value }],
            is_prefix: around.is_some_and(|around| around.kind() == "command"),
            is_of_read: next.is_some_and(|next| self.text(next) == "read"),
        });
    }

    /// Says whether `node` declares variables that hold numbers.
    fn declares_numbers(&self, node: Node<'_>) -> bool {
        let mut cursor = node.walk();
        let mut parts = node.named_children(&mut cursor);
        let is_option = |part: Node<'_>| {
            part.kind() == "word" && options::behind(self.text(part), 'i', "").is_some()
        };
        node.kind() == "declaration_command" && parts.any(is_option)
    }

    /// Takes in the values that a loop goes through. What is not known may come to several words.
    fn loop_values(&mut self, node: Node<'_>) {
        let Some(variable) = node.child_by_field_name("variable") else {
            return;
        };
        let read = |value| Some(Word::read(value, self.source)).filter(|word| word.is_fixed);
        let values = named(node, "value").into_iter().map(read);
        let values = values
            .map(|word| word.unwrap_or_else(Word::unknown))
            .collect();
        let name = self.text(variable).to_owned();
        self.redirects.assigned.push(Assignment {
            name,
            values,
            is_prefix: false,
            is_of_read: false,
        });
    }

    /// Takes in whether a declaration sets a variable whose name does not stand there.
    fn declaration(&mut self, node: Node<'_>) {
        let base = node.child(0).map_or("", |first| self.text(first));
        let mut cursor = node.walk();
        let parts = node.named_children(&mut cursor);
        let parts: Vec<Node<'_>> = parts
            .filter(|part| part.kind() != "variable_assignment")
            .collect();
        // The grammar takes what stands in one word for several.
        let is_torn = |part: &Node<'_>| {
            let before = self.source.get(..part.start_byte());
            before.is_some_and(|before| !before.ends_with(char::is_whitespace))
        };
        let words: Vec<Word> = parts
            .iter()
            .map(|part| Word::read(*part, self.source))
            .collect();
        let builds = builds_names(base, &words);
        self.redirects.builds_names |= builds || parts.iter().any(is_torn);
    }

    fn add(&mut self, words: String, also: Vec<String>) {
        self.found.commands.push(ShellCommand { words, also });
    }

    fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }
}

fn named_so(name: &str, rest: &[&str]) -> String {
    let words = std::iter::once(name).chain(rest.iter().copied());
    words.collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
