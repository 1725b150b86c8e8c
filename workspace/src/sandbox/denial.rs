//! Reads out of what a confined command wrote that it met its bounds, and at what.

use std::fmt;
use std::path::{Path, PathBuf};

use super::egress::Refusal;
use super::stage::VOICE;

/// What tools say of a name that nobody resolves, before the name.
const UNRESOLVED: [&str; 6] = [
    "Could not resolve host: ",
    "Could not resolve hostname ",
    "unable to resolve host address ",
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    "connect ENETUNREACH ",
];
/// What they say without one.
const UNREACHED: [&str; 4] = [
    "failed to lookup address information",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "network is unreachable",
];
const READ_ONLY: [&str; 2] = ["Read-only file system", "read-only file system"];
const ABSENT: &str = "No such file or directory";
/// What compilers and tests say of code that is wrong wherever it runs.
const OWN: [&str; 15] = [
    "AssertionError",
    "assertion failed",
    "assertion `",
    "Assertion failed",
    "Assertion `",
    "expect(received)",
    "Expected:",
    "E   assert",
    "error[E",
    "error TS",
    "could not compile",
    "SyntaxError",
    "IndentationError",
    "NameError",
    "ReferenceError",
];

/// What a sandbox kept from a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// This host, as far as it is named: there is no network but by the proxy to those that are listed.
    Host(Option<String>),
    /// A host that was asked for by the proxy.
    Refused(Refusal),
    /// A change of this path, as far as it is named.
    Write(Option<String>),
    /// This path, which is not there for it.
    Hidden(String),
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(Some(host)) => {
                write!(
                    formatter,
                    "the sandbox has no network but to `sandbox.hosts`, by a proxy: it did not reach `{host}`"
                )
            }
            Self::Host(None) => {
                formatter.write_str("the sandbox has no network but to `sandbox.hosts`, by a proxy")
            }
            Self::Refused(refusal) => refusal.fmt(formatter),
            Self::Write(Some(path)) => write!(formatter, "the sandbox lets it not change `{path}`"),
            Self::Write(None) => {
                formatter.write_str("the sandbox lets it change its checkout alone")
            }
            Self::Hidden(path) => write!(formatter, "the sandbox does not show it `{path}`"),
        }
    }
}

/// Finds what a command was kept from in what it wrote, the later the better; what lies below `hidden` is not there for
/// it, what lies below `writable` it could change.
pub(crate) fn find(output: &str, hidden: &[PathBuf], writable: &[PathBuf]) -> Option<Denial> {
    // What this program says of hosts is known without being read.
    let mut lines = output.lines().rev().filter(|line| !line.starts_with(VOICE));
    lines.find_map(|line| {
        host(line)
            .or_else(|| write(line, writable))
            .or_else(|| absent(line, hidden))
    })
}

/// Says that `output` tells a failure of the code itself, which fails wherever it runs.
///
/// Programs go on after many a thing that they were not given, and the words of a denial may be those of a test.
pub fn fails_anywhere(output: &str) -> bool {
    OWN.iter().any(|sign| output.contains(sign))
}

fn host(line: &str) -> Option<Denial> {
    let named = UNRESOLVED.iter().find_map(|sign| line.split_once(sign));
    if let Some((_, rest)) = named {
        let name = rest.split([' ', ':', ',', ';']).next().unwrap_or_default();
        let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        return Some(Denial::Host((!name.is_empty()).then(|| name.to_owned())));
    }
    let is_one = UNREACHED.iter().any(|sign| line.contains(sign));
    is_one.then_some(Denial::Host(None))
}

fn write(line: &str, writable: &[PathBuf]) -> Option<Denial> {
    let sign = READ_ONLY.iter().find(|sign| line.contains(*sign))?;
    let path = path_in(line, sign);
    let could = |path: &String| {
        writable
            .iter()
            .any(|place| Path::new(path).starts_with(place))
    };
    (!path.as_ref().is_some_and(could)).then_some(Denial::Write(path))
}

fn absent(line: &str, hidden: &[PathBuf]) -> Option<Denial> {
    let path = line.contains(ABSENT).then(|| path_in(line, ABSENT))??;
    let is_hidden = hidden
        .iter()
        .any(|place| PathBuf::from(&path).starts_with(place));
    is_hidden.then_some(Denial::Hidden(path))
}

