//! Finds what the tests of a task stand on: their helpers lie beside them or above, under names that they have everywhere.

use std::collections::BTreeSet;

use ropewalk_engine::outline::{Language, outline};
use ropewalk_gate::protected::is_test;
use ropewalk_schemas::{RepoPath, clip, repo_path};
use serde::Serialize;

use super::super::work::Work;
use crate::error::BuilderError;

/// The names of helpers, without their endings.
const STEMS: [&str; 20] = [
    "common",
    "conftest",
    "factories",
    "fixtures",
    "harness",
    "helper",
    "helpers",
    "setup",
    "support",
    "test-utils",
    "test_helper",
    "test_helpers",
    "test_support",
    "test_util",
    "test_utils",
    "testing",
    "testutil",
    "testutils",
    "util",
    "utils",
];
/// The names of classes of Java that are helpers.
const CLASSES: [&str; 5] = [
    "TestBase",
    "TestHelper",
    "TestSupport",
    "TestUtil",
    "TestUtils",
];
/// So many places are looked at: each is a line of one call.
const PLACES: usize = 600;
/// So many helpers are told.
const HELPERS: usize = 6;
/// So much is told of what one of them defines, in characters.
const SIGNATURES: usize = 800;

/// A file that tests beside those of a task stand on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::attempt) struct TestHelper {
    path: String,
    lines: usize,
    /// What it defines, in one line.
    signatures: String,
}

/// Finds the helpers beside the tests that a task changes or reads first, at its base.
pub(super) async fn find(work: &Work<'_>) -> Result<Vec<TestHelper>, BuilderError> {
    let block = &work.claim.task.block;
    let files: Vec<&RepoPath> = block.files().chain(&block.read_first).collect();
    let places = places(&files);
    let paths: Vec<&str> = places.iter().map(String::as_str).collect();
    let contents = work.shared.clone.read_files(&work.base(), &paths).await?;
    let places: Vec<(String, Option<Vec<u8>>)> = places.into_iter().zip(contents).collect();
    // Parsing takes a while and must not hold up everybody else; nothing is told where that breaks.
    let found = tokio::task::spawn_blocking(move || told(&places));
    Ok(found.await.unwrap_or_default())
}

/// Lists where helpers of the tests among `files` may lie, those first that are nearest to one of them; none of `files` itself.
fn places(files: &[&RepoPath]) -> Vec<String> {
    let mut places = Vec::new();
    let is_code = |file: &&&RepoPath| {
        let path = file.as_str();
        is_test(path) && Language::of(path).is_some()
    };
    for file in files.iter().filter(is_code) {
        for (distance, directory) in file.directories().enumerate() {
            for name in names_for(file.as_str()) {
                let place = repo_path::below(directory, &name);
                if supports_tests(&place, &name) {
                    places.push((distance, place));
                }
            }
        }
    }
    places.sort_by_key(|(distance, _)| *distance);
    let mut known: BTreeSet<String> = files.iter().map(|file| file.as_str().to_owned()).collect();
    let places = places.into_iter().map(|(_, place)| place);
    let places = places.filter(|place| known.insert(place.clone()));
    places.take(PLACES).collect()
}

/// Lists the names that a helper of a test has, in the language of that.
fn names_for(test: &str) -> Vec<String> {
    let Some((_, ending)) = test.rsplit_once('.') else {
        return Vec::new();
    };
    let own = format!(".{ending}");
    let more = match ending {
        "java" => return Vec::from(CLASSES.map(|class| format!("{class}{own}"))),
        "rs" => "/mod.rs",
        "py" => "/__init__.py",
        "go" => "_test.go",
        "tsx" => ".ts",
        "c" | "cc" | "cpp" | "cxx" => ".h",
        _ => "",
    };
    let tails = [own.as_str(), more].into_iter();
    let tails = tails.filter(|tail| !tail.is_empty());
    tails
        .flat_map(|tail| STEMS.map(|stem| format!("{stem}{tail}")))
        .collect()
}

/// Says whether what lies there is of tests: a common name is one of the product outside of their directories.
fn supports_tests(place: &str, name: &str) -> bool {
    is_test(place) || name.starts_with("test") || name == "conftest.py"
}

/// Tells of the helpers that are there; a file in which nothing is defined helps nobody.
fn told(places: &[(String, Option<Vec<u8>>)]) -> Vec<TestHelper> {
    let found = places.iter().filter_map(|(path, content)| {
        let source = String::from_utf8_lossy(content.as_deref()?);
        let signatures = signatures(path, &source)?;
        Some(TestHelper {
            path: path.clone(),
            lines: source.lines().count(),
            signatures,
        })
    });
    found.take(HELPERS).collect()
}

