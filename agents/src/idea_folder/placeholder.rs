//! Tells what a person or a model has written from what a template left to be written.

/// Words that stand where something is still to be written.
const FILLERS: [&str; 15] = [
    "todo",
    "tbd",
    "tba",
    "fixme",
    "n/a",
    "na",
    "none",
    "xxx",
    "unknown",
    "untitled",
    "placeholder",
    "to be defined",
    "to be determined",
    "coming soon",
    "lorem ipsum",
];

/// What a template numbers, as in `User type 1`.
const NUMBERED: [&str; 14] = [
    "user",
    "user type",
    "user group",
    "target user",
    "persona",
    "problem",
    "pain point",
    "feature",
    "solution",
    "item",
    "risk",
    "step",
    "option",
    "point",
];

/// Returns whether `text` says nothing of its own: empty, only headings, or only placeholders.
pub fn is_blank(text: &str) -> bool {
    let text = without_comments(text);
    text.lines()
        .all(|line| line.trim_start().starts_with('#') || is_placeholder_line(line))
}

/// Returns whether one line says nothing of its own.
pub fn is_placeholder_line(line: &str) -> bool {
    let line = bare(line);
    if line.is_empty() || is_bracketed(line) {
        return true;
    }
    // `Problem: TBD` says as little as `TBD`.
    if let Some((label, rest)) = line.split_once(':')
        && label.split_whitespace().count() <= 3
    {
        let rest = bare(rest);
        return rest.is_empty() || is_bracketed(rest) || is_filler(rest);
    }
    is_filler(line)
}

fn is_filler(text: &str) -> bool {
    let text = text.to_lowercase();
    let text = text.trim_end_matches(['.', '…', '!', '?', ':']).trim();
    FILLERS.contains(&text)
        || text.starts_with("lorem ipsum")
        || text.starts_with("describe the ")
        || text.starts_with("describe your ")
        || is_numbered(text)
}

/// Returns whether `text` is a name of a template with a number, as in `user type 1`.
fn is_numbered(text: &str) -> bool {
    text.rsplit_once([' ', '#']).is_some_and(|(name, number)| {
        let name = name.trim_end_matches('#').trim();
        let counted = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit());
        let lettered =
            number.len() == 1 && number.chars().all(|letter| letter.is_ascii_alphabetic());
        (counted || lettered) && NUMBERED.contains(&name)
    })
}

fn is_bracketed(text: &str) -> bool {
    [("[", "]"), ("<", ">"), ("{", "}")]
        .iter()
        .any(|(open, close)| text.starts_with(open) && text.ends_with(close))
}

/// Drops what Markdown puts around the words of a line.
fn bare(line: &str) -> &str {
    let line = line
        .trim()
        .trim_start_matches(['-', '*', '+', '>', '|', '_', '`', '~', '#', '=', ' ']);
    let line = line.trim_end_matches(['*', '_', '`', '|', '-', '~', '=', ' ']);
    let line = ["[ ]", "[x]", "[X]"]
        .iter()
        .find_map(|box_| line.strip_prefix(box_))
        .unwrap_or(line);
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let numbered = line[digits..]
        .strip_prefix(". ")
        .or_else(|| line[digits..].strip_prefix(") "));
    match numbered {
        Some(rest) if digits > 0 => rest.trim(),
        _ => line.trim(),
    }
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_template_says_nothing_and_a_line_of_a_person_does() {
        let cases = [
            ("", true),
            ("---", true),
            ("- ", true),
            ("- [ ]", true),
            ("1. User type 1", true),
            ("- **Persona A**", true),
            ("[Describe the problem here]", true),
            ("<who is it for?>", true),
            ("_TBD_", true),
            ("Problem: TBD", true),
            ("Target user:", true),
            ("Lorem ipsum dolor sit amet", true),
            ("| --- |", true),
            ("Hikers run out of power on long trails", false),
            ("User research showed 3", false),
            ("- Problem: phones die on day 2", false),
            ("2 of 3 hikers carry a power bank", false),
            ("None of the existing apps sync", false),
        ];
        for (line, expected) in cases {
            assert_eq!(is_placeholder_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn an_untouched_template_is_blank() {
        let template = "# Brief\n\n## Problem\n\n<!-- Say in two\nlines what hurts. -->\n[Describe it]\n\n## Users\n- User type 1\n- User type 2\n";
        assert!(is_blank(template));
        assert!(is_blank(""));
        assert!(is_blank("# Only a heading\n"));
        assert!(!is_blank(
            &template.replace("[Describe it]", "Cats wander off unseen.")
        ));
    }
}