/// Finds the path that a line is about: the one in quotes, else the last word before what it says.
fn path_in(line: &str, sign: &str) -> Option<String> {
    let is_path = |text: &&str| text.contains(['/', '.']) && !text.contains(' ');
    let quoted = line
        .split(['\'', '"', '`', '‘', '’'])
        .skip(1)
        .step_by(2)
        .find(is_path);
    let (before, _) = line.split_once(sign)?;
    let last = || before.trim_end().trim_end_matches(':').rsplit(' ').next();
    let path = quoted.or_else(|| last().filter(is_path))?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_say_names_host_or_path() {
        let (host, path) = (
            |name: &str| Some(Denial::Host(Some(name.to_owned()))),
            |name: &str| Some(Denial::Write(Some(name.to_owned()))),
        );
        let hidden = [PathBuf::from("/home/ada"), PathBuf::from("/state")];
        let rows = [
            (
                "curl: (6) Could not resolve host: example.org",
                host("example.org"),
            ),
            (
                "Error: getaddrinfo EAI_AGAIN registry.example.org",
                host("registry.example.org"),
            ),
            (
                "wget: unable to resolve host address ‘h.example’",
                host("h.example"),
            ),
            (
                "bash: connect: Network is unreachable",
                Some(Denial::Host(None)),
            ),
            (
                "sh: 1: cannot create ../escaped: Read-only file system",
                path("../escaped"),
            ),
            (
                "touch: cannot touch '/x': Read-only file system",
                path("/x"),
            ),
            (
                "OSError: [Errno 30] Read-only file system: '/etc/x'",
                path("/etc/x"),
            ),
            ("Error: EROFS: read-only file system, open '/x'", path("/x")),
            (
                "Read-only file system (os error 30)",
                Some(Denial::Write(None)),
            ),
            (
                "cat: /home/ada/.ssh/id: No such file or directory",
                Some(Denial::Hidden("/home/ada/.ssh/id".to_owned())),
            ),
            ("cat: missing: No such file or directory", None),
            ("cat: /usr/none: No such file or directory", None),
            ("test result: FAILED. 1 passed; 1 failed", None),
        ];
        for (line, expected) in rows {
            let output = format!("begun\n{line}\nended");
            assert_eq!(find(&output, &hidden, &[]), expected, "{line}");
        }
        let own = "ropewalk: `h` is not reached: Network is unreachable";
        assert_eq!(find(own, &hidden, &[]), None);
    }

    #[test]
    fn the_last_denial_counts_and_none_of_what_could_be_changed() {
        let tree = [PathBuf::from("/slot/tree")];
        let path = |name: &str| Some(Denial::Write(Some(name.to_owned())));
        let rows = [
            (
                "touch: cannot touch '/slot/tree/x': Read-only file system\n",
                None,
            ),
            (
                "touch: cannot touch '/x': Read-only file system\nmake: *** [all] Error 1\n",
                path("/x"),
            ),
            // The last one is what it did not go on after.
            (
                "touch: cannot touch '/a': Read-only file system\ntouch: cannot touch '/b': Read-only file system\n",
                path("/b"),
            ),
        ];
        for (output, expected) in rows {
            assert_eq!(find(output, &[], &tree), expected, "{output}");
        }
    }

    #[test]
    fn what_fails_for_a_reason_of_its_own_is_told_from_a_denial() {
        for (output, expected) in [
            (
                "warning: Could not resolve host: h\nassertion `left == right` failed\n",
                true,
            ),
            (
                "AssertionError: 1 != 2\nwarning: Network is unreachable\n",
                true,
            ),
            (
                "curl: (6) Could not resolve host: h\na.ts(1,2): error TS2304: Cannot find name\n",
                true,
            ),
            (
                "assertion failed: error.contains(\"Read-only file system\")\n",
                true,
            ),
            (
                "TypeError: fetch failed\n [cause]: Error: getaddrinfo ENOTFOUND h\n",
                false,
            ),
            (
                "called `Result::unwrap()` on an `Err` value: Os { message: \"Read-only file system\" }\n",
                false,
            ),
            (
                "curl: (6) Could not resolve host: h\nmake: *** [all] Error 6\n",
                false,
            ),
        ] {
            assert_eq!(fails_anywhere(output), expected, "{output}");
        }
    }
}