/// Returns what a file defines, with what lies right inside of that where there is room.
fn signatures(path: &str, source: &str) -> Option<String> {
    let symbols = outline(Language::of(path)?, source).ok()?;
    let down_to = |depth: usize| {
        let symbols = symbols.iter().filter(move |symbol| symbol.depth <= depth);
        let each: Vec<&str> = symbols.map(|symbol| symbol.signature.as_str()).collect();
        each.join("; ")
    };
    let whole = down_to(1);
    let told = if whole.chars().count() <= SIGNATURES {
        whole
    } else {
        clip::letters(&down_to(0), SIGNATURES).into_owned()
    };
    (!told.is_empty()).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(files: &[&str]) -> Vec<String> {
        let files = files.iter().map(|file| RepoPath::parse(file).unwrap());
        let files: Vec<RepoPath> = files.collect();
        super::places(&files.iter().collect::<Vec<&RepoPath>>())
    }

    #[test]
    fn helpers_lie_beside_tests_and_above_them_and_are_none_of_the_product() {
        let rows: [(&[&str], &[&str], &[&str]); 6] = [
            (
                &["src/a.rs", "tests/walks/a.rs"],
                &[
                    "tests/walks/common.rs",
                    "tests/common/mod.rs",
                    "tests/test_utils.rs",
                ],
                &["src/common.rs", "common/mod.rs"],
            ),
            (
                &["pets/tests/test_a.py"],
                &[
                    "conftest.py",
                    "pets/conftest.py",
                    "pets/tests/helpers.py",
                    "pets/tests/support/__init__.py",
                    "test_utils.py",
                ],
                &["pets/helpers.py", "utils.py"],
            ),
            (
                &["walk/walk_test.go"],
                &["walk/helpers_test.go", "walk/testutil.go"],
                &["walk/util.go"],
            ),
            (
                &["src/A.test.tsx"],
                &["src/test-utils.tsx", "src/test-utils.ts"],
                &["src/utils.ts"],
            ),
            (
                &["src/test/java/a/WalkTest.java"],
                &["src/test/java/a/TestUtils.java"],
                &["src/test/java/a/utils.java"],
            ),
            (&["tests/a.c"], &["tests/helpers.h"], &["helpers.h"]),
        ];
        for (files, there, elsewhere) in rows {
            let places = places(files);
            let has = |path: &&&str| places.iter().any(|place| place == **path);
            let missing: Vec<&&str> = there.iter().filter(|path| !has(path)).collect();
            assert!(missing.is_empty(), "{missing:?} in {places:?}");
            let astray: Vec<&&str> = elsewhere.iter().filter(has).collect();
            assert!(astray.is_empty(), "{astray:?} in {places:?}");
        }
        for none in ["src/a.rs", "docs/tests.md", "tests/README", "a.py"] {
            assert_eq!(places(&[none]), [""; 0], "{none}");
        }
        let own = places(&["tests/a.rs", "tests/common/mod.rs"]);
        assert!(!own.contains(&"tests/common/mod.rs".to_owned()), "{own:?}");
        let nearest = places(&["tests/walks/a.rs"]);
        assert_eq!(nearest[0], "tests/walks/common.rs");
        // What is beside the last file goes before what is far above the first one.
        let mut files: Vec<String> = (0..10)
            .map(|number| format!("tests/a/b/c/d/e/f/g/{number}/a.rs"))
            .collect();
        files.push("tests/walks/a.rs".to_owned());
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let found = places(&files);
        assert_eq!(found.len(), PLACES);
        assert!(
            found.contains(&"tests/walks/common.rs".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn a_helper_is_told_in_one_line_of_bounded_length() {
        let file = |path: &str, source: String| (path.to_owned(), Some(source.into_bytes()));
        let small = "pub struct World;\nimpl World {\n    pub fn new(\n        name: &str,\n    ) -> Self {\n        Self\n    }\n}\n";
        let large = "mod a {\n    pub fn inner() {}\n}\n".repeat(60);
        let found = told(&[
            file("tests/common/mod.rs", small.to_owned()),
            ("tests/util.rs".to_owned(), None),
            file("tests/utils.rs", "// Nothing.\n".to_owned()),
            file("tests/support.rs", large),
        ]);
        let told: Vec<(&str, usize)> = found
            .iter()
            .map(|helper| (helper.path.as_str(), helper.lines))
            .collect();
        assert_eq!(
            told,
            [("tests/common/mod.rs", 8), ("tests/support.rs", 180)]
        );
        assert_eq!(
            found[0].signatures,
            "pub struct World; impl World; pub fn new( name: &str, ) -> Self"
        );
        let large = &found[1].signatures;
        assert!(large.starts_with("mod a; mod a; "), "{large}");
        assert!(large.chars().count() <= SIGNATURES && !large.contains('\n'));
        let many: Vec<(String, Option<Vec<u8>>)> = (0..=HELPERS)
            .map(|number| file(&format!("tests/{number}.rs"), "fn a() {}\n".to_owned()))
            .collect();
        assert_eq!(super::told(&many).len(), HELPERS);
    }
}
