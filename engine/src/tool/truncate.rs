//! Bounds what a tool gives a model to read (TOOL-6 of the capability list).

use super::Keep;

/// The most lines a model gets to read of one output.
pub(crate) const MOST_LINES: usize = 2_000;
/// The most bytes a model gets to read of one output.
pub(crate) const MOST_BYTES: usize = 50 * 1024;

/// Cuts `text` to the bounds; none when it fits.
pub(crate) fn truncate(text: &str, keep: Keep) -> Option<String> {
    let lines = text.lines().count();
    if keep == Keep::Everything || (lines <= MOST_LINES && text.len() <= MOST_BYTES) {
        return None;
    }
    let kept = match keep {
        Keep::Head | Keep::Everything => head(text),
        Keep::Tail => tail(text),
    };
    let kept_lines = kept.lines().count();
    let note = format!(
        "[cut: {kept_lines} of {lines} lines, {} of {} bytes]",
        kept.len(),
        text.len()
    );
    Some(match keep {
        Keep::Tail => format!("{note}\n{kept}"),
        Keep::Head | Keep::Everything => format!("{}\n{note}", kept.trim_end_matches('\n')),
    })
}

fn head(text: &str) -> &str {
    let end = text
        .split_inclusive('\n')
        .take(MOST_LINES)
        .map(str::len)
        .sum::<usize>()
        .min(MOST_BYTES);
    &text[..text.floor_char_boundary(end)]
}

fn tail(text: &str) -> &str {
    let length = text
        .split_inclusive('\n')
        .rev()
        .take(MOST_LINES)
        .map(str::len)
        .sum::<usize>()
        .min(MOST_BYTES);
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
        assert_eq!(truncate(&numbered(MOST_LINES), Keep::Head), None);
        assert_eq!(truncate(&"x".repeat(MOST_BYTES), Keep::Tail), None);
        assert_eq!(truncate(&numbered(9_000), Keep::Everything), None);
    }

    #[test]
    fn the_end_that_matters_is_kept_and_the_cut_is_said() {
        let head = truncate(&numbered(3_000), Keep::Head).unwrap();
        assert!(head.starts_with("line 1\n"));
        assert!(head.contains("line 2000\n[cut: 2000 of 3000 lines"));
        let tail = truncate(&numbered(3_000), Keep::Tail).unwrap();
        assert!(tail.starts_with("[cut: 2000 of 3000 lines"));
        assert!(tail.contains("\nline 1001\n") && tail.ends_with("line 3000\n"));
    }

    #[test]
    fn a_letter_is_never_cut_in_two() {
        let text = "é".repeat(MOST_BYTES);
        for keep in [Keep::Head, Keep::Tail] {
            let cut = truncate(&text, keep).unwrap();
            assert!(cut.len() <= MOST_BYTES + 100);
            assert!(!cut.contains('\u{fffd}'));
        }
    }
}
