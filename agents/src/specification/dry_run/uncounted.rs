//! Finds checks whose tests are to be counted, and whose output tells no number that anybody reads.

use ropewalk_gate::judge::Ruling;
use ropewalk_gate::line::{SimpleCommand, simple_commands};
use ropewalk_gate::trial::Trial;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::task::{Action, TaskBlock};

use super::DryRun;

/// What follows from a check whose tests were not counted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CountFinding {
    /// The plan has to be mended: the check holds otherwise, so that nothing of the work would make it say more.
    Fault(String),
    /// People should know: what the plan changes, or what failed before the end, may be why.
    Note(String),
}

impl CountFinding {
    pub(super) fn tell(self, dry: &mut DryRun) {
        match self {
            Self::Fault(told) => dry.faults.push(told),
            Self::Note(told) => dry.notes.push(told),
        }
    }
}

/// Returns what follows where the check of a task asks for tests that nobody could count; one of the `tasks` may make them count.
pub(super) fn find(task: &TaskBlock, trial: &Trial, tasks: &[&TaskBlock]) -> Option<CountFinding> {
    let Ruling::Fails { class, .. } = &trial.ruling else {
        return None;
    };
    if !trial.uncounted || *class != FailureClass::ValidationFailed {
        return None;
    }
    let (id, validation) = (&task.id, &task.validation);
    let told = format!(
        "the check of task `{id}`, `{}`, is not counted: no test runner that is known speaks in its output, and `{}` holds only where one does",
        validation.command, validation.expected
    );
    Some(if trial.ended_well && !brings(&validation.command, tasks) {
        CountFinding::Fault(format!(
            "{told}; name the runner itself, so that it says each test or their number (such as `go test -v`), or expect `exit 0` of a \
             check that fails before the work"
        ))
    } else {
        CountFinding::Note(format!("{told} after the work"))
    })
}

/// Says whether one of the tasks writes what the line starts: a script that it names, or the file that its tool reads.
fn brings(line: &str, tasks: &[&TaskBlock]) -> bool {
    let commands = simple_commands(line);
    let words: Vec<&str> = commands
        .iter()
        .flat_map(|command| command.words.iter().map(String::as_str))
        .map(|word| word.trim_start_matches("./"))
        .filter(|word| !word.is_empty())
        .collect();
    let started = commands.iter().filter_map(SimpleCommand::program);
    let read: Vec<&str> = started
        .flat_map(|(program, _)| read_by(program))
        .copied()
        .collect();
    let working = tasks.iter().filter(|task| task.action != Action::Verify);
    let mut files = working.flat_map(|task| task.files()).map(RepoPath::as_str);
    files.any(|file| {
        let name = file.rsplit('/').next().unwrap_or(file);
        let is_named = |word: &&str| {
            let rest = file.strip_suffix(*word);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        read.contains(&name) || words.iter().any(is_named)
    })
}

/// Returns the files in which a tool finds what it is to run.
fn read_by(program: &str) -> &'static [&'static str] {
    match program.rsplit('/').next().unwrap_or(program) {
        "make" | "gmake" => &["Makefile", "makefile", "GNUmakefile"],
        "just" => &["justfile", "Justfile", ".justfile"],
        "npm" | "pnpm" | "yarn" | "bun" => &["package.json"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::attempt::Proof;
    use ropewalk_schemas::task::{Expectation, Validation};

    use super::*;
    use crate::specification::validate::tests::task;

    fn of(command: &str, file: &str) -> TaskBlock {
        TaskBlock {
            file: RepoPath::parse(file).unwrap(),
            validation: Validation {
                expected: Expectation::Tests(5),
                ..Validation::passes(command)
            },
            ..task("A", &[])
        }
    }

    fn trial(class: FailureClass, uncounted: bool, ended_well: bool) -> Trial {
        Trial {
            ruling: Ruling::Fails {
                class,
                finding: String::new(),
            },
            proof: Proof::TooFewTests,
            selected_no_test: false,
            uncounted,
            ended_well,
            obstacle: None,
        }
    }

    #[test]
    fn tests_that_nobody_counts_are_a_fault_unless_the_plan_may_make_them_count() {
        let held = trial(FailureClass::ValidationFailed, true, true);
        let failed = trial(FailureClass::ValidationFailed, true, false);
        for (command, file, trial, is_fault) in [
            ("sh tests/all.sh", "src/a.rs", &held, true),
            ("make test", "src/a.rs", &held, true),
            ("make test", "Makefile", &held, false),
            ("sh tests/all.sh", "tests/all.sh", &held, false),
            ("cd web && ./all.sh", "web/all.sh", &held, false),
            ("npm test", "web/package.json", &held, false),
            ("sh tests/all.sh", "src/a.rs", &failed, false),
        ] {
            let task = of(command, file);
            let found = find(&task, trial, &[&task]).unwrap();
            let (told, fault) = match &found {
                CountFinding::Fault(told) => (told, true),
                CountFinding::Note(told) => (told, false),
            };
            assert_eq!(fault, is_fault, "{command} {file}");
            assert!(told.contains("is not counted: "), "{told}");
        }
        let task = of("sh tests/all.sh", "src/a.rs");
        for trial in [
            trial(FailureClass::ValidationFailed, false, true),
            trial(FailureClass::SyntaxError, true, false),
            trial(FailureClass::Timeout, true, false),
        ] {
            assert_eq!(find(&task, &trial, &[&task]), None, "{trial:?}");
        }
    }
}
