//! Finds what an interpreter is given to run: what stands in the command itself, or a file.

use super::name_of;

/// Shells that run a line which stands in the command itself behind `-c`.
pub(crate) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
/// Flags of Python that take the word behind them.
pub(crate) const PYTHON_VALUES: &[&str] = &["-X", "-W"];

/// Modules of Python that only look at what they are given.
const LOOKING_MODULES: &[&str] = &[
    "py_compile",
    "compileall",
    "json.tool",
    "mypy",
    "ruff",
    "flake8",
];

/// How an interpreter is told only to look at what it is given.
struct Look {
    names: &'static [&'static str],
    /// The letter of the flag.
    letter: char,
    /// Letters behind which a value stands in the same word.
    glued: &'static str,
    /// Letters behind which a value stands in the same word, or as the next one.
    with_value: &'static str,
}

const LOOKS: &[Look] = &[
    Look {
        names: SHELLS,
        letter: 'n',
        glued: "",
        with_value: "oO",
    },
    Look {
        names: &["node"],
        letter: 'c',
        glued: "",
        with_value: "rCep",
    },
    Look {
        names: &["ruby"],
        letter: 'c',
        glued: "KWFxTi",
        with_value: "ICreE",
    },
    Look {
        names: &["perl"],
        letter: 'c',
        glued: "MmdFxiCD",
        with_value: "IeE",
    },
    Look {
        names: &["php"],
        letter: 'l',
        glued: "",
        with_value: "dcfrtz",
    },
];

impl Look {
    fn of(interpreter: &str) -> Option<&'static Self> {
        let mut looks = LOOKS.iter();
        looks.find(|look| look.names.contains(&interpreter))
    }

    /// Returns the flags of a bundle up to the first one that takes a value: what stands behind that is none.
    fn flags_in<'a>(&self, bundle: &'a str) -> &'a str {
        let takes_value =
            |letter: char| self.glued.contains(letter) || self.with_value.contains(letter);
        let mut parts = bundle.split_inclusive(takes_value);
        parts.next().unwrap_or_default()
    }
}

/// So many lines that are looked into may lie in each other.
pub(crate) const DEEPEST: usize = 3;

/// Returns the name of a program without its version.
pub(crate) fn plain_name(program: &str) -> &str {
    if program == "." {
        return program;
    }
    name_of(program).trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}

/// Returns the flags of a bundle of an interpreter, by its name without a version, less a value that is glued to one.
pub(crate) fn flags_in<'a>(interpreter: &str, bundle: &'a str) -> &'a str {
    Look::of(interpreter).map_or(bundle, |look| look.flags_in(bundle))
}

/// Says whether an interpreter, by its name without a version, only looks at what it is given.
pub(crate) fn only_looks(interpreter: &str, arguments: &[String]) -> bool {
    if interpreter == "python" {
        let given = behind_flag(arguments, ("cm", &[]), PYTHON_VALUES);
        return matches!(given, Some(('m', module)) if LOOKING_MODULES.contains(&module));
    }
    let Some(look) = Look::of(interpreter) else {
        return false;
    };
    let mut words = arguments.iter().map(String::as_str);
    while let Some(bundle) = words.next().and_then(|word| word.strip_prefix('-')) {
        match bundle {
            "-" => return false,
            "-check" if interpreter == "node" => return true,
            "-require" | "-import" | "-loader" if interpreter == "node" => {
                words.next();
            }
            long if long.starts_with('-') => {}
            _ => {
                let flags = look.flags_in(bundle);
                if flags.contains(look.letter) {
                    return true;
                }
                let takes_next = |letter: char| look.with_value.contains(letter);
                if flags.len() == bundle.len() && flags.ends_with(takes_next) {
                    words.next();
                }
            }
        }
    }
    false
}

