//! Reads code of Python as far as a gate has to know what it runs: the commands that it starts, the files that it names in
//! quotes, and the modules that it imports.
//!
//! It is read as a text: what is put together of values is not known.

use super::super::imports;
use super::programs::runs_something;
use crate::line::{self, SimpleCommand};

/// What code starts programs by.
const STARTERS: &[&str] = &[
    "subprocess",
    "popen",
    "os.system",
    "os.exec",
    "os.spawn",
    "posix_spawn",
    "pty.spawn",
];
/// What it loads modules by that it names in quotes.
const LOADERS: &[&str] = &["import_module", "__import__", "run_module"];
/// What stands for the interpreter that runs the code.
const ITSELF: &str = "sys.executable";
/// The ends of files that may be run; data that code reads is not looked at.
const RUNNABLE: &[&str] = &[
    "py", "sh", "bash", "zsh", "ksh", "mk", "just", "js", "mjs", "cjs", "ts", "rb", "pl", "php",
    "lua", "ps1",
];
/// So far it is looked back on a line for what a text in quotes is given to.
const LOOKED_BACK: usize = 200;
/// The most words that are taken for the parts of one path.
const PARTS: usize = 4;

/// What code of Python says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    /// Commands that run something, their words in quotes one by one.
    pub(super) commands: Vec<SimpleCommand>,
    /// Shell lines that run something.
    pub(super) lines: Vec<String>,
    /// Files that may be run.
    pub(super) paths: Vec<String>,
    /// The modules that it imports, with dots before those that are told from where it lies.
    pub(super) modules: Vec<String>,
    /// The directories in which it starts programs.
    pub(super) directories: Vec<String>,
    /// The directories in which it looks for modules, too.
    pub(super) searched: Vec<String>,
}

impl Code {
    pub(super) fn read(text: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let (starts, loads) = (has(STARTERS), has(LOADERS));
        let literals = literals(text);
        let mut code = Self {
            modules: imports::modules_of_python(text),
            ..Self::default()
        };
        for literal in &literals {
            let before = just_before(text, literal.begin);
            let argument = before.rsplit(',').next().unwrap_or_default();
            if before.contains("sys.path") {
                code.searched.push(literal.text.clone());
            }
            if argument.contains("cwd") || argument.contains("chdir") {
                code.directories.push(literal.text.clone());
            }
            if loads && imports::is_module(&literal.text) {
                code.modules.push(literal.text.clone());
            }
        }
        for phrase in phrases(text, &literals) {
            code.take(phrase, starts);
        }
        code
    }

    /// Takes words that stand one behind the other.
    fn take(&mut self, words: Vec<String>, starts: bool) {
        let runs = |line: &str| line::simple_commands(line).iter().any(runs_something);
        for word in &words {
            if is_runnable(word) {
                self.paths.push(word.clone());
            } else if starts && word.contains(char::is_whitespace) && runs(word) {
                self.lines.push(word.clone());
            }
        }
        if words.len() < 2 {
            return;
        }
        let path = words.join("/");
        let is_path = words.len() <= PARTS && is_runnable(&path);
        let command = SimpleCommand {
            words,
            ..SimpleCommand::default()
        };
        if starts && runs_something(&command) {
            self.commands.push(command);
        } else if is_path {
            self.paths.push(path);
        }
    }
}

/// A text in quotes.
struct Literal {
    begin: usize,
    end: usize,
    text: String,
    /// Whether it only tells people something.
    is_remark: bool,
}

/// Lists the texts in quotes, in order, and what stands for one.
fn literals(code: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = code[at..].chars().next() {
        let rest = &code[at..];
        if letter == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if matches!(letter, '"' | '\'') {
            let literal = literal(code, at);
            at = literal.end;
            found.push(literal);
        } else if rest.starts_with(ITSELF) {
            let end = at + ITSELF.len();
            found.push(Literal {
                begin: at,
                end,
                text: "python".to_owned(),
                is_remark: false,
            });
            at = end;
        } else {
            at += letter.len_utf8();
        }
    }
    found
}

