//! Reads the command line; what it cannot read is one line and exit code 3.

pub mod completions;
mod examples;
pub mod man;
pub mod schema;
pub mod span;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use ropewalk_schemas::advice::Words;

use crate::app::GlobalOptions;
use crate::archive;
use crate::commands::{
    self, alert::Alert, build::Build, config::Config, dead_letter::DeadLetter, event::Event,
    idea::Idea, knowledge::Knowledge, lock::Lock, notice::Notice, people::People,
    question::Question, review::Review, spec::Spec, wait::Wait,
};
use crate::error::CliError;
use crate::output::remark;
use crate::rehearse;
use crate::top;

/// Turns an idea in a chat into specified, approved, built and verified code.
#[derive(Debug, Parser)]
#[command(
    name = "ropewalk",
    version,
    after_help = "Exit codes: 0 ok, 1 error, 2 cancelled, 3 usage, 4 needs credentials."
)]
pub struct Arguments {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: GlobalOptions,
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Takes two scripted ideas through every agent to verified branches.
    Rehearse(rehearse::Arguments),
    /// Writes `ropewalk.toml` for the repository in this directory.
    Init(commands::init::Init),
    /// Shows what the `ropewalk.toml` of this directory loosens, and allows it once you have read it.
    Trust(commands::trust::Trust),
    /// Runs every agent until it is stopped.
    Up(commands::up::Up),
    /// Runs the agents of some roles, beside other processes that share the work; or lists what every part does.
    Agent(commands::agent::Agent),
    /// Writes the project into one file, to be taken elsewhere.
    Export(archive::Export),
    /// Takes a project out of a file that `export` wrote; it arrives stopped.
    Import(archive::Import),
    /// Checks everything that a run needs, and says how to mend what is missing.
    Doctor(commands::doctor::Doctor),
    /// Begins, shows and talks about ideas.
    #[command(subcommand)]
    Idea(Idea),
    /// Makes, shows, revises and approves specifications.
    #[command(subcommand)]
    Spec(Spec),
    /// Shows and steers builds.
    #[command(subcommand)]
    Build(Build),
    /// Shows and answers questions.
    #[command(subcommand)]
    Question(Question),
    /// Searches and adds to what was learned.
    #[command(subcommand)]
    Knowledge(Knowledge),
    /// Shows what came of builds.
    #[command(subcommand)]
    Review(Review),
    /// Shows what is wrong.
    #[command(subcommand)]
    Alert(Alert),
    /// Shows what people were to be told.
    #[command(subcommand)]
    Notice(Notice),
    /// Shows what happened.
    #[command(subcommand)]
    Event(Event),
    /// Shows events that could not be handled, and decides about them.
    #[command(subcommand, name = "dead-letter")]
    DeadLetter(DeadLetter),
    /// Shows file locks.
    #[command(subcommand)]
    Lock(Lock),
    /// Shows who waits for whom.
    #[command(subcommand)]
    Wait(Wait),
    /// Shows who works on the project.
    #[command(subcommand)]
    People(People),
    /// Shows who you are here, and what you may do.
    Whoami(commands::people::whoami::Whoami),
    /// Stops everything: no model is asked and no command begins until `resume`.
    Stop(commands::up::stop::Stop),
    /// Lets everything go on that `stop` stopped.
    Resume(commands::up::resume::Resume),
    /// Shows on one screen what runs, waits, asks and costs, as it changes.
    Top(top::Top),
    /// Shows what models used and cost.
    Usage(commands::usage::Usage),
    /// Shows the figures of `/metrics` that the store knows, in the text format of Prometheus.
    Metrics(commands::usage::metrics::Metrics),
    /// Shows and checks the configuration.
    #[command(subcommand)]
    Config(Config),
    /// Prints the JSON schema of what verbs answer with `--json`.
    Schema(schema::Schema),
    /// Prints what lets a shell complete verbs and flags.
    Completions(completions::Completions),
    /// Prints the manual, or writes a page of it for each verb.
    Man(man::Man),
}

impl Command {
    /// Returns whether the verb may run agents, and so puts their work away before it stops.
    pub const fn hosts_agents(&self) -> bool {
        match self {
            Self::Agent(agent) => agent.hosts_agents(),
            Self::Rehearse(_)
            | Self::Up(_)
            | Self::Build(Build::Replay(_))
            | Self::Idea(Idea::Chat(_))
            | Self::Spec(Spec::Generate(_)) => true,
            _ => false,
        }
    }
}

