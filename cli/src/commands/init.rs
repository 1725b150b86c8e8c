//! Verb `init`: writes `ropewalk.toml` for the repository in this directory, with a gate of the tests that it finds.

mod survey;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_config::{Config, Environment, Locations, PROJECT_FILE};
use ropewalk_runtime::Clock;
use ropewalk_schemas::{ProjectName, Slug};
use ropewalk_workspace::{
    Git, GitError, Identity, LocalClone, LocalCloneOptions, UserRepository, remove_tree,
};
use serde::Serialize;
use survey::{CheckTrial, Survey};

use crate::app::App;
use crate::error::CliError;
use crate::project;
use crate::wiring;

/// What the project is called.
#[derive(Debug, Args)]
pub struct Init {
    /// Names the project; by default the directory does.
    #[arg(long)]
    name: Option<ProjectName>,
    /// Does not run the tests that are found.
    #[arg(long)]
    untried: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    file: PathBuf,
    name: ProjectName,
    repository: PathBuf,
    state: PathBuf,
    /// Whether the state was there: what was done before goes on.
    goes_on: bool,
    notice: Option<String>,
    /// What no checkout will have.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    #[serde(flatten)]
    survey: Survey,
}

impl Init {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let directory = app.directory()?;
        let file = directory.join(PROJECT_FILE);
        if file.symlink_metadata().is_ok() {
            let text = (
                format!("`{}` is there already", file.display()),
                "edit it, or remove it first",
            );
            return Err(CliError::refused("exists", text));
        }
        let git = wiring::git(&app.environment).await?;
        let repository = UserRepository::inspect(&git, &directory).await?;
        let left_out = wiring::without_submodules(&git, &repository).await?;
        let untried = self.untried;
        let locations = self.locations(&directory, &app.environment)?;
        // Asked before anything is made; the file itself comes last, since it would make the repository dirty.
        tempfile::NamedTempFile::new_in(&directory)
            .map_err(|error| CliError::file(&directory, &error))?;
        let goes_on = locations.state.exists();
        let made = lay(git, &directory, &locations, &file, (app, untried)).await;
        let (notice, survey) = match made {
            Ok(made) => made,
            Err(error) => {
                // Where the directory was not there before, nothing of anybody is in it.
                if !goes_on {
                    drop(remove_tree(&locations.state));
                }
                return Err(error);
            }
        };
        let initialised = Report {
            file,
            name: locations.name,
            repository: locations.repository,
            state: locations.state,
            goes_on,
            notice,
            left_out,
            survey,
        };
        for notice in [&initialised.notice, &initialised.left_out]
            .into_iter()
            .flatten()
        {
            app.output.note(&format!("note: {notice}"))?;
        }
        app.output.show(&initialised, human)
    }

    /// Chooses the name, and with it the state directory; one that belongs to another project is left alone, and one that is
    /// of this repository goes on.
    fn locations(self, directory: &Path, environment: &Environment) -> Result<Locations, CliError> {
        let locate = |name: &str| -> Result<Locations, CliError> {
            let settings = ["project.repo=.".to_owned(), format!("project.name={name}")];
            let loaded = Config::load(directory, environment, &settings)?;
            Ok(loaded.locations(environment)?)
        };
        if let Some(name) = &self.name {
            let locations = locate(name.as_str())?;
            return if locations.state.exists() && !project::is_own(&locations) {
                Err(CliError::refused(
                    "exists",
                    (
                        format!(
                            "a project named `{name}` has its state in `{}`",
                            locations.state.display()
                        ),
                        "choose another name",
                    ),
                ))
            } else {
                Ok(locations)
            };
        }
        let base = directory
            .file_name()
            .and_then(|name| Slug::from_text(name.to_string_lossy().trim_end_matches(".git")))
            .map_or_else(|| "project".to_owned(), |slug| slug.to_string());
        for number in 1..1000 {
            let name = if number == 1 {
                base.clone()
            } else {
                format!("{base}-{number}")
            };
            let locations = locate(&name)?;
            if !locations.state.exists() || project::is_own(&locations) {
                return Ok(locations);
            }
        }
        Err(CliError::refused(
            "exists",
            (
                format!("too many projects named `{base}`"),
                "give one with `--name`",
            ),
        ))
    }
}

