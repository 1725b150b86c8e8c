//! Finds the parts of tasks.md and checks that they fit each other.

use std::ops::Range;

use super::{Count, TaskEntry, TasksDocument, TasksHeader, block};
use crate::document::escape::{Place, unescaped};
use crate::document::front::{self, Line};
use crate::document::{DocumentError, Fault, graph, refuse_unreadable, shown, yaml};
use crate::task::{TaskBlock, TaskState};

/// Where the reader is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Where {
    Elsewhere,
    Summary,
    Context,
    Phase(String),
}

/// A fence that is open.
#[derive(Debug)]
struct Fence {
    line: usize,
    mark: String,
    is_task: bool,
    body: Range<usize>,
}

#[derive(Debug)]
struct Reader<'a> {
    source: &'a str,
    place: Where,
    fence: Option<Fence>,
    entries: Vec<TaskEntry>,
    context: Vec<String>,
    counts: Vec<(Count, Range<usize>)>,
}

/// Reads a whole document.
pub(super) fn document(source: &str) -> Result<TasksDocument, DocumentError> {
    refuse_unreadable(source)?;
    let split = front::split(source)?;
    let yaml = source.get(split.front.clone()).unwrap_or_default();
    let header: TasksHeader =
        yaml::read(yaml).map_err(|error| Fault::FrontMatter(error.reason).at(error.line + 1))?;
    let mut reader = Reader {
        source,
        place: Where::Elsewhere,
        fence: None,
        entries: Vec::new(),
        context: Vec::new(),
        counts: Vec::new(),
    };
    for line in &split.body {
        reader.take(line)?;
    }
    if let Some(fence) = reader.fence {
        return Err(Fault::OpenBlock(fence.mark).at(fence.line));
    }
    let document = TasksDocument {
        source: source.to_owned(),
        header,
        front: split.front,
        entries: reader.entries,
        context: reader.context,
        counts: reader.counts,
    };
    check(&document)?;
    Ok(document)
}

impl Reader<'_> {
    fn take(&mut self, line: &Line<'_>) -> Result<(), DocumentError> {
        match self.fence.take() {
            Some(fence) if closes(line.text, &fence.mark) => self.close(fence),
            Some(mut fence) => {
                fence.body.end = line.span.end;
                self.fence = Some(fence);
                Ok(())
            }
            None => self.take_outside(line),
        }
    }

    fn take_outside(&mut self, line: &Line<'_>) -> Result<(), DocumentError> {
        if let Some((mark, info)) = opens(line.text) {
            let is_task = matches!(info.to_ascii_lowercase().as_str(), "yaml" | "yml");
            if is_task && !matches!(self.place, Where::Phase(_)) {
                return Err(Fault::OutsidePhase.at(line.number));
            }
            self.fence = Some(Fence {
                line: line.number,
                mark: mark.to_owned(),
                is_task,
                body: line.span.end..line.span.end,
            });
            return Ok(());
        }
        if let Some(heading) = line.text.strip_prefix("## ") {
            self.place = place_of(heading.trim());
            return Ok(());
        }
        match self.place {
            Where::Context => self.take_context(line.text),
            Where::Summary => self.take_count(line),
            Where::Elsewhere | Where::Phase(_) => {}
        }
        Ok(())
    }

    fn take_context(&mut self, text: &str) {
        if let Some(item) = text.strip_prefix("- ") {
            self.context.push(unescaped(item.trim_end(), Place::Line));
        }
    }

    fn take_count(&mut self, line: &Line<'_>) {
        let found = Count::ALL.into_iter().find_map(|count| {
            let rest = line.text.strip_prefix("- ")?.strip_prefix(count.label())?;
            let number = rest.strip_prefix(':')?.trim();
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            let start = line.span.start + line.text.trim_end().len() - number.len();
            is_number.then_some((count, start..start + number.len()))
        });
        self.counts.extend(found);
    }

    fn close(&mut self, fence: Fence) -> Result<(), DocumentError> {
        let Where::Phase(heading) = &self.place else {
            return Ok(());
        };
        if !fence.is_task {
            return Ok(());
        }
        let text = self.source.get(fence.body.clone()).unwrap_or_default();
        let (block, progress) = block::read(text).map_err(|error| {
            let task = block::name(text);
            let reason = error.reason;
            Fault::Block { task, reason }.at(fence.line + error.line)
        })?;
        if block.phase != *heading {
            return Err(Fault::WrongPhase {
                task: block.id.to_string(),
                phase: shown(&block.phase),
                heading: shown(heading),
            }
            .at(fence.line));
        }
        self.entries.push(TaskEntry {
            block,
            progress,
            line: fence.line,
            body: fence.body,
        });
        Ok(())
    }
}

fn place_of(heading: &str) -> Where {
    match (heading, heading.strip_prefix("Phase:")) {
        ("Summary", _) => Where::Summary,
        ("Context", _) => Where::Context,
        (_, Some(phase)) => Where::Phase(unescaped(phase.trim(), Place::Line)),
        _ => Where::Elsewhere,
    }
}

/// Returns the marks of a fence and the first word behind them.
fn opens(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start_matches(' ');
    let indented = text.len() - inner.len() > 3;
    let first = inner
        .chars()
        .next()
        .filter(|first| matches!(first, '`' | '~'))?;
    let rest = inner.trim_start_matches(first);
    let mark = inner.get(..inner.len() - rest.len())?;
    // Behind backticks, another backtick makes it a code span and no fence.
    let is_fence = mark.len() >= 3 && !indented && !(first == '`' && rest.contains('`'));
    is_fence.then(|| (mark, rest.split_whitespace().next().unwrap_or_default()))
}

fn closes(text: &str, mark: &str) -> bool {
    let inner = text.trim_start_matches(' ');
    let indented = text.len() - inner.len() > 3;
    let first = mark.chars().next().unwrap_or('`');
    let run = inner.trim_end();
    !indented && run.len() >= mark.len() && run.chars().all(|letter| letter == first)
}

fn check(document: &TasksDocument) -> Result<(), DocumentError> {
    let entries = &document.entries;
    let blocks: Vec<TaskBlock> = document.blocks();
    graph::check(&blocks).map_err(|fault| {
        // Of two tasks with one name, the later is the one to rename.
        let line = entries
            .iter()
            .rev()
            .find(|entry| fault.task() == Some(entry.block.id.as_str()))
            .map_or(1, |entry| entry.line);
        Fault::from(fault).at(line)
    })?;
    let states: Vec<TaskState> = entries.iter().map(|entry| entry.progress.status).collect();
    let header = &document.header;
    for (key, said, counted) in [
        ("total", header.total, entries.len()),
        ("completed", header.completed, Count::Complete.of(&states)),
    ] {
        if said != counted {
            return Err(Fault::Count { key, said, counted }.at(1));
        }
    }
    Ok(())
}
