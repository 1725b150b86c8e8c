//! Tells work from what only looks like it: a file with nothing in it, a change of white space.

/// Files that say something by being there.
const MARKERS: &[&str] = &[
    "__init__.py",
    "py.typed",
    ".gitkeep",
    ".keep",
    ".nojekyll",
    "conftest.py",
    ".npmignore",
];
/// Languages in which the white space at the beginning of a line means something.
const INDENTED: &[&str] = &[
    "py", "yaml", "yml", "mk", "haml", "pug", "sass", "coffee", "nim", "hs", "md", "rst", "txt",
    "just",
];

/// Says whether a new file holds nothing that was worth making it.
pub fn is_empty(path: &str, content: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    content.trim().is_empty() && !MARKERS.contains(&name)
}

/// Says whether two texts differ in nothing that means anything.
pub fn differs_in_blanks(path: &str, before: &str, after: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let indented = extension.is_none_or(|extension| INDENTED.contains(&extension));
    let plain = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty());
        if indented {
            lines.map(str::to_owned).collect()
        } else {
            lines
                .flat_map(str::split_whitespace)
                .map(str::to_owned)
                .collect()
        }
    };
    plain(before) == plain(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_nothing_in_it_is_no_work_unless_its_being_there_says_something() {
        assert!(is_empty("src/a.py", "") && is_empty("a.rs", " \n\t\n"));
        assert!(!is_empty("a/__init__.py", "") && !is_empty("a.py", "x"));
    }

    #[test]
    fn white_space_counts_where_it_means_something() {
        let rows = [
            ("a.rs", "fn a() {\n}\n", "fn a() {\n\n  }\n\n", true),
            ("a.rs", "fn a() {}", "fn b() {}", false),
            ("a.py", "if a:\n  b\n", "if a:\n    b\n", false),
            ("a.py", "if a:\n  b\n", "if a:  \n\n  b\n", true),
            ("Makefile", "a:\n\tb", "a:\n  b", false),
        ];
        for (path, before, after, expected) in rows {
            assert_eq!(
                differs_in_blanks(path, before, after),
                expected,
                "{before:?} {after:?}"
            );
        }
    }
}
