//! Tells how a repository is built and tested: its stacks, their tools on this machine, its gate, who may install packages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use ropewalk_config::settings::PackageManager;
use ropewalk_config::stack::{FoundStack, StackProfiles, StackTool};
use ropewalk_config::{Config, PROJECT_FILE};
use ropewalk_schemas::{CommitId, HostPattern, clip};
use ropewalk_workspace::{CommandRunner, CommandSpec, CommandStatus, GitError, LocalClone};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// Files with these endings are words about a project, or settings of it.
const WORDS: [&str; 8] = ["md", "txt", "rst", "adoc", "toml", "yml", "yaml", "json"];
/// So long a tool may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many letters are told of what it says of its version.
const VERSION_LETTERS: usize = 80;

/// What is the same for all commits.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The stacks that are known.
    pub stacks: StackProfiles,
    /// Asks tools for their versions.
    pub runner: CommandRunner,
    /// Who may install packages.
    pub package_managers: Vec<PackageManager>,
}

/// The versions that tools have told; a tool that is absent has told none.
pub type Versions = Arc<Mutex<HashMap<String, Option<String>>>>;

/// How a repository is built and tested.
#[derive(Debug, Serialize)]
pub struct Project {
    /// A line for each stack.
    stacks: Vec<String>,
    /// The tools of the stacks that this machine has, with their versions.
    pub tools: Vec<String>,
    /// Where there is no code yet: the stacks that this machine has a tool for, with that tool.
    pub choices: Vec<String>,
    /// The commands that every change has to pass.
    gate: Vec<String>,
    /// The line that makes each checkout ready in which a task is built or checked.
    setup: Option<String>,
    /// The package managers that may run.
    packages: Vec<PackageManager>,
    /// The hosts that commands reach beside their own loopback; of commands that nothing confines none is named.
    hosts: Vec<HostPattern>,
}

impl Project {
    /// Reads it at `commit`, whose files are `paths` and lie in a checkout.
    pub async fn read(
        (machine, versions): (&Machine, &Versions),
        clone: &LocalClone,
        (commit, checkout): (&CommitId, &Path),
        paths: &[&str],
    ) -> Result<Self, GitError> {
        let texts = manifests(&machine.stacks, clone, commit, paths).await?;
        let found = machine.stacks.find(paths, &texts);
        let mut asked = BTreeSet::new();
        let tools = found.iter().flat_map(|found| &found.profile.tools);
        let tools: Vec<&StackTool> = tools.filter(|tool| asked.insert(&tool.name)).collect();
        let asked = tools
            .into_iter()
            .map(|tool| version(machine, versions, checkout, tool));
        let told = join_all(asked).await;
        let ShellLines { gate, setup } = shell_lines(clone, commit).await?;
        let egress = machine.runner.egress();
        Ok(Self {
            stacks: found.iter().map(line).collect(),
            tools: told.into_iter().flatten().collect(),
            choices: if found.is_empty() && !paths.iter().any(|path| is_code(path)) {
                choices(machine)
            } else {
                Vec::new()
            },
            gate,
            setup,
            packages: machine.package_managers.clone(),
            hosts: egress.map_or_else(Vec::new, |egress| egress.hosts.clone()),
        })
    }
}

/// Returns whether a file is more than words about a project.
pub fn is_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.trim_start_matches('.').rsplit_once('.');
    ending.is_some_and(|(_, ending)| !WORDS.contains(&ending.to_ascii_lowercase().as_str()))
}

fn choices(machine: &Machine) -> Vec<String> {
    let with_tool = machine.stacks.iter().filter_map(|stack| {
        let mut tools = stack.tools.iter().map(|tool| tool.name.as_str());
        let tool = tools.find(|tool| machine.runner.locate(tool).is_some())?;
        Some(format!("{} ({tool})", stack.title))
    });
    with_tool.collect()
}

async fn manifests(
    stacks: &StackProfiles,
    clone: &LocalClone,
    commit: &CommitId,
    paths: &[&str],
) -> Result<BTreeMap<String, String>, GitError> {
    let wanted = stacks.to_read(paths);
    let contents = clone.read_files(commit, &wanted).await?;
    let read = wanted.iter().zip(contents).filter_map(|(path, bytes)| {
        Some((
            (*path).to_owned(),
            String::from_utf8_lossy(&bytes?).into_owned(),
        ))
    });
    Ok(read.collect())
}

fn line(found: &FoundStack<'_>) -> String {
    let title = &found.profile.title;
    let place = match found.directory.as_str() {
        "" => String::new(),
        directory => format!(" in `{directory}`"),
    };
    match &found.check {
        Some(check) => format!("{title}{place}, tested by `{}`", check.command),
        None => format!("{title}{place}"),
    }
}

/// Asks a tool once for its version.
async fn version(
    machine: &Machine,
    versions: &Versions,
    directory: &Path,
    tool: &StackTool,
) -> Option<String> {
    let known = versions
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&tool.name)
        .cloned();
    if let Some(known) = known {
        return known;
    }
    machine.runner.locate(&tool.name)?;
    let line = CommandSpec::shell(tool.version.as_str(), directory).with_timeout(PATIENCE);
    let told = machine.runner.run(&line, &CancellationToken::new()).await;
    let told = told
        .ok()
        .filter(|output| output.status == CommandStatus::Exited(0));
    let first = told.and_then(|output| version_in(&tool.name, &output.stdout));
    let mut versions = versions.lock().unwrap_or_else(PoisonError::into_inner);
    versions.insert(tool.name.clone(), first.clone());
    first
}

/// Returns what a tool said of its version: the first line that says something, behind its name where it does not name itself.
fn version_in(tool: &str, output: &str) -> Option<String> {
    let mut lines = output.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty())?;
    let line = clip::letters(line, VERSION_LETTERS);
    Some(if line.to_lowercase().contains(&tool.to_lowercase()) {
        line.into_owned()
    } else {
        format!("{tool} {line}")
    })
}

/// What the file of a project says that is run.
#[derive(Default)]
struct ShellLines {
    gate: Vec<String>,
    setup: Option<String>,
}

/// Reads the commands of the gate, and the line that makes checkouts ready, as the project's file at `commit` says them; a file that
/// cannot be read says none here, and holds every build until it is mended.
async fn shell_lines(clone: &LocalClone, commit: &CommitId) -> Result<ShellLines, GitError> {
    let text = clone
        .read_file(commit, PROJECT_FILE)
        .await?
        .unwrap_or_default();
    let config = Config::of_project_text(&String::from_utf8_lossy(&text));
    let lines = config.map(|config| {
        let commands = config.gate.commands.into_iter();
        ShellLines {
            gate: commands.map(|command| command.command).collect(),
            setup: config.build.setup,
        }
    });
    Ok(lines.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_with_its_version_and_a_cut_is_seen() {
        let long = "cargo ".repeat(20);
        let cut = format!("{}cargo c…", "cargo ".repeat(12));
        for (output, expected) in [
            ("\n  cargo 1.95.0 (abc) \nmore", Some("cargo 1.95.0 (abc)")),
            ("1.95.0", Some("cargo 1.95.0")),
            (long.as_str(), Some(cut.as_str())),
            (" \n", None),
        ] {
            assert_eq!(version_in("cargo", output).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn words_about_a_project_are_no_code() {
        for (path, expected) in [
            ("README.md", false),
            ("docs/plan.TXT", false),
            ("LICENSE", false),
            (".gitignore", false),
            (".github/x.yml", false),
            ("a.zig", true),
            ("bin/.hidden.sh", true),
        ] {
            assert_eq!(is_code(path), expected, "{path}");
        }
    }
}
