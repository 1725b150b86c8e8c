//! Bounds what a tool gives a model to read (TOOL-6 of the capability list).

use super::Keep;

/// The most lines a model gets to read of one output.
pub(crate) const MOST_LINES: usize = 2_000;
/// The most bytes a model gets to read of one output.
pub(crate) const MOST_BYTES: usize = 16 * 1024;

/// Cuts `text` to the bounds; none when it fits.
pub(crate) fn truncate(text: &str, keep: Keep) -> Option<String> {
    let lines = text.lines().count();
    if keep == Keep::Everything || (lines <= MOST_LINES && text.len() <= MOST_BYTES) {
        return None;
    }
    let (head, tail) = match keep {
        Keep::Head | Keep::Everything => (head(text, 1), ""),
        // Compilers say first what is wrong, test runners last.
        Keep::Ends => (head(text, 4), tail(text)),
    };
    let kept_lines = head.lines().count() + tail.lines().count();
    let note = format!(
        "[cut: {kept_lines} of {lines} lines, {} of {} bytes]",
        head.len() + tail.len(),
        text.len()
    );
    let cut = format!("{}\n{note}\n{tail}", head.trim_end_matches('\n'));
    Some(if tail.is_empty() {
        cut.trim_end_matches('\n').to_owned()
    } else {
        cut
    })
}

/// Keeps the beginning: one part of `parts` of what may be kept.
fn head(text: &str, parts: usize) -> &str {
    let end = text
        .split_inclusive('\n')
        .take(MOST_LINES / parts)
        .map(str::len)
        .sum::<usize>()
        .min(MOST_BYTES / parts);
    &text[..text.floor_char_boundary(end)]
}

/// Keeps the end: three quarters of what may be kept.
fn tail(text: &str) -> &str {
    let length = text
        .split_inclusive('\n')
        .rev()
        .take(MOST_LINES / 4 * 3)
        .map(str::len)
        .sum::<usize>()
        .min(MOST_BYTES / 4 * 3);
    &text[text.ceil_char_boundary(text.len() - length)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(lines: usize) -> String {
        let lines: Vec<String> = (1..=lines).map(|line| format!("line {line}\n")).collect();
        lines.concat()
    }

    #[test]
    fn an_output_within_the_bounds_is_left_alone() {
        assert_eq!(truncate(&numbered(1_000), Keep::Head), None);
        assert_eq!(truncate(&"x".repeat(MOST_BYTES), Keep::Ends), None);
        assert_eq!(truncate(&numbered(9_000), Keep::Everything), None);
    }

    #[test]
    fn what_matters_is_kept_and_the_cut_is_said() {
        let text = "x\n".repeat(3_000);
        let head = truncate(&text, Keep::Head).unwrap();
        assert!(head.starts_with("x\n"));
        assert!(head.ends_with("x\n[cut: 2000 of 3000 lines, 4000 of 6000 bytes]"));
        let ends = truncate(&numbered(3_000), Keep::Ends).unwrap();
        assert!(ends.starts_with("line 1\n") && ends.ends_with("line 3000\n"));
        let (before, after) = ends.split_once("[cut: ").unwrap();
        assert!(before.len() <= MOST_BYTES / 4 + 1 && after.len() <= MOST_BYTES / 4 * 3 + 100);
    }

    #[test]
    fn a_letter_is_never_cut_in_two() {
        let text = "é".repeat(MOST_BYTES);
        for keep in [Keep::Head, Keep::Ends] {
            let cut = truncate(&text, keep).unwrap();
            assert!(cut.len() <= MOST_BYTES + 100);
            assert!(!cut.contains('\u{fffd}'));
        }
    }
}
