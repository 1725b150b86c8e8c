//! Knows the commands that tell others of files, and those that run others with what they are told of.

use super::UNKNOWN;

/// So many values of a variable count, and so many forms of a word or of a command.
pub(super) const MOST_FORMS: usize = 64;
/// Of a text that is longer nothing is known.
pub(super) const LONGEST_BYTES: usize = 2_000;
/// A command of more words is taken as it is written, and so are more words that values stand for.
pub(super) const MOST_WORDS: usize = 1_000;

/// Programs that tell the words that they are given; some are functions of make.
const ECHOES: &[&str] = &[
    "echo",
    "printf",
    "cat",
    "realpath",
    "readlink",
    "wildcard",
    "sort",
    "strip",
    "abspath",
    "firstword",
    "lastword",
];
/// Options of `xargs` that take a word.
const XARGS_VALUES: &str = "IaniLPdEs";
/// The same written out, but for those that say a mark or a file.
const XARGS_LONG_VALUES: &[&str] = &[
    "max-args",
    "max-lines",
    "max-procs",
    "max-chars",
    "delimiter",
    "process-slot-var",
];

/// Says whether a program may tell of files.
pub(super) fn is_lister(program: &str) -> bool {
    matches!(program, "find" | "ls" | "git") || ECHOES.contains(&program)
}

/// Lists what a program tells of, as globs.
pub(super) fn listed(program: &str, arguments: &[String]) -> Vec<String> {
    let mut words = arguments.iter().filter(|word| !word.starts_with('-'));
    let below = |word: &str| format!("{}/*", word.trim_end_matches('/'));
    match program {
        "find" => found(arguments),
        // Of what lies in a directory it tells the names, without that.
        "ls" => words
            .flat_map(|word| [word.clone(), below(word), UNKNOWN.to_string()])
            .collect(),
        "git" if words.next().is_some_and(|verb| verb == "ls-files") => words
            .flat_map(|word| [word.clone(), below(word), format!("**/{word}")])
            .collect(),
        name if ECHOES.contains(&name) => words.cloned().collect(),
        _ => Vec::new(),
    }
}

/// Lists what `find` finds, as globs: all below the places where it looks, or what is called as it asks.
fn found(arguments: &[String]) -> Vec<String> {
    let is_option = |word: &&String| matches!(word.as_str(), "-H" | "-L" | "-P");
    let is_place = |word: &&String| !word.starts_with(['-', '(', ')', '!']);
    let is_short = |word: &&String| word.len() <= LONGEST_BYTES;
    let places = arguments.iter().skip_while(is_option).take_while(is_place);
    let places = places.filter(is_short);
    let mut places: Vec<&str> = places.map(String::as_str).collect();
    if places.is_empty() {
        places.push(".");
    }
    let count = |flags: &[&str]| {
        let flags = arguments
            .iter()
            .filter(|word| flags.contains(&word.as_str()));
        flags.count()
    };
    let pairs = arguments.windows(2).filter(|pair| pair[0] == "-name");
    let names: Vec<&String> = pairs.map(|pair| &pair[1]).collect();
    // Only where each name is one way of several it is known what all of them find.
    let is_known = count(&["!", "-not", "-iname", "-regex", "-path"]) == count(&["-prune"])
        && names.len() + count(&["-prune"]) == count(&["-o", "-or"]) + 1;
    let below = |place: &str| -> Vec<String> {
        if is_known {
            let names = names.iter().copied().filter(is_short).take(MOST_FORMS);
            names.map(|name| format!("{place}/**/{name}")).collect()
        } else {
            vec![format!("{place}/**")]
        }
    };
    let all = places.iter().flat_map(|place| {
        let itself = std::iter::once((*place).to_owned());
        itself.chain(below(place))
    });
    all.take(MOST_FORMS).collect()
}

/// Lists the commands, word by word, that a program runs, in a bounded number; `told` is what it is told of.
pub(super) fn within(program: &str, arguments: &[String], told: &[String]) -> Vec<Vec<String>> {
    if arguments.len() > MOST_WORDS {
        return Vec::new();
    }
    match program {
        "xargs" => by_xargs(arguments, told),
        "find" => by_find(arguments),
        // It runs whatever lies in a directory.
        "run-parts" => {
            let directory = arguments.last();
            let all = directory.map(|directory| format!("{}/*", directory.trim_end_matches('/')));
            all.into_iter().map(|all| vec![all]).collect()
        }
        _ => Vec::new(),
    }
}

fn by_find(arguments: &[String]) -> Vec<Vec<String>> {
    let found = found(arguments);
    let mut commands = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let is_of_command = |word: &&String| !matches!(word.as_str(), ";" | "+");
            let command: Vec<&String> = words.by_ref().take_while(is_of_command).collect();
            let files = found.iter().take(MOST_FORMS - commands.len());
            commands.extend(files.map(|file| with_file(&command, "{}", file)));
        }
    }
    commands
}

