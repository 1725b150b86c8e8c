//! Verb `build show`: a build with its tasks, and why each of them does not run.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::build::{self, BuildView};
use ropewalk_desk::views::review::{ReviewStanding, UNREVIEWED};
use ropewalk_desk::views::trace::{FindError, Trace};
use ropewalk_desk::views::why;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::specification::Price;

use super::asleep::AttendedBuild;
use super::trace;
use crate::app::App;
use crate::commands::question::commands_of;
use crate::error::{AMBIGUOUS, CliError};
use crate::ids::{IdText, last_digits};
use crate::output::{self, time};

/// The build.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Shows the tasks, the evidence and the commits for one requirement.
    #[arg(long, value_name = "ID", conflicts_with = "commit")]
    requirement: Option<String>,
    /// Shows what a commit is for; the beginning of its id is enough.
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?.record;
        if self.requirement.is_none() && self.commit.is_none() {
            let providers = opened.project.config().models.builders();
            let shown = build::show(&opened.store, build, &providers).await?;
            let attended = AttendedBuild::of(shown, |shown| &shown.build, opened.poke()?);
            return app.output.show(&attended, human);
        }
        let trace = Trace::load(&opened.store, &build).await?;
        if let Some(wanted) = &self.requirement {
            let traced = trace.requirement(wanted);
            let list = format!("build show {}", build.id);
            let traced = traced.ok_or_else(|| CliError::unknown("requirement", wanted, &list))?;
            return app.output.show(&traced, trace::requirement);
        }
        let wanted = self.commit.as_deref().unwrap_or_default();
        let origin = trace.commit(wanted).map_err(|error| match error {
            FindError::Ambiguous { .. } => CliError::advised(AMBIGUOUS, error),
            FindError::Name(error) => error.into(),
        })?;
        let list = format!("build show {}", build.id);
        let origin = origin.ok_or_else(|| CliError::unknown("commit", wanted, &list))?;
        app.output.show(&origin, trace::origin)
    }
}

/// Says where the branch stands.
fn standing(build: &Build) -> String {
    let (branch, target) = (&build.branch, &build.target);
    match &build.merged {
        Some(commit) => format!("{branch}, landed in {target} as {}", commit.short()),
        None => format!("{branch}, to be merged into {target}"),
    }
}

/// Names the first of some files, and says how many others there are.
fn files(paths: &[RepoPath]) -> String {
    const FIRST: usize = 5;
    let named: Vec<&str> = paths.iter().take(FIRST).map(RepoPath::as_str).collect();
    let named = named.join(", ");
    match paths.len().saturating_sub(FIRST) {
        0 => named,
        others => format!("{named} and {others} more"),
    }
}

/// Names what a build owns, and says why no lock need be listed for it.
fn owned(paths: &[RepoPath]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    format!(
        "owns       {}\n           until it is merged or abandoned; locks are held only while a task runs\n",
        files(paths)
    )
}

/// Says how far a build that has ended was reviewed, and what shows that.
fn reviewed(shown: &BuildView) -> String {
    let command = format!("`ropewalk review show {}`", last_digits(shown.build.id));
    match shown.reviewed {
        ReviewStanding::Missing => UNREVIEWED.to_owned(),
        ReviewStanding::Earlier => format!("{UNREVIEWED}; {command} shows that of an earlier end"),
        ReviewStanding::Current => format!("{command} shows what it found"),
    }
}

fn came_to(build: &Build) -> &'static str {
    match build.completed_at {
        Some(_) => "came to",
        None => "so far ",
    }
}

fn human(attended: &AttendedBuild<BuildView>) -> String {
    let shown = &attended.shown;
    let build = &shown.build;
    let asleep = attended
        .standing
        .map(|standing| format!(", but {standing}"));
    let mut text = format!(
        "build {} of `{}` is {}{}\n",
        build.id,
        build.idea,
        build.state,
        asleep.unwrap_or_default()
    );
    // Writing to a String cannot fail.
    if let Some(reason) = attended.why(why::build(build, shown.outage.as_ref())) {
        writeln!(text, "why        {reason}").ok();
    }
    text.push_str(&awaited(shown));
    writeln!(text, "branch     {}", standing(build)).ok();
    if let Some(head) = &build.head {
        writeln!(text, "head       {}", head.short()).ok();
    }
    writeln!(
        text,
        "approved   {}, revision {}",
        time(build.created_at),
        build.revision
    )
    .ok();
    if let Some(at) = build.completed_at {
        writeln!(text, "ended      {}", time(at)).ok();
    }
    if build.state.has_ended() {
        writeln!(text, "review     {}", reviewed(shown)).ok();
    }
    let spending = &shown.spending;
    writeln!(
        text,
        "used       {}, {} in {}",
        counted(spending.tokens, "token"),
        spending.money(),
        counted(spending.calls, "model call")
    )
    .ok();
    writeln!(text, "quoted     {}", Price::in_words(build.quote.as_ref())).ok();
    if let Some(against) = shown.against_quote() {
        writeln!(text, "{}    {against}", came_to(build)).ok();
    }
    if let Some(scope) = &build.exhausted {
        writeln!(text, "budget     {scope} is used up").ok();
    }
    text.push_str(&owned(&shown.owns));
    text.push('\n');
    text.push_str(&tasks(shown));
    if !shown.requirements.is_empty() {
        text.push_str("\n\n");
        text.push_str(&trace::overview(&shown.requirements, &shown.tasks));
    }
    if !shown.objections.is_empty() {
        text.push_str("\n\n");
        text.push_str(&trace::objections(build.id, &shown.objections));
    }
    text
}

/// Says which answers it waits for, and how they are given.
fn awaited(shown: &BuildView) -> String {
    let of_build = shown
        .build
        .question
        .map(|question| (String::new(), question));
    let of_tasks = shown.tasks.iter().filter_map(|task| {
        let about = format!(" about `{}`", task.id);
        Some((about, task.question?))
    });
    let lines = of_build
        .into_iter()
        .chain(of_tasks)
        .map(|(about, question)| {
            let commands = commands_of(last_digits(question));
            format!("waits for  your answer to question {question}{about}: {commands}\n")
        });
    lines.collect()
}

/// Shows the tasks, and below them whose files some of them wait for.
fn tasks(shown: &BuildView) -> String {
    let header = ["task", "state", "restarts", "file", "commit", "why"];
    let rows = shown.tasks.iter().map(|task| {
        [
            task.id.to_string(),
            task.state.to_string(),
            shown.restarts(&task.id).to_string(),
            task.block.file.to_string(),
            task.commit
                .as_ref()
                .map_or("", |commit| commit.short())
                .to_owned(),
            why::task(&shown.build, shown.outage.as_ref(), task),
        ]
    });
    let mut text = output::table(&header, rows);
    for holder in &shown.holders {
        // Writing to a String cannot fail.
        write!(text, "\n{}", holder.in_words()).ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_owns_is_told_with_how_long_and_what_locks_are_for() {
        let paths = |count: usize| -> Vec<RepoPath> {
            let paths = (1..=count).map(|number| RepoPath::parse(&format!("{number}.txt")));
            paths.collect::<Result<_, _>>().unwrap()
        };
        assert_eq!(owned(&paths(0)), "");
        let how_long = "until it is merged or abandoned; locks are held only while a task runs";
        assert_eq!(
            owned(&paths(2)),
            format!("owns       1.txt, 2.txt\n           {how_long}\n")
        );
        let many = owned(&paths(7));
        assert!(many.contains("5.txt and 2 more\n"), "{many}");
    }
}
