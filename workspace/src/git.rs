//! Calls the git command line so that no setting of the user, the machine or a repository is inherited.

mod call;
mod error;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub use error::GitError;

pub(crate) use call::{Call, Output};

use crate::Environment;
use crate::process::shell::shell_word;
use crate::process::{self, CommandStatus, Invocation, ProgramFile};

/// The oldest git that can merge without a working tree.
const OLDEST: (u32, u32) = (2, 38);

/// Settings of every call; they win over the files of any repository.
const SETTINGS: [&str; 29] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    // Every index is private and can be made anew; its checksum costs more than the rest of a small change.
    "index.skipHash=true",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.trustctime=true",
    "core.quotePath=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.alternateRefsCommand=:",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    // A commit that SQL takes for the head of a build has to survive a power cut.
    "core.fsync=committed,loose-object,reference",
    "core.fsyncMethod=batch",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "credential.helper=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "safe.bareRepository=explicit",
    "i18n.commitEncoding=UTF-8",
];

/// Settings of the git that serves a fetch or a push inside the user's repository; the other end of a local
/// connection does not see the settings of the caller.
const SERVER_SETTINGS: &str = "-c core.hooksPath=/dev/null -c core.fsmonitor=false \
    -c core.alternateRefsCommand=: -c gc.auto=0 -c maintenance.auto=false -c receive.autogc=false \
    -c receive.denyCurrentBranch=refuse -c receive.updateServerInfo=false -c safe.directory=* \
    -c safe.bareRepository=all -c core.fsync=committed,loose-object,reference";

/// Calls git; cheap to clone.
#[derive(Debug, Clone)]
pub struct Git {
    variables: Arc<[(OsString, OsString)]>,
}

impl Git {
    /// Checks that git is there and new enough.
    pub async fn open(environment: &Environment) -> Result<Self, GitError> {
        let git = Self {
            variables: variables(environment),
        };
        let output = git.run(Call::new(["--version"])).await?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match version(&text) {
            Some(found) if found >= OLDEST => Ok(git),
            _ => Err(GitError::TooOld { found: text }),
        }
    }

    /// Returns what the git at the other end of a local fetch or push is called as.
    pub(crate) fn server(verb: &str) -> String {
        format!("git {SERVER_SETTINGS} {verb}")
    }

    /// As [`Self::server`], with more settings, which win over the others; a shell reads the line.
    pub(crate) fn server_with(settings: &[String], verb: &str) -> String {
        let quoted: Vec<String> = settings
            .iter()
            .map(|setting| format!("-c {}", shell_word(setting)))
            .collect();
        format!("git {SERVER_SETTINGS} {} {verb}", quoted.join(" "))
    }

    /// Runs `call` and takes every exit but 0 for an error.
    pub(crate) async fn run(&self, call: Call<'_>) -> Result<Output, GitError> {
        let name = call.name();
        let output = self.try_run(call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.failure(name))
        }
    }

    /// Runs `call` and leaves the meaning of its exit code to the caller.
    pub(crate) async fn try_run(&self, call: Call<'_>) -> Result<Output, GitError> {
        let name = call.name();
        let invocation = self.invocation(&call).ok_or(GitError::Missing)?;
        let finished = process::run(invocation, &CancellationToken::new())
            .await
            .map_err(|source| GitError::Start {
                command: name.clone(),
                source,
            })?;
        let code = match finished.status {
            CommandStatus::Exited(code) => code,
            // Whoever wanted the beginning of a long answer has it.
            CommandStatus::Flooded if call.cut => 0,
            CommandStatus::Flooded => return Err(GitError::TooLong { command: name }),
            CommandStatus::Missing => return Err(GitError::Missing),
            CommandStatus::TimedOut => {
                return Err(GitError::TimedOut {
                    command: name,
                    after: call.timeout,
                });
            }
            CommandStatus::Cancelled | CommandStatus::Signalled(_) => {
                return Err(GitError::Killed { command: name });
            }
        };
        let stderr = finished.stderr.text();
        let truncated = finished.stdout.truncated();
        let stdout = if call.cut {
            finished.stdout.text().into_bytes()
        } else {
            finished
                .stdout
                .whole()
                .ok_or(GitError::TooLong { command: name })?
        };
        Ok(Output {
            code,
            stdout,
            stderr,
            truncated,
        })
    }

    /// Returns what to start; none where there is no git.
    fn invocation<'a>(&self, call: &'a Call<'a>) -> Option<Invocation<'a>> {
        let mut arguments: Vec<OsString> = Vec::with_capacity(SETTINGS.len() * 2 + 8);
        for setting in SETTINGS.iter().chain(&call.settings) {
            arguments.push("-c".into());
            arguments.push(setting.into());
        }
        if !call.magic {
            arguments.push("--literal-pathspecs".into());
        }
        arguments.extend(call.arguments.iter().cloned());
        let places = [
            ("GIT_DIR", call.git_directory),
            ("GIT_WORK_TREE", call.work_tree),
            ("GIT_INDEX_FILE", call.index),
        ];
        let places = places
            .into_iter()
            .filter_map(|(name, path)| Some((name.into(), path?.as_os_str().to_owned())));
        let own = self.variables.iter().cloned().chain(places);
        let variables: Vec<_> = own.chain(call.variables.iter().cloned()).collect();
        Some(Invocation {
            program: ProgramFile::find("git".into(), &variables)?,
            arguments,
            directory: call.directory.or(call.work_tree).unwrap_or(Path::new("/")),
            variables,
            timeout: call.timeout,
            output_limit_bytes: call.output_limit_bytes,
            stdin: call.stdin.as_deref(),
            daemons: false,
            heard: None,
        })
    }
}

/// The whole environment of git: where programs are, and nothing that configures it.
fn variables(environment: &Environment) -> Arc<[(OsString, OsString)]> {
    let inherited = ["PATH", "TMPDIR"]
        .into_iter()
        .filter_map(|name| Some((name.into(), environment.get(name)?.clone())));
    let fixed = [
        ("HOME", "/dev/null"),
        ("LC_ALL", "C"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_ADVICE", "0"),
    ];
    let fixed = fixed
        .into_iter()
        .map(|(name, value)| (name.into(), OsStr::new(value).to_owned()));
    inherited.chain(fixed).collect()
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Advice;

    use super::*;

    #[test]
    fn the_version_is_read_from_every_spelling() {
        let cases = [
            ("git version 2.47.3", Some((2, 47))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 2.50.0.windows.1", Some((2, 50))),
            ("something else", None),
        ];
        for (text, expected) in cases {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn a_machine_without_git_gets_a_clear_answer() {
        let environment = Environment::from_pairs([("PATH", "/no/such/place")]);
        let error = Git::open(&environment).await.unwrap_err();
        assert!(matches!(error, GitError::Missing), "{error}");
        let next = error.next().unwrap_or_default();
        assert!(next.contains("install git"), "{next}");
    }
}