fn by_xargs(arguments: &[String], told: &[String]) -> Vec<Vec<String>> {
    let mut files = told.to_vec();
    let mut mark = String::new();
    let mut command: Vec<&String> = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix('-') else {
            command.push(word);
            command.extend(words.by_ref());
            break;
        };
        if let Some(long) = flag.strip_prefix('-') {
            let (name, given) = long.split_once('=').unwrap_or((long, ""));
            let takes_next =
                given.is_empty() && (name == "arg-file" || XARGS_LONG_VALUES.contains(&name));
            let next = if takes_next { words.next() } else { None };
            match name {
                "replace" if given.is_empty() => "{}".clone_into(&mut mark),
                "replace" => given.clone_into(&mut mark),
                "arg-file" => files.push(next.map_or(given, String::as_str).to_owned()),
                _ => {}
            }
            continue;
        }
        let Some(at) = flag.find(|letter: char| XARGS_VALUES.contains(letter)) else {
            continue;
        };
        // The value may stand behind its letter at once, but for `-i`, of which it need not be told.
        let (letter, glued) = flag[at..].split_at(1);
        let next = if glued.is_empty() && letter != "i" {
            words.next()
        } else {
            None
        };
        let value = next.map_or(glued, String::as_str);
        match letter {
            "i" if value.is_empty() => "{}".clone_into(&mut mark),
            "I" | "i" => value.clone_into(&mut mark),
            "a" => files.push(value.to_owned()),
            _ => {}
        }
    }
    if command.is_empty() {
        return Vec::new();
    }
    let with = |file: &String| {
        let mut words = with_file(&command, &mark, file);
        if mark.is_empty() {
            words.push(file.clone());
        }
        words
    };
    files.iter().take(MOST_FORMS).map(with).collect()
}

/// Puts a file in the places of its mark.
fn with_file(command: &[&String], mark: &str, file: &str) -> Vec<String> {
    let put = |word: &&String| {
        if mark.is_empty() || !word.contains(mark) {
            return (*word).clone();
        }
        let is_long = word.len() > LONGEST_BYTES;
        let replaced = (!is_long).then(|| word.replace(mark, file));
        let replaced = replaced.filter(|text| text.len() <= LONGEST_BYTES);
        replaced.unwrap_or_else(|| UNKNOWN.to_string())
    };
    command.iter().map(put).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_commands_tell_of_is_known_by_globs() {
        let rows: &[(&str, &str, &[&str])] = &[
            ("ls", "-1 checks", &["checks", "checks/*", "\u{1}"]),
            ("echo", "-n a.sh checks/*.sh", &["a.sh", "checks/*.sh"]),
            ("git", "ls-files *.sh", &["*.sh", "*.sh/*", "**/*.sh"]),
            ("git", "rev-parse --show-toplevel", &[]),
            ("find", "-type f", &[".", "./**"]),
            (
                "find",
                "-L a b -name *.sh",
                &["a", "a/**/*.sh", "b", "b/**/*.sh"],
            ),
            (
                "find",
                "a ( -name *.sh -o -name *.py )",
                &["a", "a/**/*.sh", "a/**/*.py"],
            ),
            ("find", "a ! -name *.md", &["a", "a/**"]),
            ("find", "a -name *.sh -name b*", &["a", "a/**"]),
            (
                "find",
                ". -path ./target -prune -o -name *.sh -print",
                &[".", "./**/*.sh"],
            ),
            ("wc", "-l a.sh", &[]),
        ];
        for (program, arguments, expected) in rows {
            let found = listed(program, &words(arguments));
            assert_eq!(found, *expected, "{program} {arguments}");
        }
    }

    #[test]
    fn what_lists_make_is_bounded() {
        let many = |word: &str| vec![word.to_owned(); 400];
        let executed = many("-exec sh {} ;").join(" ");
        let line = words(&executed);
        let bounded = [&many("a")[..], &line[..400]].concat();
        assert_eq!(within("find", &bounded, &[]).len(), MOST_FORMS);
        assert_eq!(within("find", &[many("a"), line].concat(), &[]).len(), 0);
        assert_eq!(within("xargs", &words("sh"), &many("a")).len(), MOST_FORMS);
        let marks = ["-I@", "sh", &"@".repeat(LONGEST_BYTES)].map(str::to_owned);
        let found = within("xargs", &marks, &["x".repeat(LONGEST_BYTES)]);
        assert_eq!(found, [["sh".to_owned(), UNKNOWN.to_string()]]);
    }

    #[test]
    fn what_commands_run_with_what_they_are_told_of_is_found() {
        let rows: &[(&str, &str, &[&str])] = &[
            ("xargs", "sh", &["sh x", "sh y"]),
            ("xargs", "-0n1 sh -e", &["sh -e x", "sh -e y"]),
            ("xargs", "-P 4 -I {} sh ./{}", &["sh ./x", "sh ./y"]),
            ("xargs", "-rI@ sh @ -v", &["sh x -v", "sh y -v"]),
            ("xargs", "--max-args 1 --replace sh {}", &["sh x", "sh y"]),
            ("xargs", "-a list sh", &["sh x", "sh y", "sh list"]),
            ("xargs", "--arg-file=list sh", &["sh x", "sh y", "sh list"]),
            ("xargs", "-n1", &[]),
            (
                "find",
                "a -name *.sh -exec sh {} ; -exec grep -q b {} +",
                &["sh a", "sh a/**/*.sh", "grep -q b a", "grep -q b a/**/*.sh"],
            ),
            ("find", "a -name *.sh -print", &[]),
            ("run-parts", "--regex . checks/", &["checks/*"]),
            ("sh", "a.sh", &[]),
        ];
        for (program, arguments, expected) in rows {
            let told = ["x".to_owned(), "y".to_owned()];
            let found = within(program, &words(arguments), &told);
            let found: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
            assert_eq!(found, *expected, "{program} {arguments}");
        }
    }
}