/// Tells what was made, and what is done next. That edits may have to be allowed comes first: with a file that loosens what nobody
/// has allowed, neither the doctor nor an idea goes on.
fn human(done: &Report) -> String {
    let has_gate = done.survey.checks.iter().any(|check| check.passed);
    let gate = if has_gate {
        ": a build has the gate of the commit that it begins from"
    } else {
        ""
    };
    format!(
        "wrote {}\nproject     {}\nstate       {}{}\n{}\
         next        after an edit that adds what runs commands or loosens rules, as a provider of your own does: `ropewalk trust` allows it\n            \
         commit `ropewalk.toml`{gate}\n            \
         `ropewalk doctor` checks everything, the key of a model among it\n            \
         `ropewalk idea new \"…\"` begins an idea",
        done.file.display(),
        done.name,
        done.state.display(),
        if done.goes_on { ", as it was left" } else { "" },
        seen(&done.survey)
    )
}

/// Tells what was seen, a line each.
fn seen(survey: &Survey) -> String {
    let mut lines = Vec::new();
    let told = match (survey.stacks.join(", "), survey.checks.is_empty()) {
        (stacks, _) if stacks.is_empty() => {
            "stack       none that is known; `[gate]` in the file takes the command of your tests\n"
                .to_owned()
        }
        (stacks, true) => format!(
            "stack       {stacks}\nno gate     no tests were found; `[gate]` in the file takes their command\n"
        ),
        (stacks, false) => format!("stack       {stacks}\n"),
    };
    lines.push(told);
    for check in &survey.checks {
        let verdict = if check.passed { "gate " } else { "no gate" };
        lines.push(format!(
            "{verdict:<12}`{}`: {}\n",
            check.command, check.told
        ));
    }
    lines.concat()
}

/// Makes the state with its local clone, then the file; returns what is unusual about the repository, and what it holds.
async fn lay(
    git: Git,
    directory: &Path,
    locations: &Locations,
    file: &Path,
    (app, untried): (&App, bool),
) -> Result<(Option<String>, Survey), CliError> {
    wiring::make_state(&locations.state)?;
    let options = LocalCloneOptions {
        user_repository: directory.to_owned(),
        state: locations.state.clone(),
        identity: Identity::default(),
    };
    let (notice, survey) = match LocalClone::open_or_create(git, options).await {
        Ok(clone) => (
            wiring::notice(&clone).await?,
            survey::look(app, &clone, untried).await?,
        ),
        // What is to be committed next anyway mends it, and no other advice is needed.
        Err(error @ GitError::NoCommit(_)) => (
            Some(format!("{error}; that of `{PROJECT_FILE}` is its first")),
            Survey::default(),
        ),
        Err(error) => return Err(error.into()),
    };
    create(file, &settings(&locations.name, &survey))?;
    trust(directory, &app.environment);
    project::claim(locations)?;
    Ok((notice, survey))
}

/// Trusts what was just written; who has no home for such a word gives it later.
fn trust(directory: &Path, environment: &Environment) {
    let loaded = Config::load_whoever_wrote_it(directory, environment, &[]);
    if let Some(request) = loaded.ok().and_then(|loaded| loaded.trust) {
        drop(request.trust(environment, &Clock::system().now().to_rfc3339()));
    }
}

fn create(path: &Path, text: &str) -> Result<(), CliError> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::refused(
            "exists",
            (format!("`{}` is there already", path.display()), "edit it"),
        ),
        _ => CliError::file(path, &error),
    })
}

