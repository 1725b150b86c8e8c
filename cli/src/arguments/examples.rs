//! Examples for the help of each verb, in one place, so that none goes without and each is tried by a test.

use clap::Command;

/// So many are shown.
const MOST: usize = 4;

/// Examples, one a line; each stands in the help of the verbs that it begins with.
const EXAMPLES: &str = r#"
rehearse
init
idea new "Habit tracker"
idea chat habit-tracker
rehearse --watch
rehearse --dir here --bus nats
init --name habits
trust
up
up --record cassette.jsonl
up --bind 127.0.0.1:7440 --store postgres://habits@host/habits
agent list --all
agent build --store postgres://host/habits --bus nats://host:4222
export ../habits.ropewalk
import ../habits.ropewalk
import ../habits.ropewalk --dry-run
import habits.ropewalk habits --name habits-2
doctor
doctor --json
idea new Walks --slug walks --kind tool
idea list
idea show habits
idea chat habits < notes.txt
idea attach habits sketch.png --say "how the list looks"
idea done habits
idea abandon habits --reason "bought one"
idea abandon habits --dry-run
spec generate habits --complexity simple
spec generate --from plan.md
spec list --idea habits
spec show 3f9a1c2b
spec diff 3f9a1c2b 1 3
spec validate 3f9a1c2b
spec approve 3f9a1c2b
spec approve 3f9a1c2b --priority 2
spec revise 3f9a1c2b "keep the old format readable"
spec lines 3f9a1c2b
spec comment 3f9a1c2b --of 5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9 --on spec.md:12 "too vague"
spec reject 3f9a1c2b --reason "too large"
build list --idea habits
build list --state failed --since 2026-11-21T08:00:00Z
build show 7c01d2e4
build show 7c01d2e4 --requirement FR-2
build log 7c01d2e4 --follow
build replay 7c01d2e4 --into /tmp/again
build wait habits
build wait 7c01d2e4 --at-most 600
build pause 7c01d2e4
build resume 7c01d2e4
build stop 7c01d2e4 --reason "wrong way"
build stop 7c01d2e4 --dry-run
build retry 7c01d2e4 T-004 "mind leap years"
build lines 7c01d2e4
build comment 7c01d2e4 --of 9daeafb9864cf43055ae93beb0afd6c7d144bfa4 --on src/a.py:12 "use the other list" --on src/a.py:-3 "keep this"
build tell 7c01d2e4 "dates are in UTC"
build priority 7c01d2e4 1
build land 7c01d2e4
build land 7c01d2e4 --dry-run
build land 7c01d2e4 --into main --squash
question list
question list --all --idea habits
question show 5b20aa31
question answer 5b20aa31 merge
question answer --all-defaults
knowledge list --kind gotcha
knowledge search leap years
knowledge add "dates are in UTC" --file "src/*.rs"
knowledge show 91d0c3fe
review list --idea habits
review show 7c01d2e4
alert list --all
alert ack store-full
notice list --all
event list --type task.failed --limit 10
event tail --type "build.*"
event tail --after 120 --count 5 --json
event show 120
event show 5d0c91fe
event replay notify.webhook --from 120
dead-letter list --limit 10
dead-letter show 12/build
dead-letter replay 12/build
dead-letter discard 12/build
dead-letter discard 12/build --dry-run
lock list --all
wait list
wait graph --dot
people list
people link ada
people link ada --undo
people token ada
stop
resume
whoami
top
top --every 5
usage --by day
usage --by model --idea habits
metrics
config show build
config check
schema
schema SpecificationView
completions bash > ~/.local/share/bash-completion/completions/ropewalk
man | man -l -
man ~/.local/share/man/man1
"#;

/// Adds examples to the help of a verb, and of all below it.
pub(super) fn add(verb: Command, path: &str) -> Command {
    let below = verb
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned());
    let below: Vec<String> = below.collect();
    let verb = below.into_iter().fold(verb, |verb, name| {
        let path = format!("{path}{name} ");
        verb.mut_subcommand(name, |below| add(below, &path))
    });
    let before = verb.get_after_help().map(|text| format!("{text}\n\n"));
    let mut help = before.unwrap_or_default() + "Examples:";
    for line in lines(path).take(MOST) {
        help.push_str("\n  ropewalk ");
        help.push_str(line);
    }
    verb.after_help(help)
}

/// Returns the examples of a verb, whose names are each followed by a space.
fn lines(path: &str) -> impl Iterator<Item = &str> {
    let all = EXAMPLES.lines().filter(|line| !line.is_empty());
    all.filter(move |line| line.starts_with(path) || *line == path.trim_end())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::super::{Arguments, parse};
    use super::*;

    fn without(verb: &Command, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        if lines(path).next().is_none() {
            found.push(path.to_owned());
        }
        for below in verb.get_subcommands() {
            found.extend(without(below, &format!("{path}{} ", below.get_name())));
        }
        found
    }

    /// Splits a line as a shell does, up to where the shell takes over.
    fn words(line: &str) -> Vec<OsString> {
        let line = line.split(['|', '<', '>']).next().unwrap_or_default();
        let mut words = vec![OsString::from("ropewalk")];
        for (number, part) in line.split('"').enumerate() {
            if number % 2 == 1 {
                words.push(part.into());
            } else {
                words.extend(part.split_whitespace().map(OsString::from));
            }
        }
        words
    }

    #[test]
    fn every_verb_has_examples_and_every_example_is_understood() {
        assert_eq!(without(&Arguments::command(), ""), Vec::<String>::new());
        for line in lines("") {
            let read = parse(&words(line));
            assert!(matches!(read, Ok(Some(_))), "{line}: {read:?}");
        }
    }
}
