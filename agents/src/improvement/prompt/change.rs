//! Fits a difference into the room that there is: a file is shown whole, or named alone.

/// What begins the difference of a file, at the start of a line.
const FILE: &str = "diff --git ";
/// Stands behind the name of a file that is not shown.
const LEFT_OUT: &str = "… (left out: ";

/// A difference as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::improvement) struct FittedChange {
    /// What is shown, file by file.
    pub(in crate::improvement) text: String,
    /// How many of the files are named alone.
    pub(in crate::improvement) left_out: usize,
}

/// Names the longest files of a difference alone, until all others together take `bytes` at most.
pub(in crate::improvement) fn fitted(diff: &str, bytes: usize) -> FittedChange {
    let files = files(diff);
    let mut shown: Vec<bool> = files.iter().map(|file| !is_left_out(file)).collect();
    let mut by_length: Vec<usize> = (0..files.len()).collect();
    by_length.sort_by_key(|place| files[*place].len());
    let mut room = bytes;
    for place in by_length {
        match room.checked_sub(files[place].len()) {
            Some(left) => room = left,
            None => shown[place] = false,
        }
    }
    let told = files.iter().zip(&shown).map(|(file, shown)| match shown {
        false if !is_left_out(file) => named(file),
        _ => (*file).to_owned(),
    });
    FittedChange {
        text: told.collect(),
        left_out: shown.iter().filter(|shown| !**shown).count(),
    }
}

/// Writes the difference of a file that is too long to be read at all.
pub(in crate::improvement) fn left_out(path: &str) -> String {
    format!("{FILE}a/{path} b/{path}\n{LEFT_OUT}too long)\n")
}

fn is_left_out(file: &str) -> bool {
    let second = file.lines().nth(1);
    second.is_some_and(|line| line.starts_with(LEFT_OUT))
}

fn files(diff: &str) -> Vec<&str> {
    let mut ends: Vec<usize> = diff
        .match_indices(FILE)
        .map(|(start, _)| start)
        .filter(|start| *start == 0 || diff[..*start].ends_with('\n'))
        .collect();
    ends.push(diff.len());
    ends.windows(2)
        .map(|ends| &diff[ends[0]..ends[1]])
        .collect()
}

fn named(file: &str) -> String {
    let name = file.lines().next().unwrap_or_default();
    let lines = file.lines().skip(1).count();
    format!("{name}\n{LEFT_OUT}{lines} lines)\n")
}

#[cfg(test)]
mod tests {
    use super::{fitted, left_out};

    fn file(name: &str, lines: usize) -> String {
        format!(
            "diff --git a/{name} b/{name}\n{}",
            "+diff --git é\n".repeat(lines)
        )
    }

    #[test]
    fn a_file_is_shown_whole_or_named_and_the_longest_go_first() {
        let diff = [file("test_a", 100), file("b", 1), file("c", 200)].concat();
        let named = |name: &str, lines: usize| {
            format!("diff --git a/{name} b/{name}\n… (left out: {lines} lines)\n")
        };
        let rows = [
            (diff.len(), diff.clone(), 0),
            (
                diff.len() - 1,
                [file("test_a", 100), file("b", 1), named("c", 200)].concat(),
                1,
            ),
            (
                file("b", 1).len(),
                [named("test_a", 100), file("b", 1), named("c", 200)].concat(),
                2,
            ),
            (
                0,
                [named("test_a", 100), named("b", 1), named("c", 200)].concat(),
                3,
            ),
        ];
        for (bytes, text, left_out) in rows {
            let shown = fitted(&diff, bytes);
            assert_eq!((shown.text, shown.left_out), (text, left_out), "{bytes}");
        }
        assert_eq!(fitted("", 10).left_out, 0);
    }

    #[test]
    fn what_could_not_be_read_is_counted_as_left_out() {
        let diff = [file("a", 1), left_out("b")].concat();
        let shown = fitted(&diff, 10_000);
        assert_eq!((shown.text, shown.left_out), (diff, 1));
    }
}
