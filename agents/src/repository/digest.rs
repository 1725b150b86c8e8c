//! Says on a few pages what a repository holds: its directories by weight, and what its main files define.
//!
//! Pure: files with their sizes and outlines in, text out, never longer than its bounds.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use ropewalk_engine::outline::{Language, Symbol, render_within};
use ropewalk_schemas::amount::counted_as;
use ropewalk_schemas::clip;
use ropewalk_workspace::clone::Blob;

/// So much of the digest are directories.
const TREE_BYTES: usize = 9 * 1024;
/// So much of it are outlines.
const OUTLINE_BYTES: usize = 11 * 1024;
/// The most files whose outlines are made.
pub(super) const OUTLINED: usize = 40;
/// Outlines show what lies right inside of what a file defines, and no deeper.
const OUTLINED_DEPTH: usize = 1;
/// The longest file that is outlined; what is longer was written by a machine.
const LONGEST_BYTES: u64 = 512 * 1024;
/// More bytes than this add nothing to the weight of a file.
const HEAVY_BYTES: u64 = 64 * 1024;
/// So many files of a directory are named.
const NAMED: usize = 24;
/// No line of a directory below the root takes less bytes than this one, with its end: `d/ (1 file, 0 B)`.
const LEAST_LINE: usize = 17;
/// So much of one outline is shown, however many there are.
const SHARE_BYTES: usize = 1_200;
/// So many kinds of files are counted.
const KINDS: usize = 8;

/// Directories that hold what others wrote, or what programs make.
const FOREIGN: [&str; 8] = [
    "vendor",
    "node_modules",
    "third_party",
    "dist",
    "build",
    "target",
    "fixtures",
    "testdata",
];
/// Directories of tests.
const TESTS: [&str; 5] = ["test", "tests", "__tests__", "spec", "benches"];

/// Returns the files whose outlines say most about a repository, the weightiest first.
pub(super) fn main_files(blobs: &[Blob]) -> Vec<&Blob> {
    let mut files: Vec<&Blob> = blobs
        .iter()
        .filter(|blob| Language::of(&blob.path).is_some() && blob.bytes <= LONGEST_BYTES)
        .filter(|blob| !lies_in(&blob.path, &FOREIGN) && !lies_in(&blob.path, &TESTS))
        .filter(|blob| !blob.path.contains(".min."))
        .collect();
    let weight = |blob: &Blob| {
        let depth = blob.path.matches('/').count() as u64;
        blob.bytes.min(HEAVY_BYTES) / (depth + 1)
    };
    files.sort_by(|one, other| {
        weight(other)
            .cmp(&weight(one))
            .then_with(|| one.path.cmp(&other.path))
    });
    files.truncate(OUTLINED);
    files
}

fn lies_in(path: &str, names: &[&str]) -> bool {
    let mut directories = path.split('/').rev().skip(1);
    directories.any(|directory| names.contains(&directory))
}

/// Writes the digest; `outlines` are those of [`main_files`], in that order.
pub(super) fn render(blobs: &[Blob], outlines: &[(&str, &[Symbol])]) -> String {
    let mut text = summary(blobs);
    text.push_str(&directories(blobs));
    let mut used = 0;
    let told: Vec<_> = outlines
        .iter()
        .filter(|(_, symbols)| !symbols.is_empty())
        .collect();
    let share = (OUTLINE_BYTES / told.len().max(1)).max(SHARE_BYTES);
    for (path, symbols) in told {
        let outline = outlined(path, symbols, share);
        if used + outline.len() > OUTLINE_BYTES {
            continue;
        }
        used += outline.len();
        text.push_str(&outline);
    }
    text
}

fn summary(blobs: &[Blob]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for blob in blobs {
        let name = blob.path.rsplit('/').next().unwrap_or_default();
        if let Some((_, ending)) = name.rsplit_once('.') {
            *kinds.entry(ending).or_default() += 1;
        }
    }
    let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(ending, count)| (Reverse(*count), *ending));
    let kinds: Vec<String> = kinds
        .iter()
        .take(KINDS)
        .map(|(ending, count)| format!("{count} .{}", short(ending)))
        .collect();
    let bytes = size(blobs.iter().map(|blob| blob.bytes).sum());
    let files = files_of(blobs.len());
    if kinds.is_empty() {
        format!("{files}, {bytes}.\n")
    } else {
        format!("{files}, {bytes}: {}.\n", kinds.join(", "))
    }
}

/// A directory with the files that lie in it itself.
#[derive(Default)]
struct Directory<'a> {
    files: Vec<(&'a str, u64)>,
    /// How many files lie in it and below.
    count: usize,
    bytes: u64,
    weight: u64,
}

