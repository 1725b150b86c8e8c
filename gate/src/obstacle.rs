//! Says what kept a check from running at all, where no work on its task brings that by itself.

use ropewalk_schemas::attempt::CheckRun;

/// What a shell ends with where it finds a program and may not start it.
pub(crate) const NOT_EXECUTABLE: i32 = 126;

/// What a check lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Python has no module of this name, which `-m` was to run.
    NoModule(String),
    /// What it starts is there, and may not be executed.
    NotExecutable,
}

/// Returns what kept a check that failed from running.
pub(crate) fn of(run: &CheckRun) -> Option<Obstacle> {
    let ran = run.tests.as_ref();
    if run.exit_code? == 0 || ran.is_some_and(|tests| tests.passed + tests.failed > 0) {
        return None;
    }
    if run.exit_code == Some(NOT_EXECUTABLE) {
        return Some(Obstacle::NotExecutable);
    }
    let module = run.output.lines().find_map(missing_module)?;
    Some(Obstacle::NoModule(module.to_owned()))
}

/// Reads what an interpreter says that finds no module to run; a failed import says it otherwise.
fn missing_module(line: &str) -> Option<&str> {
    let (program, rest) = line.split_once(": No module named ")?;
    let name = program.rsplit(['/', '\\']).next()?.trim();
    let is_interpreter = ["python", "pypy"].iter().any(|one| name.starts_with(one));
    let module = rest.split([';', ' ']).next()?.trim_matches(['\'', '"']);
    (is_interpreter && !module.is_empty()).then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::count;

    #[test]
    fn what_keeps_a_check_from_running_is_told_from_what_it_finds() {
        let module = |name: &str| Some(Obstacle::NoModule(name.to_owned()));
        let rows = [
            (
                1,
                "/usr/bin/python3: No module named pytest",
                module("pytest"),
            ),
            (
                1,
                "a/.venv/bin/python3.12: No module named 'habits'",
                module("habits"),
            ),
            (
                1,
                "python3: No module named habits.__main__; 'habits' is a package and cannot be directly executed",
                module("habits.__main__"),
            ),
            (1, "ModuleNotFoundError: No module named 'requests'", None),
            (0, "/usr/bin/python3: No module named pytest", None),
            (
                1,
                "/usr/bin/python3: No module named pytest\nRan 1 test in 0.1s\n\nFAILED (failures=1)",
                None,
            ),
            (
                126,
                "sh: 1: ./gate.sh: Permission denied",
                Some(Obstacle::NotExecutable),
            ),
            (1, "cat: a.txt: Permission denied", None),
        ];
        for (code, output, expected) in rows {
            let run = CheckRun {
                name: "validation".to_owned(),
                level: None,
                kind: None,
                command: "check".to_owned(),
                exit_code: Some(code),
                duration_ms: 1,
                tests: count(output, None),
                flaky: Vec::new(),
                output: output.to_owned(),
            };
            assert_eq!(of(&run), expected, "{output}");
        }
    }
}
