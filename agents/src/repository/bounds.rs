//! Bounds what a prompt says of a repository beside its digest: lines that somebody else wrote may be of any length.
//!
//! Pure. Bounded are the commits, the gate, the setup and the hosts: with the digest 26 KiB at most, as far as a letter is a byte. Not
//! bounded are stacks, their tools, what may be chosen and who installs packages: of these there are as many as this machine knows.

use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::clip;
use serde_json::{Value, json};

/// So many letters of the line of a commit: git takes the whole first paragraph of a message for its subject.
const COMMIT_LETTERS: usize = 120;
/// So many commands of the gate are told, and the others counted.
const COMMANDS: usize = 8;
/// So many letters of a command.
const COMMAND_LETTERS: usize = 160;
/// So many hosts are told, and the others counted.
const HOSTS: usize = 12;
/// So many letters of a host.
const HOST_LETTERS: usize = 80;

/// Cuts the lines of a log that are too long.
pub(super) fn commits(lines: &str) -> String {
    let told = lines.lines().map(|line| {
        let line = clip::letters(line, COMMIT_LETTERS);
        format!("{line}\n")
    });
    told.collect()
}

/// Cuts what of a project is run by a shell, and the hosts that this reaches. How many commands of the gate are left out stands in
/// `more_gate`, beside them, since it is none; how many hosts, behind the last of these.
pub(super) fn project(mut project: Value) -> Value {
    if let Some(setup) = project["setup"].as_str() {
        project["setup"] = json!(clip::letters(setup, COMMAND_LETTERS));
    }
    let (gate, more) = first(&project["gate"], COMMANDS, COMMAND_LETTERS);
    project["gate"] = json!(gate);
    project["more_gate"] = json!(more);
    let (mut hosts, more) = first(&project["hosts"], HOSTS, HOST_LETTERS);
    hosts.extend(more);
    project["hosts"] = json!(hosts);
    project
}

/// Cuts the first `most` of a list of lines, and says how many more there are.
fn first(lines: &Value, most: usize, letters: usize) -> (Vec<String>, Option<String>) {
    let lines = lines.as_array().map_or(&[][..], Vec::as_slice);
    let told = lines.iter().take(most).filter_map(Value::as_str);
    let told = told.map(|line| clip::letters(line, letters).into_owned());
    (told.collect(), and_more(lines.len(), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_log_are_cut_one_by_one() {
        let long = format!("1a2b3c4 2026-11-21 Ada: {}", "x".repeat(100_000));
        let told = commits(&format!("{long}\n5d6e7f8 2026-11-20 Ada: begin\n{long}\n"));
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], "5d6e7f8 2026-11-20 Ada: begin");
        for line in [lines[0], lines[2]] {
            assert_eq!(line.chars().count(), COMMIT_LETTERS);
            assert!(line.ends_with("x…"), "{line}");
        }
        assert_eq!(commits(""), "");
    }

    fn lines(value: &Value) -> Vec<&str> {
        let lines = value.as_array().into_iter().flatten();
        lines.filter_map(Value::as_str).collect()
    }

    #[test]
    fn the_commands_and_hosts_of_a_project_are_cut_and_counted() {
        let few = json!({ "gate": ["make lint"], "setup": null, "tools": ["cargo 1"], "hosts": ["a.org"] });
        let mut expected = few.clone();
        expected["more_gate"] = Value::Null;
        assert_eq!(project(few), expected);
        let long = "x".repeat(100_000);
        let many = vec![long.as_str(); 20];
        let told = project(json!({ "gate": many, "setup": long, "hosts": many }));
        let (gate, hosts) = (lines(&told["gate"]), lines(&told["hosts"]));
        assert_eq!(gate.len(), COMMANDS, "the count is no command");
        assert_eq!(told["more_gate"], "and 12 more");
        for line in gate.into_iter().chain(told["setup"].as_str()) {
            assert_eq!(line.chars().count(), COMMAND_LETTERS);
        }
        assert_eq!((hosts.len(), hosts[HOSTS]), (HOSTS + 1, "and 8 more"));
        for host in &hosts[..HOSTS] {
            assert_eq!(host.chars().count(), HOST_LETTERS);
        }
    }
}
