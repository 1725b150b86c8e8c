//! Looks at a file as text: where strings of several lines are, and which words it uses.

/// Says of each line whether it begins inside a string that one of `marks` opened.
pub(super) fn inside_strings(marks: &[&'static str], lines: &[&str]) -> Vec<bool> {
    let mut open: Option<&str> = None;
    let mut inside = Vec::with_capacity(lines.len());
    for line in lines {
        inside.push(open.is_some());
        if open.is_none() && is_comment(line) {
            continue;
        }
        let plain = line
            .replace("\\\\", "")
            .replace("\\\"", "")
            .replace("'\"'", "");
        let mut rest = plain.as_str();
        loop {
            let next = match open {
                Some(mark) => rest.find(mark).map(|at| (at, mark)),
                None => marks
                    .iter()
                    .filter_map(|mark| Some((rest.find(mark)?, *mark)))
                    .min(),
            };
            let Some((at, mark)) = next else { break };
            open = open.is_none().then_some(mark);
            rest = &rest[at + mark.len()..];
        }
    }
    inside
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let mut marks = ["# ", "//", "/*", "* "].iter();
    marks.any(|mark| line.starts_with(mark))
}

/// Says whether a text uses a word by itself, and not as a part of something that is named before it.
pub(super) fn uses(text: &str, word: &str) -> bool {
    text.lines().filter(|line| !is_comment(line)).any(|line| {
        line.match_indices(word).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            let of_other =
                before.ends_with("::") || (before.ends_with('.') && !before.ends_with(".."));
            !of_other && !before.ends_with(is_of_word) && !after.starts_with(is_of_word)
        })
    })
}

/// Says whether a letter may be part of a name.
pub(super) fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// Says whether a text is one name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(is_of_word)
}
