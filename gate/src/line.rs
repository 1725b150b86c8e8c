//! Reads a shell line, as far as a gate has to know what it runs.

mod inline;
mod lists;
mod pipes;
mod tokens;
mod variables;

pub(crate) use inline::{
    DEEPEST, PYTHON_VALUES, SHELLS, ShellInput, behind_flag, flags_in, only_looks, plain_name,
    shell_input,
};
pub use pipes::{BashLine, has_pipeline, rewritten};
pub(crate) use tokens::substitutions;
use tokens::{DEEPEST_NESTING, Token, tokens};
pub(crate) use variables::Variables;

/// Stands in a word for whatever is not known of it; no path of a repository has such a letter.
pub(crate) const UNKNOWN: char = '\u{1}';

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
    /// Whether it reads what the command before it writes.
    pub is_piped: bool,
    /// In how many shells it runs that the line begins in brackets, in a bounded number.
    pub depth: usize,
    /// How many of these the command before it runs in, too.
    pub kept: usize,
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
            ..SimpleCommand::default()
        }];
    };
    let mut commands = vec![SimpleCommand::default()];
    let mut redirected = None;
    let (mut depth, mut kept) = (0_usize, 0_usize);
    for token in tokens {
        match token {
            Token::Word { text, .. } => {
                let Some(command) = commands.last_mut() else {
                    continue;
                };
                match redirected.take() {
                    Some("<") => command.reads.push(text),
                    Some(_) => {}
                    None => {
                        if command.words.is_empty() {
                            command.kept = kept;
                            kept = depth;
                        }
                        command.words.push(text);
                    }
                }
            }
            Token::Operator { text, .. } if text.contains(['<', '>']) => redirected = Some(text),
            Token::Operator { text, .. } => {
                depth = match text {
                    "(" => depth + 1,
                    ")" => depth.saturating_sub(1),
                    _ => depth,
                };
                kept = kept.min(depth);
                // A pipeline may go on behind a bracket, or in the next line.
                let goes_on = |last: &SimpleCommand| last.is_piped && last.words.is_empty();
                let is_piped = matches!(text, "|" | "|&") || commands.last().is_some_and(goes_on);
                commands.push(SimpleCommand {
                    is_piped,
                    depth: depth.min(DEEPEST_NESTING),
                    ..SimpleCommand::default()
                });
            }
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

    /// A program, whether it reads from a pipe, and in how many shells within others it runs.
    type Told = (&'static str, bool, usize);

    #[test]
    fn what_reads_from_a_pipe_and_what_runs_in_a_shell_of_its_own_is_told() {
        let rows: &[(&str, &[Told])] = &[
            (
                "a | b && c",
                &[("a", false, 0), ("b", true, 0), ("c", false, 0)],
            ),
            (
                "a |\n b; c",
                &[("a", false, 0), ("b", true, 0), ("c", false, 0)],
            ),
            (
                "a |& ( b ; c )",
                &[("a", false, 0), ("b", true, 1), ("c", false, 1)],
            ),
            (
                "(a; (b); c); d",
                &[
                    ("a", false, 1),
                    ("b", false, 2),
                    ("c", false, 1),
                    ("d", false, 0),
                ],
            ),
            ("f() { a; }", &[("f", false, 0), ("{", false, 0)]),
        ];
        let kept = |line: &str| -> Vec<usize> {
            let commands = simple_commands(line);
            commands.iter().map(|command| command.kept).collect()
        };
        assert_eq!(kept("(a; b); (c; (d)); e"), [0, 1, 0, 1, 0]);
        for (line, expected) in rows {
            let commands = simple_commands(line);
            let found = commands.iter().filter(|command| command.words != ["}"]);
            let found: Vec<(&str, bool, usize)> = found
                .map(|command| (command.words[0].as_str(), command.is_piped, command.depth))
                .collect();
            assert_eq!(found, *expected, "{line}");
        }
    }

    #[test]
    fn what_lies_too_deep_in_others_is_not_understood_and_asks_for_no_stack() {
        for word in ["\"$(", "`\"$(", "${", "$(", "<(\"$("] {
            let line = word.repeat(20_000);
            assert_eq!(simple_commands(&line).len(), 1, "{word}");
            assert!(substitutions(&line).len() < 100, "{word}");
        }
        let closed = format!("{}sh a.sh{}", "${x:-".repeat(9_000), "}".repeat(9_000));
        assert_eq!(substitutions(&closed), [""; 0]);
        let brackets = format!("{}sh a.sh", "(".repeat(20_000));
        assert_eq!(simple_commands(&brackets)[0].depth, DEEPEST_NESTING);
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
