//! Outlines source files: what each defines, on which lines, without the bodies, and what it imports.
//!
//! Pure: text in, symbols out. To add a language: its grammar as a dependency, and a row in each table of `language.rs`.

mod language;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::{ControlFlow, RangeInclusive};
use std::time::{Duration, Instant};

use ropewalk_schemas::clip;
use tree_sitter::{Node, ParseOptions, Parser, TreeCursor};

pub use language::Language;
use language::Part;

/// The longest file that is parsed.
const LONGEST_BYTES: usize = 2 * 1024 * 1024;
/// So long a file may take; one that takes longer is not written to be read.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most symbols of one file.
const MOST_SYMBOLS: usize = 2_000;
/// The longest signature, in characters.
const SIGNATURE: usize = 320;
/// The longest signature where there are too many, in characters.
const SHORT_SIGNATURE: usize = 48;
/// Where a file defines more than this, the tests in it are told together in a prompt.
const MANY: usize = 40;
/// Fewer tests in a row are told each by itself.
const ROW: usize = 4;
/// So much room takes what is said of what was left out.
const REST_BYTES: usize = 32;
/// A constant is shown with its value where that is no longer than so many bytes, on one line.
const SHORT_VALUE: usize = 60;
/// So much is told of what a file imports, in characters.
const IMPORTS: usize = 600;

/// Something that a file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// How many others it lies in.
    pub depth: usize,
    /// Its lines, from 1.
    pub lines: RangeInclusive<usize>,
    /// How it is declared, on one line, without its body.
    pub signature: String,
}

/// Why a file has no outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OutlineError {
    /// It has more bytes than are parsed.
    #[error("it has more than {LONGEST_BYTES} bytes")]
    TooLong,
    /// Parsing did not come to an end in time.
    #[error("it could not be parsed")]
    Unparsed,
}

/// Outlines `source`. What cannot be parsed in it is passed over, so that the rest is still found.
pub fn outline(language: Language, source: &str) -> Result<Vec<Symbol>, OutlineError> {
    walked(language, source).map(|walk| walk.symbols)
}

/// Outlines `source` with what it imports, all of that in one line before the rest.
pub fn outline_with_imports(language: Language, source: &str) -> Result<Vec<Symbol>, OutlineError> {
    let walk = walked(language, source)?;
    let imports = imports(&walk.imports);
    Ok(imports.into_iter().chain(walk.symbols).collect())
}

/// Tells all imports as one symbol; none where there are none.
fn imports(all: &[Symbol]) -> Option<Symbol> {
    let (first, last) = all.first().zip(all.last())?;
    let each: Vec<&str> = all.iter().map(|one| one.signature.as_str()).collect();
    Some(Symbol {
        depth: 0,
        lines: *first.lines.start()..=*last.lines.end(),
        signature: clip::letters(&each.join("; "), IMPORTS).into_owned(),
    })
}

fn walked(language: Language, source: &str) -> Result<Walk<'_>, OutlineError> {
    if source.len() > LONGEST_BYTES {
        return Err(OutlineError::TooLong);
    }
    let mut parser = Parser::new();
    let grammar = language.grammar();
    parser
        .set_language(&grammar)
        .map_err(|_| OutlineError::Unparsed)?;
    let until = Instant::now() + PATIENCE;
    let mut watch = |_: &_| {
        if Instant::now() < until {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let bytes = source.as_bytes();
    let tree = parser.parse_with_options(
        &mut |offset, _| bytes.get(offset..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut watch)),
    );
    let tree = tree.ok_or(OutlineError::Unparsed)?;
    Ok(Walk {
        language,
        source,
        symbols: Vec::new(),
        imports: Vec::new(),
    }
    .over(tree.walk()))
}

/// Writes symbols one a line, those within others indented.
pub fn render(symbols: &[Symbol]) -> String {
    let mut text = String::new();
    for Symbol {
        depth,
        lines,
        signature,
    } in symbols
    {
        let indent = "  ".repeat(*depth);
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "{}-{}  {indent}{signature}",
            lines.start(),
            lines.end()
        );
    }
    if symbols.len() >= MOST_SYMBOLS {
        text.push_str("[there are more]\n");
    }
    text
}

/// Puts one symbol in the place of the tests that follow each other in a file that defines much: their names are of use to few who
/// read a prompt, and `code_outline` tells them.
fn with_tests_together(symbols: &[Symbol]) -> Cow<'_, [Symbol]> {
    if symbols.len() <= MANY {
        return Cow::Borrowed(symbols);
    }
    let is_test = |symbol: &Symbol| test_name(&symbol.signature).is_some();
    let rows =
        symbols.chunk_by(|one, next| one.depth == next.depth && is_test(one) && is_test(next));
    let told = rows.flat_map(|row| match together(row) {
        Some(symbol) => vec![symbol],
        None => row.to_vec(),
    });
    Cow::Owned(told.collect())
}

/// Returns what stands in the place of a row of tests; none where it is short, or no such row.
fn together(row: &[Symbol]) -> Option<Symbol> {
    let (first, last) = row.first().zip(row.last())?;
    let (from, to) = test_name(&first.signature).zip(test_name(&last.signature))?;
    let count = row.len();
    (count >= ROW).then(|| Symbol {
        depth: first.depth,
        lines: *first.lines.start()..=*last.lines.end(),
        signature: format!("{count} functions `{from}` … `{to}`; `code_outline` tells each"),
    })
}

