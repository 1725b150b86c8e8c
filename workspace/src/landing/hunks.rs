//! Cuts the places that stand against each other out of a text with conflict markers.

use std::fmt::Write as _;

use super::SIDE_LIMIT_BYTES;

/// So many lines are shown around each place.
const AROUND: usize = 3;

/// Returns the marked places, each under the number of its first line; `None` where nothing is marked.
pub(super) fn hunks(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: Vec<std::ops::Range<usize>> = Vec::new();
    for marked in marked(&lines) {
        let range = marked.start.saturating_sub(AROUND)..(marked.end + AROUND).min(lines.len());
        match shown.last_mut() {
            Some(last) if range.start <= last.end => last.end = range.end,
            _ => shown.push(range),
        }
    }
    if shown.is_empty() {
        return None;
    }
    let mut told = String::new();
    for range in shown {
        let part = lines[range.clone()].join("\n");
        if told.len() + part.len() > SIDE_LIMIT_BYTES {
            told.push_str("[the rest is left out]\n");
            break;
        }
        // Writing to a String cannot fail.
        writeln!(told, "@@ line {} @@\n{part}", range.start + 1).ok();
    }
    Some(told)
}

/// Finds the lines from each opening marker to its closing one.
fn marked(lines: &[&str]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut open = None;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("<<<<<<<") {
            open = Some(number);
        } else if line.starts_with(">>>>>>>")
            && let Some(start) = open.take()
        {
            found.push(start..number + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_shows_its_conflicts_and_the_lines_around_them() {
        let mut lines: Vec<String> = (1..=5000).map(|number| number.to_string()).collect();
        lines.splice(
            99..100,
            ["<<<<<<< a", "x", "=======", "y", ">>>>>>> b"].map(str::to_owned),
        );
        let told = hunks(lines.join("\n").as_bytes());
        let expected =
            "@@ line 97 @@\n97\n98\n99\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n101\n102\n103\n";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn neighbours_are_shown_once_and_a_text_without_marks_not_at_all() {
        let one = "<<<<<<< a\nx\n=======\n>>>>>>> b\n";
        let told = hunks(format!("{one}between\n{one}").as_bytes());
        assert_eq!(told, Some(format!("@@ line 1 @@\n{one}between\n{one}")));
        assert_eq!(hunks(b"no\nmarks\n"), None);
    }
}
