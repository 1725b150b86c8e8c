//! Edits tasks.md in place: only the values that change are touched.

use std::ops::Range;

use super::{Count, Journal, PlanStatus, Progress, TasksDocument, parse};
use crate::document::escape::{Place, escaped, unescaped};
use crate::document::{DocumentError, Fault, yaml};
use crate::ids::TaskId;
use crate::task::TaskState;

impl TasksDocument {
    /// Writes how far `task` has come, and keeps front matter and summary true; on an error nothing is changed.
    pub fn set_status(&mut self, task: &TaskId, progress: &Progress) -> Result<(), DocumentError> {
        let index = self
            .entries
            .iter()
            .position(|entry| entry.block.id == *task)
            .ok_or_else(|| Fault::UnknownTask(task.to_string()).at(1))?;
        let mut expected = self.entries.clone();
        if let Some(entry) = expected.get_mut(index) {
            entry.progress = progress.clone();
        }
        let states: Vec<TaskState> = expected.iter().map(|entry| entry.progress.status).collect();
        let edited = self.with(self.edits(index, progress, &states));
        let refuse = |reason: String| {
            let line = self.entries.get(index).map_or(1, |entry| entry.line);
            let task = task.to_string();
            Fault::Edit { task, reason }.at(line)
        };
        let document = parse(&edited).map_err(|error| refuse(error.to_string()))?;
        // Whatever the edit did to the text, it must mean exactly the change that was asked for.
        let same = document.entries.len() == expected.len()
            && document
                .entries
                .iter()
                .zip(&expected)
                .all(|(found, wanted)| {
                    found.block == wanted.block && found.progress == wanted.progress
                });
        if !same {
            return Err(refuse("the edit would change something else".to_owned()));
        }
        *self = document;
        Ok(())
    }

    /// Adds an item to a journal, making its section at the end where there is none.
    pub fn append(&mut self, journal: Journal, text: &str) -> Result<(), DocumentError> {
        let newline = self.newline();
        let item = escaped(text, Place::Line);
        let heading = format!("## {}", journal.title());
        let edited = if let Some((at, is_empty)) = self.end_of_section(&heading) {
            let gap = if is_empty { newline } else { "" };
            self.with(vec![(at..at, format!("{gap}- {item}{newline}"))])
        } else {
            let base = self.source.trim_end();
            format!("{base}{newline}{newline}{heading}{newline}{newline}- {item}{newline}")
        };
        *self = parse(&edited)?;
        Ok(())
    }

    /// Returns the items of a journal, oldest first.
    pub fn journal(&self, journal: Journal) -> Vec<String> {
        let mut items: Vec<String> = Vec::new();
        let mut inside = false;
        for line in self.source.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                inside = heading.trim() == journal.title();
            } else if inside && let Some(text) = line.strip_prefix("- ") {
                items.push(unescaped(text.trim_end(), Place::Line));
            }
        }
        items
    }

    fn edits(
        &self,
        index: usize,
        progress: &Progress,
        states: &[TaskState],
    ) -> Vec<(Range<usize>, String)> {
        let newline = self.newline();
        let mut edits = Vec::new();
        if let Some(entry) = self.entries.get(index) {
            let at = |range: &Range<usize>| self.source.get(range.clone()).unwrap_or_default();
            let time = |at: &chrono::DateTime<chrono::Utc>| yaml::scalar(&at.to_rfc3339());
            let values = [
                ("status", Some(progress.status.to_string())),
                ("completed_at", progress.completed_at.as_ref().map(time)),
                ("started_at", progress.started_at.as_ref().map(time)),
                (
                    "assigned_to",
                    progress
                        .assigned_to
                        .as_ref()
                        .map(|name| yaml::scalar(name.as_str())),
                ),
            ];
            let body = values
                .into_iter()
                .fold(at(&entry.body).to_owned(), |body, (key, value)| {
                    with_key(&body, key, value.as_deref(), newline)
                });
            edits.push((entry.body.clone(), body));
            let front = [
                ("total", Count::Total.of(states).to_string()),
                ("completed", Count::Complete.of(states).to_string()),
                ("status", PlanStatus::of(states).as_str().to_owned()),
            ];
            let front = front
                .into_iter()
                .fold(at(&self.front).to_owned(), |front, (key, value)| {
                    with_key(&front, key, Some(&value), newline)
                });
            edits.push((self.front.clone(), front));
        }
        let counts = self.counts.iter();
        edits.extend(counts.map(|(count, range)| (range.clone(), count.of(states).to_string())));
        edits
    }

    /// Returns the source with `edits`, whose ranges do not overlap.
    fn with(&self, mut edits: Vec<(Range<usize>, String)>) -> String {
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut source = self.source.clone();
        for (range, text) in edits {
            source.replace_range(range, &text);
        }
        source
    }

    fn newline(&self) -> &'static str {
        if self.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// Returns where an item is to be added to the section, and whether the section is empty.
    fn end_of_section(&self, heading: &str) -> Option<(usize, bool)> {
        let mut at = 0;
        let mut found = None;
        for line in self.source.split_inclusive('\n') {
            at += line.len();
            let text = line.trim_end();
            if text == heading {
                found = Some((at, true));
            } else if found.is_some() && text.starts_with("## ") {
                break;
            } else if found.is_some() && !text.is_empty() {
                found = Some((at, false));
            }
        }
        // A last line without a line break has nothing to be added behind.
        found.filter(|(end, _)| {
            self.source
                .get(..*end)
                .is_some_and(|text| text.ends_with('\n'))
        })
    }
}

/// Sets or removes a key at no indentation; a comment behind its value stays, and a new key goes below `status`.
fn with_key(yaml: &str, key: &str, value: Option<&str>, newline: &str) -> String {
    let mut result = String::with_capacity(yaml.len() + 40);
    let mut written = false;
    for line in yaml.split_inclusive('\n') {
        let Some(rest) = value_of(line, key).filter(|_| !written) else {
            result.push_str(line);
            continue;
        };
        written = true;
        if let Some(value) = value {
            let value_end = rest
                .find(" #")
                .and_then(|at| rest.get(..at))
                .map(|before| before.trim_end().len());
            let comment = value_end.and_then(|at| rest.get(at..));
            result.extend([key, ": ", value, comment.unwrap_or(newline)]);
        }
    }
    match value {
        Some(value) if !written => inserted(&result, &format!("{key}: {value}{newline}")),
        _ => result,
    }
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?
        .strip_prefix(':')
        .filter(|rest| rest.starts_with([' ', '\t', '\r', '\n']))
}

fn inserted(yaml: &str, line: &str) -> String {
    let mut at = 0;
    for known in yaml.split_inclusive('\n') {
        at += known.len();
        if value_of(known, "status").is_some() {
            let (before, after) = yaml.split_at(at);
            return format!("{before}{line}{after}");
        }
    }
    format!("{yaml}{line}")
}