/// Reads the text in quotes that begins with the quote at `at`; one that is not closed ends with its line.
fn literal(code: &str, at: usize) -> Literal {
    let rest = &code[at..];
    let long = rest[..1].repeat(3);
    let is_long = rest.starts_with(&long);
    let mark = if is_long { &long[..] } else { &rest[..1] };
    let mut text = String::new();
    let mut end = at + mark.len();
    while let Some(letter) = code[end..].chars().next() {
        if code[end..].starts_with(mark) {
            end += mark.len();
            break;
        }
        if letter == '\n' && !is_long {
            break;
        }
        end += letter.len_utf8();
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        if let Some(next) = code[end..].chars().next() {
            end += next.len_utf8();
            match next {
                '\n' => {}
                'n' => text.push('\n'),
                next => text.push(next),
            }
        }
    }
    // Letters before the quote say how the text is read.
    let before = &code[..at];
    let plain = before.trim_end_matches(|letter: char| "rRbBuUfF".contains(letter));
    let begin = if at - plain.len() <= 2 {
        plain.len()
    } else {
        at
    };
    Literal {
        begin,
        end,
        text: without_values(&text),
        is_remark: is_long && just_before(code, begin).trim().is_empty(),
    }
}

/// Takes values out that a path begins with, as in `{HERE}/run.sh`.
fn without_values(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        plain.push_str(before);
        let value = behind.split_once("}/");
        let value = value.filter(|(name, _)| !name.contains(char::is_whitespace));
        if value.is_none() {
            plain.push('{');
        }
        rest = value.map_or(behind, |(_, behind)| behind);
    }
    plain.push_str(rest);
    plain
}

/// Returns what stands on a line before a place in it.
fn just_before(code: &str, at: usize) -> &str {
    let before = &code[..at];
    let letters = before.char_indices().rev().take(LOOKED_BACK);
    let of_line = letters.take_while(|(_, letter)| *letter != '\n');
    let begin = of_line.last().map_or(at, |(begin, _)| begin);
    &before[begin..]
}

/// Groups texts in quotes that stand one behind the other, as the words of a command do.
fn phrases(code: &str, literals: &[Literal]) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let (mut end, mut open) = (0, 0);
    for literal in literals.iter().filter(|literal| !literal.is_remark) {
        let link = Link::of(&code[end..literal.begin], &mut open);
        end = literal.end;
        let (Some(phrase), false) = (found.last_mut(), link == Link::Apart) else {
            found.push(vec![literal.text.clone()]);
            continue;
        };
        if link == Link::NextWord {
            phrase.push(literal.text.clone());
        } else if let Some(word) = phrase.last_mut() {
            word.push_str(if link == Link::SamePath { "/" } else { "" });
            word.push_str(&literal.text);
        }
    }
    found
}

/// How a text in quotes goes on from the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    SameWord,
    SamePath,
    NextWord,
    Apart,
}

impl Link {
    /// Reads what stands between them; `open` are the brackets that stand open around a word, as in `str(HERE / "run.sh")`.
    fn of(between: &str, open: &mut usize) -> Self {
        let lines = between.lines();
        let code = lines.map(|line| line.split('#').next().unwrap_or_default());
        let letters = code.flat_map(str::chars);
        let plain: String = letters.filter(|letter| !letter.is_whitespace()).collect();
        let mut plain = plain.as_str();
        while *open > 0
            && let Some(rest) = plain.strip_prefix(')')
        {
            plain = rest;
            *open -= 1;
        }
        let opened = plain.starts_with(',').then(|| opened(plain)).flatten();
        match (plain, opened) {
            ("", _) => Self::SameWord,
            ("/" | ")/", _) => Self::SamePath,
            (_, Some(more)) => {
                *open += more;
                Self::NextWord
            }
            (_, None) => {
                *open = 0;
                Self::Apart
            }
        }
    }
}

