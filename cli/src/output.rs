//! Writes answers to standard output, as JSON or for people, and errors to standard error.

mod bold;
mod prose;

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use ropewalk_runtime::{secrets, stderr, terminal};
use ropewalk_schemas::clip;
use serde::Serialize;
use uuid::Uuid;

use crate::error::CliError;

pub use prose::Prose;

/// The columns whose words are never broken over lines, as ids are not wherever they stand: people copy them.
const WHOLE: [&str; 3] = ["id", "task", "state"];

/// Where answers go, and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    json: bool,
}

impl Output {
    /// Returns an output of JSON, or of text for people.
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns whether answers are JSON.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a list: a JSON array, or a table of the named columns.
    pub fn list<T: Serialize, const N: usize>(
        &self,
        items: &[T],
        header: [&str; N],
        row: impl Fn(&T) -> [String; N],
    ) -> Result<(), CliError> {
        if self.json {
            return self.object(&items);
        }
        if items.is_empty() {
            return self.note("nothing to show");
        }
        let rows = items.iter().map(|item| row(item).map(|cell| clean(&cell)));
        write_line(&table(&header, rows))
    }

    /// Writes one thing: a JSON object, or the text that `human` makes of it.
    pub fn show<T: Serialize>(
        &self,
        item: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), CliError> {
        if self.json {
            self.object(item)
        } else {
            write_line(&clean(human(item).trim_end()))
        }
    }

    /// Writes one thing as JSON, whatever the form.
    pub fn object<T: Serialize>(&self, item: &T) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(item).map_err(CliError::failed)?;
        write_line(&clean_json(&text))
    }

    /// Writes one thing of a stream as one line of JSON, or as `human` has it; breaks when nobody reads any more.
    pub fn stream<T: Serialize>(
        &self,
        item: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<ControlFlow<()>, CliError> {
        let text = if self.json {
            let text = serde_json::to_string(item).map_err(CliError::failed)?;
            clean_json(&text)
        } else {
            clean(&human(item))
        };
        write(&format!("{text}\n"))
    }

    /// Writes a line for people.
    pub fn line(&self, text: &str) -> Result<(), CliError> {
        write_line(&clean(text))
    }

    /// Writes words without ending the line, at once.
    pub fn words(&self, text: &str, prose: &mut Prose) -> Result<(), CliError> {
        write(&prose.show(&clean(text))).map(drop)
    }

    /// Writes the last words of a text, and ends the line.
    pub fn last_words(&self, text: &str, prose: &mut Prose) -> Result<(), CliError> {
        let shown = prose.show(&clean(text));
        write_line(&(shown + &prose.end()))
    }

    /// Writes to standard error what asks for input.
    pub fn prompt(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        drop(write!(stderr, "{}", clean(text)).and_then(|()| stderr.flush()));
    }

    /// Writes a remark to standard error.
    pub fn note(&self, text: &str) -> Result<(), CliError> {
        remark(text);
        Ok(())
    }
}

/// Writes a line for people to standard error; one that nobody can read changes nothing.
pub(crate) fn remark(text: &str) {
    stderr::write(&format!("{}\n", clean(text)));
}

/// Rings the bell of a terminal and writes a line for people there; where nobody sits at one, nothing happens.
pub(crate) fn ring(text: &str) {
    if io::stderr().is_terminal() {
        stderr::write(&format!("\u{7}{}\n", clean(text)));
    }
}

/// Writes an error to standard error: one line, or with `json` one object.
pub fn report(error: &CliError, json: bool) {
    let line = if json {
        let text = serde_json::to_string(&error.report()).unwrap_or_else(|_| error.to_string());
        clean_json(&text)
    } else {
        format!("ropewalk: {}", clean(&error.to_string()))
    };
    stderr::write(&format!("{line}\n"));
}

/// Says in a line of at most `most` letters what a longer text begins with: whole words, without the marks of bold ones.
pub(crate) fn in_short(text: &str, most: usize) -> String {
    let kept = clip::words(&bold::unmarked(text), most);
    // Code that is not closed would run on into what follows.
    let is_open = kept.ends_with('…') && kept.matches('`').count() % 2 == 1;
    match kept.rsplit_once('`') {
        Some((before, _)) if is_open && !before.trim().is_empty() => {
            format!("{}…", before.trim_end_matches([' ', '(']))
        }
        _ => kept,
    }
}

