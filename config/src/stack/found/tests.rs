use super::*;

/// A package that has tests.
const NODE: &str = r#"{"scripts": {"test": "vitest run"}}"#;
/// What npm writes for a package that has none.
const UNTESTED: &str = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;

/// A layout, its files with their texts, and what is found there.
type Layout = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const LAYOUTS: &[Layout] = &[
    (
        "src layout",
        &[
            ("pyproject.toml", "[tool.pytest.ini_options]"),
            ("src/a/__init__.py", ""),
            ("tests/test_a.py", ""),
        ],
        &["python: python3 -m pytest -q"],
    ),
    (
        "flat, unittest",
        &[("setup.py", ""), ("a.py", ""), ("test_a.py", "")],
        &["python: python3 -m unittest discover"],
    ),
    (
        "scripts beside each other",
        &[("main.py", ""), ("test_main.py", "")],
        &["python: python3 -m unittest discover"],
    ),
    (
        "a package without a manifest",
        &[
            ("shop/__init__.py", ""),
            ("tests/test_shop.py", "import unittest"),
        ],
        &["python: python3 -m unittest discover -s tests"],
    ),
    (
        "a package whose tests are one",
        &[
            ("shop/__init__.py", ""),
            ("tests/__init__.py", ""),
            ("tests/test_shop.py", "import unittest"),
        ],
        &["python: python3 -m unittest discover"],
    ),
    (
        "a package without a manifest, pytest",
        &[
            ("shop/__init__.py", ""),
            ("tests/test_shop.py", "import pytest\n"),
        ],
        &["python: python3 -m pytest -q"],
    ),
    (
        "JavaScript without a manifest",
        &[
            ("sum.js", ""),
            ("sum.test.js", "const test = require('node:test');"),
        ],
        &["javascript: node --test"],
    ),
    (
        "a page with a test",
        &[
            ("index.html", ""),
            ("test.js", "import test from 'node:test';"),
        ],
        &["static: -", "javascript: node --test"],
    ),
    (
        "what others wrote",
        &[
            ("notes.txt", ""),
            ("vendor/__init__.py", ""),
            ("node_modules/test.js", "node:test"),
        ],
        &[],
    ),
    (
        "a script without a test",
        &[("main.py", ""), ("notes/plan.md", "")],
        &["python: -"],
    ),
    (
        "a script in a Rust crate",
        &[("Cargo.toml", "[package]"), ("bench.py", "")],
        &["rust: cargo test --workspace"],
    ),
    (
        "uv",
        &[
            ("pyproject.toml", "pytest"),
            ("uv.lock", ""),
            ("tests/test_a.py", ""),
        ],
        &["python: uv run --offline --frozen python -m pytest -q"],
    ),
    (
        "npm workspace",
        &[
            ("package.json", NODE),
            ("package-lock.json", ""),
            ("packages/a/package.json", NODE),
        ],
        &["javascript: npm test"],
    ),
    (
        "pnpm",
        &[("package.json", NODE), ("pnpm-lock.yaml", "")],
        &["javascript: pnpm test"],
    ),
    (
        "TypeScript",
        &[
            ("package.json", NODE),
            ("tsconfig.json", ""),
            ("yarn.lock", ""),
        ],
        &["typescript: yarn test"],
    ),
    (
        "a web application in TypeScript",
        &[
            ("package.json", NODE),
            ("tsconfig.json", ""),
            ("server/api.ts", ""),
        ],
        &["web-ts: npm test"],
    ),
    (
        "no test script",
        &[("package.json", UNTESTED)],
        &["javascript: -"],
    ),
    (
        "Go",
        &[("go.mod", ""), ("a_test.go", "")],
        &["go: go test ./..."],
    ),
    (
        "Rust workspace",
        &[
            ("Cargo.toml", ""),
            ("a/Cargo.toml", ""),
            ("b/Cargo.toml", ""),
        ],
        &["rust: cargo test --workspace"],
    ),
    (
        "Java",
        &[("pom.xml", ""), ("src/main/java/A.java", "")],
        &["java: mvn -q -o test"],
    ),
    (
        "Gradle",
        &[("build.gradle.kts", ""), ("gradlew", "")],
        &["java: ./gradlew --offline test"],
    ),
    (
        "C with CMake",
        &[("CMakeLists.txt", "enable_testing()"), ("a.c", "")],
        &[
            "c: cmake -S . -B .check && cmake --build .check && ctest --test-dir .check --output-on-failure",
        ],
    ),
    (
        "C with make",
        &[("Makefile", "all: a\ncheck: a\n\t./a"), ("a.c", "")],
        &["c: make check"],
    ),
    (
        "mixed",
        &[
            ("api/go.mod", ""),
            ("web/package.json", NODE),
            ("web/node_modules/x/package.json", NODE),
            ("docs/index.html", ""),
        ],
        &[
            "go: cd api && go test ./...",
            "static: -",
            "javascript: cd web && npm test",
        ],
    ),
    ("static", &[("index.html", "")], &["static: -"]),
    ("empty", &[], &[]),
    (
        "a name for a shell",
        &[("a b/go.mod", ""), ("$(x)/go.mod", "")],
        &[],
    ),
];

/// Tells what is found in a layout of files with their texts.
fn told(files: &[(&str, &str)]) -> Vec<String> {
    let profiles = StackProfiles::shipped().unwrap();
    let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    let read = profiles.to_read(&paths);
    let texts = files
        .iter()
        .filter(|(path, _)| read.contains(path))
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    profiles
        .find(&paths, &texts)
        .iter()
        .map(|found| {
            let check = found
                .check
                .as_ref()
                .map_or("-", |check| check.command.as_str());
            format!("{}: {check}", found.profile.name)
        })
        .collect()
}

#[test]
fn each_layout_has_its_stacks_and_its_tests() {
    for (layout, files, expected) in LAYOUTS {
        assert_eq!(told(files), *expected, "{layout}");
    }
}