/// Counts the brackets that code opens; none where it ends what it stands in, or begins something else.
fn opened(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for letter in code.chars() {
        match letter {
            '[' | ']' | '=' => return None,
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    Some(depth)
}

/// Says whether a text is a path of what may be run.
fn is_runnable(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    let is_named = match name.rsplit_once('.') {
        Some((stem, end)) => !stem.is_empty() && RUNNABLE.contains(&end),
        None => !name.is_empty() && text.contains('/'),
    };
    is_named && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &SimpleCommand) -> String {
        command.words.join(" ")
    }

    /// Reads code and tells all that it says, a line each.
    fn told(code: &str) -> Vec<String> {
        let code = Code::read(code);
        let commands = code.commands.iter().map(words);
        let lines = code.lines.into_iter().chain(code.paths);
        let modules = code
            .modules
            .into_iter()
            .map(|name| format!("import {name}"));
        let places = code.directories.into_iter().chain(code.searched);
        let places = places.map(|place| format!("in {place}"));
        commands.chain(lines).chain(modules).chain(places).collect()
    }

    #[test]
    fn what_code_starts_names_and_imports_is_found() {
        let starts = |line: &str| format!("import subprocess\n{line}\n");
        let rows: &[(String, &[&str])] = &[
            (
                starts("subprocess.run(['sh', 'inner.sh'])"),
                &["sh inner.sh", "inner.sh", "import subprocess"],
            ),
            (
                starts("subprocess.run(f'sh {HERE}/inner.sh', shell=True)"),
                &["sh inner.sh", "import subprocess"],
            ),
            (
                starts("subprocess.run([\n  sys.executable,  # this one\n  '-m', \"checks\",\n], cwd='web')"),
                &["python -m checks", "import subprocess", "in web"],
            ),
            (
                starts("subprocess.check_call(['make', '-C', str(HERE / 'web'), 'test'])"),
                &["make -C web test", "import subprocess"],
            ),
            (
                "exec(open(HERE / 'tools' / 'rules.py').read())".to_owned(),
                &["tools/rules.py"],
            ),
            (
                "sys.path.insert(0, 'lib')\nimport rules, lib.more as more\nfrom . import near\nfrom ..far import (\n    a,\n    b as c,\n)"
                    .to_owned(),
                &[
                    "import rules",
                    "import lib.more",
                    "import .",
                    "import .near",
                    "import ..far",
                    "import ..far.a",
                    "import ..far",
                    "import ..far.b",
                    "in lib",
                ],
            ),
            (
                "import importlib; importlib.import_module('lib.rules')".to_owned(),
                &["import importlib", "import lib.rules"],
            ),
        ];
        for (code, expected) in rows {
            assert_eq!(told(code), *expected, "{code}");
        }
    }

    #[test]
    fn what_only_tells_something_is_not_taken_for_what_is_run() {
        let starts = |line: &str| format!("import subprocess\n{line}\n");
        for code in [
            starts("\"\"\"Run it by `python3 run.py`.\"\"\""),
            starts("print('app.py is wrong')  # sh inner.sh"),
            starts("text = open('expected.json').read()"),
            starts("sys.exit('error in app.py')"),
            "os = 'sh inner.sh'".to_owned(),
        ] {
            let said = told(&code);
            assert!(said.len() <= 1, "{code}: {said:?}");
        }
    }

    #[test]
    fn whatever_stands_there_is_read_to_its_end() {
        for code in [
            "'ä\\",
            "\"\"\"ö",
            "x = f\"{a\" '\n'b' # ü'",
            "{{}/{'}/\\'",
            "sys.executable",
            "from",
            "import a.b..c; from . import (",
        ] {
            assert!(told(code).len() < 10, "{code}");
        }
    }
}