/// Returns a time as tables show it.
pub fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns a table without borders, as wide as the terminal; where no terminal says how wide it is, a row is a line.
pub fn table<const N: usize>(
    header: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    drawn(header, rows.into_iter().collect(), width())
}

/// Returns how many columns the terminal has that answers go to; none where they go elsewhere, or where it does not say.
fn width() -> Option<u16> {
    let stdout = io::stdout();
    let width = stdout.is_terminal().then(|| Table::new().width());
    width.flatten().filter(|width| *width > 0)
}

fn drawn<const N: usize>(header: &[&str; N], rows: Vec<[String; N]>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.iter().map(|name| name.to_uppercase()));
    let is_id = |cell: &String| cell.is_empty() || Uuid::try_parse(cell).is_ok();
    let is_whole =
        |at: usize| WHOLE.contains(&header[at]) || rows.iter().all(|row| is_id(&row[at]));
    let whole: Vec<usize> = (0..N).filter(|at| is_whole(*at)).collect();
    for row in rows {
        table.add_row(row.map(|cell| match width {
            Some(_) => cell,
            None => cell.lines().collect::<Vec<_>>().join(" "),
        }));
    }
    if let Some(width) = width {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width);
        for at in whole {
            if let Some(column) = table.column_mut(at) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    } else {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n")
}

/// Strikes secrets out and shows what could steer a terminal; texts come from models and from files.
pub(crate) fn clean(text: &str) -> String {
    terminal::visible(&secrets::strike(text)).into_owned()
}

/// The same for JSON, which whoever reads it finds unchanged.
fn clean_json(text: &str) -> String {
    terminal::visible_json(&secrets::strike(text)).into_owned()
}

/// Keeps secrets out of the last words of a part that crashes.
pub(crate) fn strike_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        remark(&format!("{panic}\n{trace}"));
    }));
}

fn write_line(text: &str) -> Result<(), CliError> {
    // An answer that nobody wants to hear to its end is given all the same.
    write(&format!("{text}\n")).map(drop)
}

/// Writes to standard output; breaks when nobody reads it any more.
fn write(text: &str) -> Result<ControlFlow<()>, CliError> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        // Whoever listened has heard enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(CliError::refused(
            "output",
            format!("cannot write the answer: {error}"),
        )),
        Ok(()) => Ok(ControlFlow::Continue(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_header_and_no_borders() {
        let rows = [["1".to_owned(), "rope".to_owned()]];
        assert_eq!(table(&["id", "name"], rows), "ID  NAME\n1   rope");
    }

    #[test]
    fn a_long_text_is_told_in_whole_words_and_without_marks() {
        let text = "**Task T-1** wants `a ** b`\n(`test/test_a.py` and\nmore)";
        for (most, expected) in [
            (90, "Task T-1 wants `a ** b` (`test/test_a.py` and more)"),
            (46, "Task T-1 wants `a ** b` (`test/test_a.py` and…"),
            (34, "Task T-1 wants `a ** b`…"),
            (20, "Task T-1 wants…"),
        ] {
            assert_eq!(in_short(text, most), expected, "{most}");
        }
        assert_eq!(in_short("`a long line of code`", 12), "`a long…");
    }

    #[test]
    fn a_row_is_a_line_where_nobody_says_how_wide_the_paper_is() {
        let id = "01970000-0000-7000-8000-000000000001".to_owned();
        let why = "it waits ".repeat(60);
        let rows = || {
            vec![[
                id.clone(),
                "verifying".to_owned(),
                format!("{why}\nfor you"),
            ]]
        };
        let header = ["id", "state", "why"];
        let piped = drawn(&header, rows(), None);
        let expected = format!("{id}  verifying  {why} for you");
        assert_eq!(piped.lines().nth(1), Some(expected.as_str()));
        assert_eq!(piped.lines().count(), 2);
        let narrow = drawn(&header, rows(), Some(60));
        let first = narrow.lines().nth(1).unwrap();
        assert!(
            first.starts_with(&format!("{id}  verifying  it")),
            "{narrow}"
        );
        assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
        let by_value = drawn(&["question", "says"], vec![[id.clone(), why]], Some(50));
        assert!(by_value.contains(&id), "{by_value}");
    }
}
