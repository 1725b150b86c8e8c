//! Finds changes of the files by which git writes other files: an unchanged test, or a script of the gate, may be another one in
//! the checkout where the checks run.
//!
//! The user's own tests see what the attributes of the repository make of it, so that the checkouts of a gate go by them, too; who
//! changes them asks.

use super::{Change, name_of};

/// What such a file is called, in any directory.
const NAME: &str = ".gitattributes";
/// What stands between the words of a line.
const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// Says why a change of attributes is a person's to accept; none where the file is another one, or says the same to git.
pub(super) fn why(change: &Change<'_>) -> Option<String> {
    let path = change.path;
    // Where a file system knows no capital letters, git finds it by any of them.
    if !name_of(path).eq_ignore_ascii_case(NAME) {
        return None;
    }
    let telling = |text: Option<&str>| -> Vec<String> {
        let lines = text.unwrap_or_default().lines();
        let lines = lines.filter(|line| !is_of_no_matter(line));
        lines.map(str::to_owned).collect()
    };
    (telling(change.before) != telling(change.after)).then(|| {
        format!("`{path}` says how git writes, compares and merges files, those of the checks among them")
    })
}

/// Says whether a line says nothing about the content of files, their difference or their merge.
fn is_of_no_matter(line: &str) -> bool {
    let line = line.trim_start_matches(BLANKS);
    if line.is_empty() || line.starts_with('#') {
        return true;
    }
    // A name with blanks in it, or a word that stands for others.
    if line.starts_with(['"', '[']) {
        return false;
    }
    let words = line.split(BLANKS).filter(|word| !word.is_empty());
    words.skip(1).all(|word| {
        let name = word.trim_start_matches(['-', '!']);
        let name = name.split('=').next().unwrap_or(name);
        // These are for hosts and for archives.
        name.starts_with("linguist-") || matches!(name, "export-ignore" | "export-subst")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_makes_of_files_is_told_from_what_hosts_and_archives_make_of_them() {
        let rows = [
            ("", "a.py working-tree-encoding=CN//TRANSLIT\n", true),
            ("", "check.sh eol=crlf", true),
            ("", "\t* text\n", true),
            ("", "CHANGELOG.md merge=union\n", true),
            ("", "app.py linguist-generated -diff\n", true),
            ("", "app.py binary\n", true),
            ("", "[attr]linguist-x text\n", true),
            ("", "\"a b\" linguist-x\n", true),
            ("* text=auto\n", "", true),
            ("*.a eol=lf\n*.b -text\n", "*.b -text\n*.a eol=lf\n", true),
            (
                "",
                "# text\n\n*.js linguist-vendored=true\t-linguist-x\r\n",
                false,
            ),
            ("* text\n", "docs export-ignore\n* text\n", false),
            ("", "*.js\n", false),
        ];
        for (before, after, expected) in rows {
            for path in [
                NAME,
                "a/b/.gitattributes",
                "tests/.GitAttributes",
                "gitattributes",
            ] {
                let before = (!before.is_empty()).then_some(before);
                let after = (!after.is_empty()).then_some(after);
                let found = why(&Change {
                    path,
                    before,
                    after,
                });
                let expected = expected && path != "gitattributes";
                assert_eq!(found.is_some(), expected, "{path} {after:?}");
            }
        }
    }
}