/// Reads `arguments`; `None` when the help or the version was asked for and shown.
pub fn parse(arguments: &[OsString]) -> Result<Option<Arguments>, CliError> {
    match read(arguments) {
        Ok(arguments) => Ok(Some(arguments)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // A closed standard output is none of our business.
                drop(error.print());
                Ok(None)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                remark(error.render().to_string().trim_end());
                Err(CliError::usage((
                    "a verb is missing",
                    "choose one of the above",
                )))
            }
            _ => Err(CliError::usage(one_line(&error, arguments))),
        },
    }
}

/// Returns the program with all its verbs, and examples in the help of each.
pub fn program() -> clap::Command {
    examples::add(Arguments::command(), "")
}

fn read(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut program = program();
    let matches = program.try_get_matches_from_mut(arguments)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// What people call something that has another name here.
const MEANT: [(&str, &str); 1] = [(
    "status",
    "`ropewalk build list` shows where builds stand, `ropewalk top` all that runs as it changes, and `ropewalk up` lets it run",
)];

/// What is said of a number that is none, and how that is put plainly.
const NUMBERS: [(&str, &str); 4] = [
    (
        "number too large to fit in target type",
        "no number here is so large",
    ),
    (
        "number too small to fit in target type",
        "no number here is so small",
    ),
    ("invalid digit found in string", "it is no whole number"),
    (
        "cannot parse integer from empty string",
        "a number is missing",
    ),
];

/// Says in one line what clap says in several.
fn one_line(error: &clap::Error, arguments: &[OsString]) -> Words {
    let rendered = error.render().to_string();
    let what: Vec<&str> = rendered
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect();
    let what = what.join(" ");
    let mut what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    for (said, plain) in NUMBERS {
        if let Some(before) = what.strip_suffix(said) {
            what = format!("{before}{plain}");
        }
    }
    let tip = rendered
        .lines()
        .find_map(|line| line.trim().strip_prefix("tip: "));
    let advice = meant(error).or(tip);
    let advice = advice.map_or_else(|| help_of(arguments), ToOwned::to_owned);
    Words::from((what, advice))
}

/// Says what was meant by a verb that there is not, where that is known: names that are spelt alike say nothing of it.
fn meant(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let known = MEANT.iter().find(|(name, _)| name == verb);
    known.map(|(_, meant)| *meant)
}

/// Names the help of the verb that was meant, as far as one was.
fn help_of(arguments: &[OsString]) -> String {
    let program = Arguments::command();
    let (mut verb, mut names) = (&program, vec!["ropewalk"]);
    for argument in arguments.iter().skip(1) {
        if let Some(below) = argument
            .to_str()
            .and_then(|name| verb.find_subcommand(name))
        {
            names.push(below.get_name());
            verb = below;
        }
    }
    format!("see `{} --help`", names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let error = parse(&arguments).unwrap_err();
        assert_eq!(error.exit().code(), 3, "{line}: {error}");
        let text = error.to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    }

    #[test]
    fn a_mistake_in_the_arguments_is_one_line_that_says_what_to_do() {
        let cases = [
            (
                "ropewalk xyzzy",
                "unrecognized subcommand 'xyzzy'; see `ropewalk --help`",
            ),
            ("ropewalk biuld list", "similar"),
            ("ropewalk status", "; `ropewalk build list` shows"),
            ("ropewalk build merge x", "merge"),
            (
                "ropewalk up --bus kafka",
                "write `embedded`, `nats` or `nats://host:port`",
            ),
            ("ropewalk up --store redis", "write `sqlite`"),
            ("ropewalk up --colour", "--colour"),
            (
                "ropewalk --json spec show a b",
                "see `ropewalk spec show --help`",
            ),
            ("ropewalk up --store postgres://h:port/d", "port"),
            ("ropewalk spec show", "<ID>"),
            ("ropewalk agent", "see `ropewalk agent --help`"),
            ("ropewalk agent builder", "similar"),
            (
                "ropewalk event tail --after 99999999999999999999",
                "'--after <SEQUENCE>': no number here is so large; see",
            ),
            ("ropewalk event list --limit x", "it is no whole number"),
            ("ropewalk idea show Not.A.Slug", "a-z 0-9"),
        ];
        for (line, expected) in cases {
            let text = refused(line);
            assert!(text.contains(expected), "{line}: {text}");
        }
    }

    #[test]
    fn verbs_of_later_versions_are_unknown() {
        for verb in ["code", "session", "replay"] {
            refused(&format!("ropewalk {verb}"));
        }
    }

    #[test]
    fn the_arguments_are_sound() {
        program().debug_assert();
    }
}
