//! Finds what keeps a check from running, before the work and after it.

use ropewalk_config::settings::PackageManager;
use ropewalk_gate::line::{SimpleCommand, simple_commands};
use ropewalk_gate::obstacle::Obstacle;
use ropewalk_gate::runner::GateRunner;
use ropewalk_gate::trial::Trial;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::task::{Action, TaskBlock};

/// What keeps a check from running.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hindrance {
    pub(super) what: String,
    /// How a plan mends it; none where its build may.
    pub(super) mend: Option<&'static str>,
}

/// How a plan mends a check that needs more than this machine has.
const NAME_ANOTHER: &str = "name a command that this machine has";

impl Hindrance {
    pub(super) fn program(name: &str) -> Self {
        Self {
            what: format!("there is no `{name}` on this machine"),
            mend: Some(NAME_ANOTHER),
        }
    }

    pub(super) fn module(name: &str, may_come: bool) -> Self {
        let missing = format!("Python has no module `{name}`");
        if may_come {
            let what = format!("{missing} before packages are installed");
            return Self { what, mend: None };
        }
        Self {
            what: format!("{missing} on this machine, and this plan makes none"),
            mend: Some(NAME_ANOTHER),
        }
    }

    fn not_executable() -> Self {
        Self {
            what: "what it starts is there, but may not be executed".to_owned(),
            mend: Some(
                "start it by its interpreter, such as `sh check.sh`, or name another command",
            ),
        }
    }
}

/// Finds what keeps the check of a task from running, unless one of the `tasks` brings it.
pub(super) fn find(
    gate: &GateRunner,
    task: &TaskBlock,
    trial: Option<&Trial>,
    tasks: &[&TaskBlock],
) -> Option<Hindrance> {
    if let Some(program) = missing_program(task, |program| gate.finds(program)) {
        return Some(Hindrance::program(&program));
    }
    let obstacle = trial?.obstacle.as_ref()?;
    lasting(task, obstacle, tasks, &gate.package_managers)
}

/// Says what keeps the check of a task from running, unless one of the `tasks` brings it.
fn lasting(
    task: &TaskBlock,
    obstacle: &Obstacle,
    tasks: &[&TaskBlock],
    managers: &[PackageManager],
) -> Option<Hindrance> {
    let working = tasks.iter().filter(|task| task.action != Action::Verify);
    let mut files = working.flat_map(|task| task.files()).map(RepoPath::as_str);
    match obstacle {
        Obstacle::NoModule(module) => {
            let root = module.split('.').next().unwrap_or(module);
            let is_of = |file: &str| {
                let mut parts = file.split('/');
                parts.any(|part| part.strip_suffix(".py").unwrap_or(part) == root)
            };
            let may_come = managers.contains(&PackageManager::Pip);
            (!files.any(is_of)).then(|| Hindrance::module(module, may_come))
        }
        Obstacle::NotExecutable => {
            let commands = simple_commands(&task.validation.command);
            let started = commands.iter().filter_map(SimpleCommand::program);
            let started = started.map(|(program, _)| program.trim_start_matches("./"));
            let started: Vec<&str> = started.filter(|program| !program.is_empty()).collect();
            let is_of = |file: &str| {
                let ends = |program: &&str| {
                    let rest = file.strip_suffix(*program);
                    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
                };
                started.iter().any(ends)
            };
            (!files.any(is_of)).then(Hindrance::not_executable)
        }
    }
}

/// Returns a program that the check starts and that this machine does not have; a script of the repository is no such thing.
fn missing_program(task: &TaskBlock, finds: impl Fn(&str) -> bool) -> Option<String> {
    let line = &task.validation.command;
    // What stands in a document of the shell's own is no command of this line.
    if line.contains("<<") || line.trim().contains('\n') {
        return None;
    }
    let is_plain = |name: &&str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.+".contains(letter);
        name.chars().all(plain) && !BUILT_IN.contains(name)
    };
    let commands = simple_commands(line);
    let mut started = commands.iter().filter_map(SimpleCommand::started);
    let missing = started.find(|name| is_plain(name) && !finds(name));
    missing.map(str::to_owned)
}

/// What a shell does itself.
const BUILT_IN: [&str; 21] = [
    ".", "[", "alias", "case", "cd", "echo", "eval", "exit", "export", "false", "for", "printf",
    "pwd", "read", "return", "set", "shopt", "source", "test", "trap", "true",
];

#[cfg(test)]
mod tests {
    use ropewalk_schemas::task::Validation;

    use super::*;
    use crate::specification::validate::tests::task;

    #[test]
    fn what_the_plan_brings_keeps_no_check_from_running() {
        let file = |path: &str| TaskBlock {
            file: RepoPath::parse(path).unwrap(),
            ..task("A", &[])
        };
        let module = |name: &str| Obstacle::NoModule(name.to_owned());
        let missing = |name: &str| Some(Hindrance::module(name, false));
        let closed = || Some(Hindrance::not_executable());
        let cases = [
            (
                "src/a.py",
                "python3 -m pytest",
                module("pytest"),
                missing("pytest"),
            ),
            (
                "src/habits/cli.py",
                "python3 -m habits.cli",
                module("habits.cli"),
                None,
            ),
            ("habits.py", "python3 -m habits", module("habits"), None),
            ("src/a.py", "./gate.sh", Obstacle::NotExecutable, closed()),
            (
                "src/a.py",
                "./gate.sh src/a.py",
                Obstacle::NotExecutable,
                closed(),
            ),
            ("my-gate.sh", "./gate.sh", Obstacle::NotExecutable, closed()),
            ("gate.sh", "./gate.sh", Obstacle::NotExecutable, None),
            (
                "web/gate.sh",
                "cd web && timeout 9 ./gate.sh",
                Obstacle::NotExecutable,
                None,
            ),
        ];
        for (path, command, obstacle, expected) in cases {
            let maker = file(path);
            let check = TaskBlock {
                validation: Validation::passes(command),
                ..task("B", &["A"])
            };
            let tasks = [&maker, &check];
            let found = lasting(&check, &obstacle, &tasks, &[]);
            assert_eq!(found, expected, "{path} {command}");
        }
        let (maker, obstacle) = (file("src/a.py"), module("pytest"));
        let found = lasting(&maker, &obstacle, &[&maker], &[PackageManager::Pip]);
        assert_eq!(found, Some(Hindrance::module("pytest", true)));
    }

    #[test]
    fn a_program_is_missing_where_neither_shell_machine_nor_repository_has_it() {
        let finds = |name: &str| matches!(name, "cargo" | "env");
        let cases = [
            ("cargo test", None),
            ("A=1 env B=2 nosuch", None),
            ("cd sub && nosuch --all", Some("nosuch")),
            ("test -f a && [ -d b ]", None),
            ("./gate.sh", None),
            ("$RUNNER x", None),
            ("if nosuch; then cargo test; fi", Some("nosuch")),
            ("cargo run <<E\nnosuch\nE", None),
        ];
        for (line, expected) in cases {
            let task = TaskBlock {
                validation: Validation::passes(line),
                ..task("A", &[])
            };
            let found = missing_program(&task, finds);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