/// Returns the name of a function that is a test by its name.
fn test_name(signature: &str) -> Option<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut heads = signature.match_indices('(').map(|(at, _)| &signature[..at]);
    // What a method of Go is of stands in brackets before its name.
    let (before, name) = heads.find_map(|head| {
        let parts = head.split_at(head.trim_end_matches(is_part).len());
        Some(parts).filter(|(_, name)| !name.is_empty())
    })?;
    let is_class = before.split_whitespace().any(|word| word == "class");
    let rest = name
        .strip_prefix("test")
        .or_else(|| name.strip_prefix("Test"))?;
    let is_test = rest.starts_with(|next: char| !next.is_lowercase());
    (is_test && !is_class).then_some(name)
}

/// Writes what `most` bytes hold: all levels down to `deepest`, else one level less and again one less, else the outermost
/// with short signatures. Only where even these are too many it ends early. Says how many of all were left out. Of many symbols
/// the tests are told together.
pub fn render_within(symbols: &[Symbol], most: usize, deepest: usize) -> String {
    let symbols: &[Symbol] = &with_tests_together(symbols);
    // Leaves room for what is said of the rest.
    let room = most.saturating_sub(REST_BYTES);
    let of_level = |depth: usize| symbols.iter().filter(move |symbol| symbol.depth <= depth);
    let bytes = |depth| {
        of_level(depth)
            .map(|symbol| line(symbol).len())
            .sum::<usize>()
    };
    let nested = symbols.iter().map(|symbol| symbol.depth).max();
    let mut levels = (0..=deepest.min(nested.unwrap_or_default())).rev();
    let depth = levels.find(|depth| bytes(*depth) <= room);
    let (mut text, mut shown) = (String::new(), 0);
    for symbol in of_level(depth.unwrap_or_default()) {
        let line = match depth {
            Some(_) => line(symbol),
            None => line(&Symbol {
                signature: clip::letters(&symbol.signature, SHORT_SIGNATURE).into_owned(),
                ..symbol.clone()
            }),
        };
        if text.len() + line.len() > room {
            break;
        }
        text.push_str(&line);
        shown += 1;
    }
    let whole = of_level(depth.unwrap_or_default()).count() == shown;
    let rest = match symbols.len() - shown {
        0 => String::new(),
        more if whole => format!("[{more} more inside of these]\n"),
        more => format!("[{more} more]\n"),
    };
    text + &rest
}

fn line(symbol: &Symbol) -> String {
    render(std::slice::from_ref(symbol))
}

/// Goes through a tree without calling itself: how deep a file nests is up to whoever wrote it.
struct Walk<'a> {
    language: Language,
    source: &'a str,
    symbols: Vec<Symbol>,
    imports: Vec<Symbol>,
}

impl Walk<'_> {
    fn over(mut self, mut cursor: TreeCursor<'_>) -> Self {
        // For each level above the cursor, whether the node there is a symbol.
        let mut above: Vec<bool> = Vec::new();
        while self.symbols.len() < MOST_SYMBOLS {
            let part = self.language.part(cursor.node(), self.source);
            match part {
                Part::Leaf | Part::Container => {
                    let depth = above.iter().filter(|listed| **listed).count();
                    self.symbols.push(self.symbol(cursor.node(), depth));
                }
                // What a module within the file imports is of interest to that module.
                Part::Import if !above.contains(&true) => {
                    self.imports.push(self.import(cursor.node()));
                }
                Part::Import | Part::Around | Part::Opaque => {}
            }
            if matches!(part, Part::Container | Part::Around) && cursor.goto_first_child() {
                above.push(part == Part::Container);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return self;
                }
                above.pop();
            }
        }
        self
    }

    fn import(&self, node: Node<'_>) -> Symbol {
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        // An inclusion goes on to the end of its line.
        let end = node.end_position();
        let last = end.row + usize::from(end.column > 0);
        Symbol {
            depth: 0,
            lines: node.start_position().row + 1..=last,
            signature: words.join(" ").trim_end_matches(';').to_owned(),
        }
    }

    fn symbol(&self, node: Node<'_>, depth: usize) -> Symbol {
        Symbol {
            depth,
            lines: node.start_position().row + 1..=node.end_position().row + 1,
            signature: self.signature(node),
        }
    }

    fn signature(&self, node: Node<'_>) -> String {
        let text = |from: usize, to: usize| self.source.get(from..to).unwrap_or_default();
        let inside = inside(node);
        let end = inside.map_or(node.end_byte(), |inside| inside.start_byte());
        let declared = text(node.start_byte(), end);
        // Where the grammar names the inside, a brace before it belongs to the declaration.
        let declared = match declared.split_once('{') {
            Some((before, _)) if inside.is_none() => before,
            _ => declared,
        };
        let mut signature = declared.split_whitespace().collect::<Vec<_>>().join(" ");
        // The name of a C type that is defined in its declaration comes after the body.
        if node.kind() == "type_definition"
            && let Some(name) = node.child_by_field_name("declarator")
            && name.start_byte() >= node.start_byte() + declared.len()
        {
            signature = format!("{signature} {}", text(name.start_byte(), name.end_byte()));
        }
        let signature = signature.trim_end_matches([':', ';', ' ', '=']);
        clip::letters(signature, SIGNATURE).into_owned()
    }
}

/// Returns what a definition holds and its signature does not: a body, or the value of a table.
fn inside(node: Node<'_>) -> Option<Node<'_>> {
    let body = node.child_by_field_name("body");
    body.or_else(|| match node.kind() {
        "assignment" => node.child_by_field_name("right").filter(is_long),
        "variable_declarator" => {
            let value = node.child_by_field_name("value")?;
            let body = value.child_by_field_name("body");
            body.or_else(|| Some(value).filter(is_long))
        }
        _ => None,
    })
}

fn is_long(value: &Node<'_>) -> bool {
    value.start_position().row < value.end_position().row || value.byte_range().len() > SHORT_VALUE
}

#[cfg(test)]
mod tests;
