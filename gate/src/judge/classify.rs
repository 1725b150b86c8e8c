//! Classifies the output of a failed check, so that the right remedy follows.

use ropewalk_schemas::attempt::{FailureClass, TestCounts};
use ropewalk_workspace::sandbox::fails_anywhere;

use crate::counts;

/// What each class shows in the output of the common tools; the first row that fits wins.
const SIGNS: &[(FailureClass, &[&str])] = &[
    (
        FailureClass::Resource,
        &[
            "No space left on device",
            "Cannot allocate memory",
            "Resource temporarily unavailable",
        ],
    ),
    (
        FailureClass::Network,
        &[
            "Could not resolve host",
            "ropewalk: no answer from the outside",
            "Temporary failure in name resolution",
            "getaddrinfo EAI_AGAIN",
            "failed to download from",
            "network is unreachable",
            "Network is unreachable",
        ],
    ),
    (
        FailureClass::MissingDependency,
        &[
            "no matching package named",
            "can't find crate for",
            ": No module named ",
            "no required module provides package",
            "ERR_MODULE_NOT_FOUND",
        ],
    ),
    (
        FailureClass::SyntaxError,
        &[
            "error[E",
            "error: could not compile",
            "SyntaxError",
            "error TS",
            "IndentationError",
            "syntax error",
            "ParseError",
            "Parse error",
        ],
    ),
];

/// Classifies the output of a command that ran and did not hold, by the tests that were counted in it too.
pub(super) fn output(output: &str, tests: Option<&TestCounts>) -> FailureClass {
    if missing_node_package(output) {
        return FailureClass::MissingDependency;
    }
    // A test that met no network on its way to another failure is not mended by waiting.
    let is_open = |class: FailureClass| class != FailureClass::Network || !fails_anywhere(output);
    SIGNS
        .iter()
        .filter(|(class, _)| is_open(*class))
        .find(|(_, signs)| signs.iter().any(|sign| output.contains(sign)))
        .map_or_else(|| by_tests(output, tests), |(class, _)| *class)
}

/// Go says in many ways why it compiled nothing of a package, and in one that it did not. A test that ran and failed beside that says more
/// of the work.
fn by_tests(output: &str, tests: Option<&TestCounts>) -> FailureClass {
    let has_failed = tests.is_some_and(|tests| tests.failed > 0);
    if !has_failed && counts::unbuilt_suites(output) > 0 {
        FailureClass::SyntaxError
    } else {
        FailureClass::ValidationFailed
    }
}

/// A relative module that is missing is the agent's own mistake; a package that is missing is not.
fn missing_node_package(output: &str) -> bool {
    output
        .split("Cannot find module ")
        .skip(1)
        .filter_map(|rest| rest.strip_prefix(['\'', '"']))
        .any(|name| !name.starts_with(['.', '/']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_understood() {
        let rows = [
            (
                "error[E0308]: mismatched types\nerror: could not compile `x`",
                FailureClass::SyntaxError,
            ),
            (
                "src/a.ts(1,2): error TS2304: Cannot find name",
                FailureClass::SyntaxError,
            ),
            (
                "  File \"a.py\"\nSyntaxError: invalid syntax",
                FailureClass::SyntaxError,
            ),
            (
                "ModuleNotFoundError: No module named 'requests'",
                FailureClass::MissingDependency,
            ),
            (
                "/usr/bin/python3: No module named pytest",
                FailureClass::MissingDependency,
            ),
            (
                "error: no matching package named `serde` found",
                FailureClass::MissingDependency,
            ),
            (
                "Error: Cannot find module 'express'",
                FailureClass::MissingDependency,
            ),
            (
                "Error: Cannot find module './routes'",
                FailureClass::ValidationFailed,
            ),
            ("write: No space left on device", FailureClass::Resource),
            ("Could not resolve host: example.org", FailureClass::Network),
            (
                "Could not resolve host: example.org\nAssertionError: 1 != 2",
                FailureClass::ValidationFailed,
            ),
            (
                "ropewalk: no answer from the outside: `h`",
                FailureClass::Network,
            ),
            (
                "test result: FAILED. 1 passed; 1 failed",
                FailureClass::ValidationFailed,
            ),
        ];
        for (text, class) in rows {
            assert_eq!(output(text, None), class, "{text}");
        }
    }

    #[test]
    fn a_package_of_go_that_did_not_compile_says_less_than_a_test_that_failed() {
        let undefined = "# more\n./a.go:3:9: undefined: two\n";
        let rows = [
            (
                format!("{undefined}FAIL\tmore [build failed]\nFAIL"),
                FailureClass::SyntaxError,
            ),
            (
                format!("{undefined}ok  \thabits\t0.002s\nFAIL\tmore [build failed]\nFAIL"),
                FailureClass::SyntaxError,
            ),
            (
                "FAIL\tmore [setup failed]\nFAIL".to_owned(),
                FailureClass::SyntaxError,
            ),
            (
                format!("{undefined}--- FAIL: TestAdds (0.00s)\nFAIL\nFAIL\thabits\t0.002s\nFAIL\tmore [build failed]\nFAIL"),
                FailureClass::ValidationFailed,
            ),
            // A test wrote it.
            (
                "--- FAIL: TestTells (0.00s)\n    a_test.go:5: want [build failed]\nFAIL\nFAIL\thabits\t0.002s".to_owned(),
                FailureClass::ValidationFailed,
            ),
            (
                "a.go:2: no required module provides package `x`\nFAIL\tmore [setup failed]\nFAIL".to_owned(),
                FailureClass::MissingDependency,
            ),
        ];
        for (text, class) in rows {
            let tests = counts::count(&text, None);
            assert_eq!(output(&text, tests.as_ref()), class, "{text}");
        }
    }
}