/// What a shell is given to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellInput<'a> {
    /// A line that stands in the command.
    Line(&'a str),
    /// A file.
    File(&'a str),
}

/// Returns what a shell is given to run; none where it asks.
pub(crate) fn shell_input(arguments: &[String]) -> Option<ShellInput<'_>> {
    let mut words = arguments.iter().map(String::as_str);
    let mut is_line = false;
    while let Some(word) = words.next() {
        if !word.starts_with(['-', '+']) {
            return Some(if is_line {
                ShellInput::Line(word)
            } else {
                ShellInput::File(word)
            });
        }
        if word.starts_with("--") {
            continue;
        }
        is_line |= word.starts_with('-') && word.contains('c');
        // A bundle of flags may end in one that takes a value, as in `-euo pipefail`.
        if word.ends_with(['o', 'O']) {
            words.next();
        }
    }
    None
}

/// Returns the flag behind which an interpreter is told what to run, by its letter, and what that is; none where it runs a
/// file, or asks. A flag that is written out has the first of the letters. The flags `with_value` take what stands behind
/// them, in the same word or as the next one.
pub(crate) fn behind_flag<'a>(
    arguments: &'a [String],
    (letters, long): (&str, &[&str]),
    with_value: &[&str],
) -> Option<(char, &'a str)> {
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let bundle = word.strip_prefix('-')?;
        if long.contains(&word) {
            return Some((letters.chars().next()?, words.next()?));
        }
        if with_value.contains(&word) {
            words.next();
            continue;
        }
        let is_long = bundle.starts_with('-');
        let is_glued = with_value.iter().any(|flag| word.starts_with(flag));
        let found = bundle
            .char_indices()
            .find(|(_, letter)| letters.contains(*letter));
        let Some((at, letter)) = found.filter(|_| !is_long && !is_glued) else {
            continue;
        };
        let rest = &bundle[at + letter.len_utf8()..];
        // `-pe` asks for both; what follows one letter at once is what to run.
        let is_flag = rest.chars().all(|letter| letters.contains(letter));
        let given = if is_flag { words.next()? } else { rest };
        return Some((letter, given));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_shell_is_given_a_line_or_a_file() {
        let rows = [
            ("-c run", Some(ShellInput::Line("run"))),
            ("-ec run", Some(ShellInput::Line("run"))),
            ("-ce run", Some(ShellInput::Line("run"))),
            ("-euo pipefail -c run", Some(ShellInput::Line("run"))),
            ("--norc +e -o errexit -c run", Some(ShellInput::Line("run"))),
            ("run.sh -c", Some(ShellInput::File("run.sh"))),
            ("-euo pipefail run.sh", Some(ShellInput::File("run.sh"))),
            ("-s", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(shell_input(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn an_interpreter_only_looks_where_a_flag_says_so() {
        for (line, expected) in [
            ("perl -Ilib -c a.pl", true),
            ("perl -wc a.pl", true),
            ("perl -Mstrict -I c a.pl", false),
            ("ruby -wc a.rb", true),
            ("ruby -rsocket a.rb", false),
            ("bash --norc -n a.sh", true),
            ("zsh -fn a.sh", true),
            ("bash -eo noexec a.sh", false),
            ("sh a.sh -n", false),
            ("php -d x=1 -l a.php", true),
            ("php a.php -l", false),
            ("node --check a.js", true),
            ("node --require ./c.js a.js -c", false),
            ("python -B -m py_compile a.py", true),
            ("python -m unittest", false),
        ] {
            let all = words(line);
            assert_eq!(only_looks(&all[0], &all[1..]), expected, "{line}");
        }
    }

    #[test]
    fn an_interpreter_is_told_what_to_run_behind_a_flag() {
        let rows = [
            ("-m checks", Some(('m', "checks"))),
            ("-Bm checks -c", Some(('m', "checks"))),
            ("-mchecks", Some(('m', "checks"))),
            ("-X dev -Werror -c code", Some(('c', "code"))),
            ("run.py -m checks", None),
            ("-B", None),
        ];
        for (line, expected) in rows {
            let arguments = words(line);
            let found = behind_flag(&arguments, ("cm", &[]), PYTHON_VALUES);
            assert_eq!(found, expected, "{line}");
        }
    }
}
