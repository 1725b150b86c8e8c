//! Classifies the output of a failed check, so that the right remedy follows.

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_workspace::sandbox::fails_anywhere;

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
            "[build failed]",
        ],
    ),
];

/// Classifies the output of a command that ran and did not hold.
pub(super) fn output(output: &str) -> FailureClass {
    if missing_node_package(output) {
        return FailureClass::MissingDependency;
    }
    // A test that met no network on its way to another failure is not mended by waiting.
    let is_open = |class: FailureClass| class != FailureClass::Network || !fails_anywhere(output);
    SIGNS
        .iter()
        .filter(|(class, _)| is_open(*class))
        .find(|(_, signs)| signs.iter().any(|sign| output.contains(sign)))
        .map_or(FailureClass::ValidationFailed, |(class, _)| *class)
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
            assert_eq!(output(text), class, "{text}");
        }
    }
}
