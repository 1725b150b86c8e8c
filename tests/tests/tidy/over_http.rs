//! Which tests ask a model over HTTP: those that a target `over_http` runs once more, and those that start a provider's
//! server by themselves.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::forgotten::reached;
use crate::scenarios::{Tests, tests_of};
use crate::workspace::Member;

/// The root of a target that runs tests of its member once more, with HTTP between them and the model that they script.
const ROOT: &str = "tests/over_http/main.rs";

/// Where such a target has its way to the model, and what that calls.
const TRANSPORT: (&str, &str) = ("tests/over_http/transport.rs", "over_http(");

/// The files, by member, each of whose tests asks a server that it starts.
const ASKING: [(&str, &str); 10] = [
    ("engine", "tests/hostile.rs"),
    ("engine", "tests/run/fallback.rs"),
    ("engine", "tests/run/paid.rs"),
    ("llm", "tests/aimock.rs"),
    ("llm", "tests/http.rs"),
    ("llm", "tests/llmock.rs"),
    ("tests", "tests/scenarios/emulator.rs"),
    ("tests", "tests/scenarios/fallback.rs"),
    ("tests", "tests/scenarios/overnight.rs"),
    ("tests", "tests/scenarios/summaries.rs"),
];

/// What such a server is: a stub, an emulator that others wrote, or one by hand.
const SERVERS: [&str; 4] = ["MockServer", "Aimock", "Llmock", "TcpListener"];

/// Lists the tests of `members` that ask a model over HTTP.
pub(crate) fn tests(members: &[Member]) -> Result<Tests> {
    let mut tests = Tests::new();
    for member in members {
        let mut paths = reached(ROOT, &member.files)?;
        let asking = ASKING.iter().filter(|(name, _)| *name == member.name());
        paths.extend(asking.map(|(_, path)| (*path).to_owned()));
        let files = member.files.iter();
        let found = tests_of(files.filter(|(path, _)| paths.contains(*path)))?;
        tests.insert(member.name().to_owned(), found);
    }
    Ok(tests)
}

/// What only seems to ask over HTTP.
pub(crate) fn violations(members: &[Member]) -> Vec<String> {
    members.iter().flat_map(of_member).collect()
}

fn of_member(member: &Member) -> Vec<String> {
    let mut violations = Vec::new();
    let says = |path: &str, marks: &[&str]| {
        let text = member.files.get(path);
        text.is_some_and(|text| marks.iter().any(|mark| text.contains(mark)))
    };
    let (transport, call) = TRANSPORT;
    if member.files.contains_key(ROOT) && !says(transport, &[call]) {
        let directory = &member.directory;
        violations.push(format!(
            "`{directory}/{transport}` does not call `{call}…)`"
        ));
    }
    let asking = ASKING.iter().filter(|(name, _)| *name == member.name());
    let silent: BTreeSet<&str> = asking.map(|(_, path)| *path).collect();
    let silent = silent.into_iter().filter(|path| !says(path, &SERVERS));
    violations.extend(silent.map(|path| {
        let directory = &member.directory;
        format!("`{directory}/{path}` is gone, or asks no server")
    }));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    fn member(files: &[(&str, &str)]) -> Member {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Member {
            directory: "bus".to_owned(),
            manifest: Manifest::parse("").unwrap(),
            files: files.iter().map(owned).collect(),
        }
    }

    #[test]
    fn what_a_target_takes_from_its_neighbour_is_asked_over_http_and_nothing_else() {
        let member = member(&[
            (
                "tests/over_http/main.rs",
                "#[path = \"../run/a.rs\"] mod a; mod transport;",
            ),
            ("tests/over_http/transport.rs", "fn to() { over_http(m) }"),
            ("tests/run/main.rs", "mod a; mod b;"),
            ("tests/run/a.rs", "#[test] fn both_ways() {}"),
            ("tests/run/b.rs", "#[test] fn in_the_process() {}"),
        ]);
        assert_eq!(
            violations(std::slice::from_ref(&member)),
            Vec::<String>::new()
        );
        let found = super::tests(&[member]).unwrap();
        assert_eq!(found["bus"], BTreeSet::from(["both_ways".to_owned()]));
    }

    #[test]
    fn a_target_whose_transport_is_none_is_found() {
        let member = member(&[
            ("tests/over_http/main.rs", "mod transport;"),
            ("tests/over_http/transport.rs", "fn to() { m }"),
        ]);
        assert_eq!(violations(&[member]).len(), 1);
    }
}