/// Lists the directories: those near the root first, the weightier before the lighter.
fn directories(blobs: &[Blob]) -> String {
    let mut all: BTreeMap<&str, Directory<'_>> = BTreeMap::new();
    for blob in blobs {
        let (home, name) = blob.path.rsplit_once('/').unwrap_or(("", &blob.path));
        all.entry(home).or_default().files.push((name, blob.bytes));
        let factor = if Language::of(&blob.path).is_some() {
            4
        } else {
            1
        };
        for directory in with_parents(home) {
            let directory = all.entry(directory).or_default();
            directory.count += 1;
            directory.bytes += blob.bytes;
            directory.weight += blob.bytes.min(HEAVY_BYTES) * factor;
        }
    }
    let depth = |path: &str| {
        if path.is_empty() {
            0
        } else {
            path.matches('/').count() + 1
        }
    };
    let mut order: Vec<(&str, Directory<'_>)> = all.into_iter().collect();
    order.sort_by_key(|(path, directory)| (depth(path), Reverse(directory.weight), *path));
    let mut text = String::new();
    let mut told = 0;
    for (path, directory) in &order {
        if text.len() + LEAST_LINE > TREE_BYTES {
            break;
        }
        let line = line(path, directory);
        // One of many long names hides none behind it.
        if text.len() + line.len() <= TREE_BYTES {
            text.push_str(&line);
            told += 1;
        }
    }
    let left_out = order.len() - told;
    if left_out > 0 {
        let left_out = counted_as(left_out, "more directory", "more directories");
        // Writing to a string cannot fail.
        _ = writeln!(text, "[{left_out}]");
    }
    text
}

/// Returns a directory and those above it; the root is the empty path.
fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match *path {
        "" => None,
        path => Some(path.rsplit_once('/').map_or("", |(parent, _)| parent)),
    })
}

fn line(path: &str, directory: &Directory<'_>) -> String {
    let mut files = directory.files.clone();
    files.sort_by_key(|(name, bytes)| (Reverse(*bytes), *name));
    let mut named: Vec<String> = files
        .iter()
        .take(NAMED)
        .map(|(name, bytes)| format!("{} {}", short(name), size(*bytes)))
        .collect();
    if files.len() > NAMED {
        named.push(format!("{} more", files.len() - NAMED));
    }
    let below = format!("{}, {}", files_of(directory.count), size(directory.bytes));
    if named.is_empty() {
        format!("{}/ ({below})\n", short(path))
    } else {
        format!("{}/ ({below}): {}\n", short(path), named.join(", "))
    }
}

fn outlined(path: &str, symbols: &[Symbol], share: usize) -> String {
    let heading = format!("\n{}\n", short(path));
    let room = share.saturating_sub(heading.len());
    heading + &render_within(symbols, room, OUTLINED_DEPTH)
}

/// A name may be as long as a file system lets it.
fn short(name: &str) -> Cow<'_, str> {
    clip::letters(name, 120)
}

fn files_of(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KB", bytes / 1_024),
        _ => format!("{} MB", bytes / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(path: &str, bytes: u64) -> Blob {
        Blob {
            path: path.to_owned(),
            id: path.to_owned(),
            bytes,
        }
    }

    #[test]
    fn directories_come_by_depth_and_weight_and_not_by_the_alphabet() {
        let blobs = [
            blob("README.md", 2_000),
            blob("assets/a.bin", 5_000_000),
            blob("docs/guide.md", 3_000),
            blob("zoo/deep/inner.rs", 10),
            blob("zoo/main.rs", 60_000),
        ];
        let text = render(&blobs, &[]);
        let expected = "5 files, 4 MB: 2 .md, 2 .rs, 1 .bin.\n\
            / (5 files, 4 MB): README.md 1 KB\n\
            zoo/ (2 files, 58 KB): main.rs 58 KB\n\
            assets/ (1 file, 4 MB): a.bin 4 MB\n\
            docs/ (1 file, 2 KB): guide.md 2 KB\n\
            zoo/deep/ (1 file, 10 B): inner.rs 10 B\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_directory_that_is_too_long_to_be_listed_hides_none_behind_it() {
        let wide = (0..NAMED).map(|number| {
            let name = "\u{1f980}".repeat(120);
            blob(&format!("wide/{number}{name}"), 50_000)
        });
        let blobs: Vec<Blob> = wide.chain([blob("small/a.txt", 10)]).collect();
        let text = render(&blobs, &[]);
        assert!(
            text.ends_with("small/ (1 file, 10 B): a.txt 10 B\n[1 more directory]\n"),
            "{text}"
        );
    }

    #[test]
    fn main_files_are_code_of_this_repository() {
        let blobs = [
            blob("src/lib.rs", 9_000),
            blob("src/deep/er/a.rs", 9_000),
            blob("tests/all.rs", 90_000),
            blob("vendor/x/y.py", 90_000),
            blob("web/app.min.js", 90_000),
            blob("huge.py", LONGEST_BYTES + 1),
            blob("notes.md", 90_000),
        ];
        let paths: Vec<&str> = main_files(&blobs)
            .iter()
            .map(|blob| blob.path.as_str())
            .collect();
        assert_eq!(paths, ["src/lib.rs", "src/deep/er/a.rs"]);
    }

    #[test]
    fn fifty_thousand_files_fit_on_a_few_pages() {
        let blobs: Vec<Blob> = (0..50_000)
            .map(|number| {
                blob(
                    &format!("d{}/e{}/f{number}.py", number % 90, number % 700),
                    4_000,
                )
            })
            .collect();
        let symbols: Vec<Symbol> = (1..200)
            .map(|line| Symbol {
                depth: 0,
                lines: line..=line,
                signature: "def f(".repeat(20),
            })
            .collect();
        let files = main_files(&blobs);
        let outlines: Vec<(&str, &[Symbol])> = files
            .iter()
            .map(|blob| (blob.path.as_str(), symbols.as_slice()))
            .collect();
        assert_eq!(outlines.len(), OUTLINED);
        let text = render(&blobs, &outlines);
        assert!(text.len() < 22 * 1024, "{}", text.len());
        assert!(
            text.contains("more directories]") && text.contains("[179 more]"),
            "{text}"
        );
        assert!(text.starts_with("50000 files, 190 MB: 50000 .py.\n/ (50000 files, 190 MB)\nd"));
    }
}
