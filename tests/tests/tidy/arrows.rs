//! Which crate may import which: the table of the design, word for word.

use crate::manifest::{Kind, Manifest};

/// What every crate from `store` down may import.
const FLOOR: &[&str] = &["schemas", "runtime", "config"];

/// A crate's imports: the floor or not, and what comes on top.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    ("schemas", &[], &[]),
    ("runtime", &[], &[]),
    ("config", &[], &["schemas"]),
    ("store", FLOOR, &[]),
    ("bus", FLOOR, &["store"]),
    ("coordination", FLOOR, &["store"]),
    ("llm", FLOOR, &[]),
    ("workspace", FLOOR, &[]),
    ("knowledge", FLOOR, &["store", "llm"]),
    ("engine", FLOOR, &["store", "llm", "workspace", "knowledge"]),
    ("orchestrator", FLOOR, &["store", "bus"]),
    ("gate", FLOOR, &["workspace"]),
    (
        "desk",
        FLOOR,
        &[
            "store",
            "bus",
            "coordination",
            "workspace",
            "knowledge",
            "orchestrator",
        ],
    ),
    ("builder", FLOOR, AGENT),
    ("agents", FLOOR, AGENT),
    ("server", FLOOR, SURFACE),
    ("telegram", FLOOR, SURFACE),
    (WORLD, FLOOR, &["store", "bus", "llm", "orchestrator"]),
];

/// What agents stand on.
const AGENT: &[&str] = &[
    "store",
    "bus",
    "coordination",
    "workspace",
    "gate",
    "knowledge",
    "engine",
    "orchestrator",
    "desk",
];

/// What people see stands on.
const SURFACE: &[&str] = &["store", "bus", "orchestrator", "desk"];

/// Agents meet as events; the tests of one may run it beside the others.
const MET_IN_TESTS: (&str, &str) = ("builder", "agents");

/// The harness: everybody's tests may use it, so it may import next to nothing itself.
const HARNESS: &str = "tests";
const HARNESS_IMPORTS: &[&str] = &["schemas", "runtime"];

/// The worlds that tests of the frame live in: what stands on it may use them in tests, and so may itself.
const WORLD: &str = "world";

/// Benchmarks start the servers that they measure.
const MEASURER: &str = "benches";

/// These see the whole workspace.
const ROOFS: &[&str] = &["cli", "benches"];

/// The arrows of a manifest that the design does not have.
pub(crate) fn violations(directory: &str, manifest: &Manifest) -> Vec<String> {
    if !is_known(directory) {
        return vec![format!(
            "`{directory}` is not in the table of arrows: add it to the design and to the tidy test"
        )];
    }
    manifest
        .dependencies
        .iter()
        .filter_map(|dependency| Some((directory_of(&dependency.name)?, dependency.kind)))
        .filter(|(imported, kind)| !is_allowed(directory, imported, *kind))
        .map(|(imported, _)| format!("`{directory}` must not import `{imported}`"))
        .collect()
}

fn is_known(directory: &str) -> bool {
    directory == HARNESS
        || ROOFS.contains(&directory)
        || ARROWS.iter().any(|(name, ..)| *name == directory)
}

/// The directory of a package of this workspace.
fn directory_of(package: &str) -> Option<&str> {
    match package {
        "ropewalk" => Some("cli"),
        _ => package.strip_prefix("ropewalk-"),
    }
}

fn is_allowed(directory: &str, imported: &str, kind: Kind) -> bool {
    let in_tests = kind == Kind::Development;
    if directory == HARNESS {
        return in_tests || HARNESS_IMPORTS.contains(&imported);
    }
    if imported == HARNESS {
        return in_tests || [MEASURER, WORLD].contains(&directory);
    }
    if imported == WORLD {
        return in_tests || directory == MEASURER;
    }
    if in_tests && (directory, imported) == MET_IN_TESTS {
        return true;
    }
    ROOFS.contains(&directory)
        || ARROWS.iter().any(|(name, floor, above)| {
            *name == directory && (floor.contains(&imported) || above.contains(&imported))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_down_is_found() {
        let cases = [
            ("bus", "dependencies", "ropewalk-store", true),
            ("store", "dependencies", "ropewalk-bus", false),
            ("store", "dev-dependencies", "ropewalk-bus", false),
            ("runtime", "dependencies", "ropewalk-schemas", false),
            ("config", "dependencies", "ropewalk-runtime", false),
            ("agents", "dependencies", "ropewalk-llm", false),
            ("orchestrator", "dependencies", "ropewalk-agents", false),
            ("cli", "dependencies", "ropewalk-agents", true),
            ("desk", "dependencies", "ropewalk-agents", false),
            ("desk", "dependencies", "ropewalk-builder", false),
            ("agents", "dependencies", "ropewalk-desk", true),
            ("agents", "dependencies", "ropewalk-builder", false),
            ("agents", "dev-dependencies", "ropewalk-builder", false),
            ("builder", "dependencies", "ropewalk-agents", false),
            ("builder", "dev-dependencies", "ropewalk-agents", true),
            ("gate", "dependencies", "ropewalk-store", false),
            ("llm", "dependencies", "serde", true),
            ("bus", "dev-dependencies", "ropewalk-tests", true),
            ("bus", "dependencies", "ropewalk-tests", false),
            ("cli", "dependencies", "ropewalk-tests", false),
            ("benches", "dependencies", "ropewalk-tests", true),
            ("benches", "dependencies", "ropewalk-orchestrator", true),
            ("tests", "dependencies", "ropewalk-bus", false),
            ("tests", "dev-dependencies", "ropewalk-bus", true),
            ("world", "dependencies", "ropewalk-bus", true),
            ("world", "dependencies", "ropewalk-agents", false),
            ("orchestrator", "dev-dependencies", "ropewalk-world", true),
            ("orchestrator", "dependencies", "ropewalk-world", false),
            ("utils", "dependencies", "serde", false),
        ];
        for (directory, table, package, expected) in cases {
            let text = format!("[{table}]\n{package}.workspace = true\n");
            let found = violations(directory, &Manifest::parse(&text).unwrap());
            assert_eq!(
                found.is_empty(),
                expected,
                "{directory} → {package}: {found:?}"
            );
        }
    }
}
