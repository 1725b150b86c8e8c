//! Shows one step of a model as lines for people.

use ropewalk_desk::views::transcript::StepWords;
use ropewalk_schemas::job_event::{JobEvent, Passage};

/// How many lines of an output or a difference are shown.
const LINES: usize = 40;
/// How many lines of what a tool answered are shown.
const ANSWER_LINES: usize = 3;
/// What stands before what a model does, where an event has its number.
const MARGIN: &str = "        ";

/// Returns the lines for people; none for what only machines care for.
pub(super) fn lines(passage: &Passage) -> Vec<String> {
    let Some(StepWords { line, more }) = StepWords::new(&passage.event) else {
        return Vec::new();
    };
    let most = match &passage.event {
        JobEvent::ToolEnded {
            is_error: false, ..
        } => ANSWER_LINES,
        _ => LINES,
    };
    let head = format!("{MARGIN}{}  {line}", passage.task);
    let mut lines = vec![head.trim_end().to_owned()];
    lines.extend(body(&more, most));
    lines
}

/// Indents a text, of which at most so many lines are shown.
fn body(text: &str, most: usize) -> Vec<String> {
    let all: Vec<&str> = text.trim().lines().collect();
    let shown = all.iter().take(most);
    let mut lines: Vec<String> = shown
        .map(|line| format!("{MARGIN}  | {}", line.trim_end()))
        .collect();
    if all.len() > most {
        lines.push(format!("{MARGIN}  | … {} more lines", all.len() - most));
    }
    lines
}
