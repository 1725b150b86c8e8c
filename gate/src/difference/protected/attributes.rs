//! Finds changes of the files by which git writes other files: an unchanged test, or a script of the gate, may be another one in
//! the checkout where the checks run.
//!
//! The user's own tests see what the attributes of the repository make of it, so that the checkouts of a gate go by them, too; who
//! changes them asks.

use std::collections::BTreeSet;

use super::{Change, name_of};

/// What such a file is called, in any directory.
pub(super) const NAME: &str = ".gitattributes";
/// What stands between the words of a line.
const BLANKS: [char; 3] = [' ', '\t', '\r'];
/// Begins a line by which a word stands for several others; only the file at the top has such lines.
const MACRO: &str = "[attr]";
/// Attributes that nobody but hosts and archives reads.
const HARMLESS: [&str; 7] = [
    "linguist-detectable",
    "linguist-documentation",
    "linguist-generated",
    "linguist-language",
    "linguist-vendored",
    "export-ignore",
    "export-subst",
];

/// Lists the words that stand for others, by the content of the file at the top.
pub(super) fn macros(text: &str) -> BTreeSet<String> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    let said = lines.filter_map(|line| line.trim_start_matches(BLANKS).strip_prefix(MACRO));
    let names = said.filter_map(|said| said.split(BLANKS).find(|word| !word.is_empty()));
    names.map(str::to_owned).collect()
}

/// Says why a change of attributes is a person's to accept; none where the file is another one, or says the same to git. A word that
/// stands for others says what these do, whatever it is called.
pub(super) fn why(change: &Change<'_>, is_macro: impl Fn(&str) -> bool) -> Option<String> {
    let path = change.path;
    // Where a file system knows no capital letters, git finds it by any of them.
    if !name_of(path).eq_ignore_ascii_case(NAME) {
        return None;
    }
    let telling = |text: Option<&str>| -> Vec<String> {
        let lines = text.unwrap_or_default().lines();
        let lines = lines.filter(|line| !is_of_no_matter(line, &is_macro));
        lines.map(str::to_owned).collect()
    };
    (telling(change.before) != telling(change.after)).then(|| {
        format!("`{path}` says how git writes, compares and merges files, those of the checks among them")
    })
}

/// Says whether a line says nothing about the content of files, their difference or their merge.
fn is_of_no_matter(line: &str, is_macro: &dyn Fn(&str) -> bool) -> bool {
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
        HARMLESS.contains(&name) && !is_macro(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{task, with_rules};
    use super::*;

    #[test]
    fn the_words_that_stand_for_others_are_those_that_lines_say() {
        let text =
            "\u{feff}[attr]one -text\n*.a two\n# [attr]three x\n  [attr] four\teol=lf\r\n[attr]\n";
        let found: Vec<String> = macros(text).into_iter().collect();
        assert_eq!(found, ["four", "one"]);
    }

    #[test]
    fn a_harmless_word_that_the_file_at_the_top_lets_stand_for_others_is_none() {
        let macros = "[attr]linguist-generated eol=crlf\n";
        for (top, expected) in [(macros, true), ("*.js linguist-vendored\n", false)] {
            let own = task(&["a"], "true");
            let found = with_rules(&[(NAME, top)], "sh check.sh", &own, |rules| {
                rules.why(&Change {
                    path: "tests/.gitattributes",
                    before: None,
                    after: Some("*.py linguist-generated\n"),
                })
            });
            assert_eq!(found.is_some(), expected, "{top}: {found:?}");
        }
    }

    #[test]
    fn what_git_makes_of_files_is_told_from_what_hosts_and_archives_make_of_them() {
        let rows = [
            ("", "a.py working-tree-encoding=CN//TRANSLIT\n", true),
            ("", "check.sh eol=crlf", true),
            ("", "\t* text\n", true),
            ("", "CHANGELOG.md merge=union\n", true),
            ("", "app.py linguist-generated -diff\n", true),
            ("", "app.py binary\n", true),
            ("", "[attr]linguist-generated text\n", true),
            ("", "\"a b\" linguist-generated\n", true),
            // Nobody but the file at the top knows what such a word says.
            ("", "a.py linguist-x\n", true),
            ("", "a.py linguist-vendored\n", true),
            ("", "a.py -linguist-vendored\n", true),
            ("* text=auto\n", "", true),
            ("*.a eol=lf\n*.b -text\n", "*.b -text\n*.a eol=lf\n", true),
            (
                "",
                "# text\n\n*.js linguist-generated=true\t-linguist-detectable\r\n",
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
                let change = Change {
                    path,
                    before,
                    after,
                };
                let found = why(&change, |name| name == "linguist-vendored");
                let expected = expected && path != "gitattributes";
                assert_eq!(found.is_some(), expected, "{path} {after:?}");
            }
        }
    }
}
