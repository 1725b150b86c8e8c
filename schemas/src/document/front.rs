//! Splits a document into front matter and lines.

use std::ops::Range;

use super::{DocumentError, Fault};

/// A line of a document.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub(super) number: usize,
    /// Its text without the line break.
    pub(super) text: &'a str,
    /// Where its text begins and, with its line break, ends.
    pub(super) span: Range<usize>,
}

/// A document split into its parts.
#[derive(Debug)]
pub(super) struct Split<'a> {
    /// The YAML between the two `---`.
    pub(super) front: Range<usize>,
    /// The lines below.
    pub(super) body: Vec<Line<'a>>,
}

/// Splits `source`; a byte-order mark is skipped, and either kind of line break ends a line.
pub(super) fn split(source: &str) -> Result<Split<'_>, DocumentError> {
    let all = lines(source);
    if !all.first().is_some_and(is_rule) {
        return Err(Fault::NoFrontMatter.at(1));
    }
    let Some(end) = all.iter().skip(1).position(is_rule).map(|at| at + 1) else {
        return Err(Fault::NoFrontMatter.at(1));
    };
    let from = all.first().map_or(0, |line| line.span.end);
    let to = all.get(end).map_or(from, |line| line.span.start);
    Ok(Split {
        front: from..to,
        body: all.into_iter().skip(end + 1).collect(),
    })
}

fn is_rule(line: &Line<'_>) -> bool {
    line.text.trim_end() == "---"
}

fn lines(source: &str) -> Vec<Line<'_>> {
    let mut start = if source.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let content = source.get(start..).unwrap_or_default();
    content
        .split_inclusive('\n')
        .enumerate()
        .map(|(index, whole)| {
            let text = whole.strip_suffix('\n').unwrap_or(whole);
            let span = start..start + whole.len();
            start = span.end;
            Line {
                number: index + 1,
                text: text.strip_suffix('\r').unwrap_or(text),
                span,
            }
        })
        .collect()
}
