//! Reads a shell line, as far as a gate has to know what it runs.

mod inline;
mod pipes;
mod tokens;

pub(crate) use inline::{
    DEEPEST, PYTHON_VALUES, SHELLS, ShellInput, behind_flag, plain_name, shell_input,
};
pub use pipes::{BashLine, has_pipeline, rewritten};
pub(crate) use tokens::substitutions;
use tokens::{Token, tokens};

/// What only says how the program behind it is run.
const WRAPPERS: &[&str] = &[
    "env", "exec", "command", "nice", "nohup", "time", "timeout", "stdbuf", "npx", "bunx",
    "xvfb-run",
];

/// As [`WRAPPERS`], where a verb says so.
const WRAPPING_VERBS: &[(&str, &str)] = &[
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("pdm", "run"),
    ("bundle", "exec"),
    ("pnpm", "exec"),
    ("npm", "exec"),
];

/// Words of the shell that stand before a command.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "{", "!", "time", "fi", "done", "}",
];

/// A command of a shell line, without its redirections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments, without quotes.
    pub words: Vec<String>,
    /// The files that it reads by redirection.
    pub reads: Vec<String>,
}

impl SimpleCommand {
    /// Returns the program that the shell starts, which may be one that only starts another.
    pub fn started(&self) -> Option<&str> {
        let mut words = self.words.iter().map(String::as_str);
        words.find(|word| !is_assignment(word) && !KEYWORDS.contains(word))
    }

    /// Returns the program that is run in the end, and its arguments.
    pub fn program(&self) -> Option<(&str, &[String])> {
        let mut words = self.words.as_slice();
        loop {
            let (first, rest) = words.split_first()?;
            let name = name_of(first);
            words = if is_assignment(first) || KEYWORDS.contains(&first.as_str()) {
                rest
            } else if WRAPPERS.contains(&name) {
                without_options(rest)
            } else if let Some(verb) = rest.first()
                && WRAPPING_VERBS.contains(&(name, verb.as_str()))
            {
                without_options(&rest[1..])
            } else {
                return Some((first, rest));
            };
        }
    }
}

/// Returns the last part of a program's path.
pub(crate) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Leaves out the options of a wrapper, and the numbers that it takes.
fn without_options(words: &[String]) -> &[String] {
    let is_option =
        |word: &&String| word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let options = words.iter().take_while(is_option);
    &words[options.count()..]
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.is_empty()
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
            && name.chars().all(plain)
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Lists the commands of a shell line, in order; one that cannot be understood is taken word by word.
pub fn simple_commands(line: &str) -> Vec<SimpleCommand> {
    let Some(tokens) = tokens(line) else {
        return vec![SimpleCommand {
            words: line.split_whitespace().map(str::to_owned).collect(),
            reads: Vec::new(),
        }];
    };
    let mut commands = vec![SimpleCommand::default()];
    let mut redirected = None;
    for token in tokens {
        match token {
            Token::Word { text, .. } => {
                let Some(command) = commands.last_mut() else {
                    continue;
                };
                match redirected.take() {
                    Some("<") => command.reads.push(text),
                    Some(_) => {}
                    None => command.words.push(text),
                }
            }
            Token::Operator { text, .. } if text.contains(['<', '>']) => redirected = Some(text),
            Token::Operator { .. } => commands.push(SimpleCommand::default()),
        }
    }
    commands.retain(|command| !command.words.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(line: &str) -> Vec<String> {
        let commands = simple_commands(line);
        commands
            .iter()
            .filter_map(SimpleCommand::program)
            .map(|(program, arguments)| [&[program.to_owned()], arguments].concat().join(" "))
            .collect()
    }

    #[test]
    fn the_programs_of_a_line_are_found_behind_what_wraps_them() {
        let rows: &[(&str, &[&str])] = &[
            ("cargo test && ./check", &["cargo test", "./check"]),
            (
                "sh 'my check.sh' | grep -q \"a b\"",
                &["sh my check.sh", "grep -q a b"],
            ),
            ("A=1 env -i B=2 timeout -k 3 60 make test", &["make test"]),
            (
                "if test -f a; then npx --yes jest; fi",
                &["test -f a", "jest"],
            ),
            (
                "( cd web; poetry run pytest -q ) >log 2>&1 </dev/null",
                &["cd web", "pytest -q"],
            ),
            ("! grep x a # sh b", &["grep x a"]),
            (
                "test \"$(cat a | wc -l)\" = 3",
                &["test $(cat a | wc -l) = 3"],
            ),
            ("echo 'unterminated", &["echo 'unterminated"]),
        ];
        for (line, expected) in rows {
            assert_eq!(programs(line), *expected, "{line}");
        }
    }

    #[test]
    fn the_lines_that_a_shell_runs_to_make_a_word_are_found() {
        let rows: &[(&str, &[&str])] = &[
            ("$(sh a.sh)", &["sh a.sh"]),
            ("x=`sh a.sh`.$(cat \"$(b)\")", &["sh a.sh", "cat \"$(b)\""]),
            ("${x:-$(sh a.sh)} <(sh b.sh)", &["sh a.sh", "sh b.sh"]),
            ("ä$(ö", &[]),
            ("$x $5 < y", &[]),
        ];
        for (word, expected) in rows {
            assert_eq!(substitutions(word), *expected, "{word}");
        }
    }

    #[test]
    fn a_file_that_is_read_by_redirection_is_kept_apart() {
        let found = simple_commands("sqlite3 :memory: < a.sql > out 2>/dev/null");
        assert_eq!(found[0].words, ["sqlite3", ":memory:"]);
        assert_eq!(found[0].reads, ["a.sql"]);
    }

    /// A line is understood or not, and one that is rewritten only gains what looks after its pipelines.
    #[test]
    fn fuzz_shell() {
        let check = |input: &[u8]| {
            let line = String::from_utf8_lossy(input);
            let commands = simple_commands(&line);
            let programs = commands.iter().filter_map(SimpleCommand::program).count();
            let words = commands.iter().flat_map(|command| &command.words);
            for inner in words.flat_map(|word| substitutions(word)) {
                assert!(inner.len() < line.len());
            }
            let written = match rewritten(&line) {
                BashLine::AsIs => 0,
                BashLine::Strict => 1,
                BashLine::Line(text) => {
                    assert!(has_pipeline(&line));
                    assert!(text.len() > line.len());
                    2
                }
            };
            format!("{} {programs} {written}", commands.len().min(9))
        };
        let words = [
            "|", "||", "&&", ";", "$(", ")", "`", "'", "\"", "\\", "<<E\n", "E\n", "#", "{ ", "}",
            "if ", "then ", "fi", "case ", "in ", "esac", "2>&1", "!", "for ", "do ", "done", "&",
        ];
        ropewalk_tests::fuzz::Target {
            name: "shell",
            words: &words,
            check: &check,
        }
        .run();
    }
}
