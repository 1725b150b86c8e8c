//! Fits a difference into the room that there is: each file keeps its name and its beginning, and small ones stay whole.

/// What begins the difference of a file, at the start of a line.
const FILE: &str = "diff --git ";

/// Shortens the files of a difference so that together they take about `bytes`; what one loses at its end is said there.
pub(super) fn fitted(diff: &str, bytes: usize) -> String {
    let files = files(diff);
    let most = share(files.iter().map(|file| file.len()).collect(), bytes);
    files
        .into_iter()
        .map(|file| shortened(file, most))
        .collect()
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

/// Returns how long one may be at most so that all fit into `room`: what the small ones leave goes to the others.
fn share(mut sizes: Vec<usize>, mut room: usize) -> usize {
    sizes.sort_unstable();
    for (index, size) in sizes.iter().enumerate() {
        let each = room / (sizes.len() - index);
        if *size > each {
            return each;
        }
        room -= size;
    }
    usize::MAX
}

fn shortened(file: &str, most: usize) -> String {
    if file.len() <= most {
        return file.to_owned();
    }
    let head = &file[..file.floor_char_boundary(most)];
    // The first line names the file, and stays.
    let name = file.find('\n').map_or(file.len(), |end| end + 1);
    let kept = head.rfind('\n').map_or(0, |end| end + 1).max(name);
    let lost = file[kept..].lines().count();
    format!("{}… (cut: {lost} more lines of this file)\n", &file[..kept])
}

#[cfg(test)]
mod tests {
    use super::{fitted, share};

    #[test]
    fn what_small_ones_leave_goes_to_the_others() {
        let rows: [(&[usize], usize, usize); 5] = [
            (&[], 10, usize::MAX),
            (&[3, 4], 10, usize::MAX),
            (&[8, 9], 10, 5),
            (&[2, 90, 90], 22, 10),
            (&[90, 1, 9], 30, 20),
        ];
        for (sizes, room, expected) in rows {
            assert_eq!(share(sizes.to_vec(), room), expected, "{sizes:?} {room}");
        }
    }

    #[test]
    fn each_file_keeps_its_name_and_its_beginning() {
        let file = |name: &str, lines: usize| {
            format!(
                "diff --git a/{name} b/{name}\n{}",
                "+diff --git é\n".repeat(lines)
            )
        };
        let diff = [file("test_a", 100), file("b", 1), file("c", 200)].concat();
        let shown = fitted(&diff, 400);
        assert!(shown.len() < 600, "{shown}");
        for told in [
            "a/test_a ",
            "a/b ",
            "a/c ",
            &file("b", 1),
            "more lines of this file",
        ] {
            assert!(shown.contains(told), "{told}: {shown}");
        }
        assert_eq!(shown.matches("(cut: ").count(), 2, "{shown}");
        assert_eq!(fitted(&diff, 10_000), diff);
        assert_eq!(fitted("", 10), "");
        assert!(fitted(&diff, 0).contains("a/c b/c\n… (cut: 200"));
    }
}
