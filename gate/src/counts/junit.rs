//! Reads JUnit XML, as far as counting needs it.

use ropewalk_schemas::attempt::TestCounts;

/// Counts `testcase` elements by what they hold. A report that breaks off is none, unless it told of a failure before.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let start = output.find("<testsuite")?;
    let mut rest = &output[start..];
    let mut counts = TestCounts::default();
    while let Some(position) = rest.find("<testcase") {
        let case = &rest[position..];
        let Some((head, empty)) = element_head(case) else {
            return (counts.failed > 0).then_some(counts);
        };
        let inner = &case[head.len()..];
        let end = if empty {
            Some(0)
        } else {
            inner.find("</testcase>")
        };
        let Some(end) = end else {
            // What only writes of such elements names none.
            if is_failed(inner) && attribute(head, "name").is_some() {
                add(&mut counts, head, inner);
            }
            return (counts.failed > 0).then_some(counts);
        };
        add(&mut counts, head, &inner[..end]);
        rest = &inner[end..];
    }
    Some(counts)
}

/// Returns the opening tag and whether it closes itself; quoted text may hold a `>`.
fn element_head(text: &str) -> Option<(&str, bool)> {
    let mut quote = None;
    for (position, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '>') => return Some((&text[..=position], text[..position].ends_with('/'))),
            _ => {}
        }
    }
    None
}

fn add(counts: &mut TestCounts, head: &str, body: &str) {
    let name = attribute(head, "name").unwrap_or_default();
    let full = match attribute(head, "classname") {
        Some(class) => format!("{class}::{name}"),
        None => name.to_owned(),
    };
    if is_failed(body) {
        counts.failed += 1;
        counts.failed_names.push(full);
    } else if body.contains("<skipped") {
        counts.ignored += 1;
    } else {
        counts.passed += 1;
        counts.names.push(full);
    }
}

fn is_failed(body: &str) -> bool {
    body.contains("<failure") || body.contains("<error")
}

fn attribute<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = head.split_once(&format!(" {name}="))?;
    let quote = rest.chars().next()?;
    let inner = rest.strip_prefix(quote)?;
    inner.split(quote).next()
}