fn settings(name: &ProjectName, survey: &Survey) -> String {
    format!(
        r#"# What Ropewalk does in this repository. `ropewalk config show` lists every key with its value and where it was set.

# Commands of builds are confined; `ropewalk doctor` names how. This line runs them with your rights instead:
# sandbox = "off"

[project]
name = "{name}"
repo = "."

# [models]                                  # `provider/model` by role
# chat = "anthropic/claude-sonnet-4-5"
# spec = "anthropic/claude-sonnet-4-5"
# build = "anthropic/claude-sonnet-4-5"
# small = "anthropic/claude-haiku-4-5"

# [providers.mine]                          # a provider of your own, whose models are `mine/MODEL`; `ropewalk trust` allows it
# kind = "openai"                           # how it is spoken to: `anthropic`, `openai`, `responses` or `gemini`
# base_url = "http://127.0.0.1:8080/v1"
# key_variable = "MY_API_KEY"               # the environment variable that holds its key, where it wants one
# prices = [{{ model = "*", input = 0.4, output = 1.2 }}]   # dollars per million tokens
# priced = {{ date = "2026-11-20", source = "https://example.org/pricing" }}   # when and where the prices were read

# What every change must pass, beside its own check.
{}"#,
        gate(&survey.checks)
    )
}

/// Writes the gate: what passes on the repository as it is; what does not would refuse every change, and stands as a
/// comment.
fn gate(checks: &[CheckTrial]) -> String {
    if checks.is_empty() {
        // No command is named that nobody has seen here.
        return "# [[gate.commands]]\n# name = \"tests\"\n# command = \"\"   # that of your tests\n".to_owned();
    }
    let written = checks.iter().map(|check| {
        let (name, command) = (quoted(&check.name), quoted(&check.command));
        let lines = format!("[[gate.commands]]\nname = {name}\ncommand = {command}\n");
        if check.passed {
            return lines;
        }
        let told = check.told.lines().next().unwrap_or_default();
        let commented: Vec<String> = lines.lines().map(|line| format!("# {line}\n")).collect();
        format!("# Not in force, {told}\n{}", commented.concat())
    });
    written.collect::<Vec<_>>().join("\n")
}

fn quoted(text: &str) -> String {
    // What JSON writes between quotes, TOML reads.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_shows_as_an_example_is_read_once_it_is_no_comment() {
        let text = settings(&ProjectName::parse("walks").unwrap(), &Survey::default());
        let mut is_example = false;
        let lines = text.lines().map(|line| {
            let comment = line.strip_prefix("# ");
            is_example |= comment.is_some_and(|comment| comment.starts_with('['));
            is_example &= comment.is_some_and(|comment| !comment.starts_with("[["));
            comment.filter(|_| is_example).unwrap_or(line)
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(PROJECT_FILE), &text).unwrap();
        let environment = Environment::from_pairs([("HOME", directory.path().join("home"))]);
        let loaded = Config::load_whoever_wrote_it(directory.path(), &environment, &[]);
        let config = loaded.unwrap().config;
        let provider = &config.providers["mine"];
        let url = "http://127.0.0.1:8080/v1";
        assert_eq!(provider.base_url.as_deref(), Some(url));
        assert!(provider.kind.is_some() && provider.key_variable.is_some());
        assert!(!provider.prices.is_empty() && provider.priced.is_some());
    }

    #[test]
    fn the_gate_of_a_build_is_told_only_where_one_was_written() {
        for (passed, is_told) in [(None, false), (Some(false), false), (Some(true), true)] {
            let trial = passed.map(|passed| CheckTrial {
                name: "tests".to_owned(),
                command: "make test".to_owned(),
                passed,
                told: "it ran".to_owned(),
            });
            let done = Report {
                file: PathBuf::from("ropewalk.toml"),
                name: ProjectName::parse("walks").unwrap(),
                repository: PathBuf::from("walks"),
                state: PathBuf::from("state"),
                goes_on: false,
                notice: None,
                left_out: None,
                survey: Survey {
                    stacks: Vec::new(),
                    checks: trial.into_iter().collect(),
                },
            };
            let told = human(&done);
            let is_found = told.contains("commit `ropewalk.toml`: a build has the gate");
            assert_eq!(is_found, is_told, "{told}");
        }
    }
}
