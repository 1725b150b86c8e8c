//! Reads the rules of a Makefile and the recipes of a justfile, as far as they decide what an entry does.

use std::collections::BTreeSet;

/// Who reads the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Make,
    Just,
}

/// Variables that decide how every rule is run, in a Makefile or in the environment of what it runs.
const FOR_ALL: &[&str] = &[
    "SHELL",
    ".SHELLFLAGS",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    ".RECIPEPREFIX",
    ".DEFAULT_GOAL",
    "VPATH",
    "PATH",
    "HOME",
    "PYTHONPATH",
    "CARGO_TARGET_DIR",
];
/// What runs as soon as the file is read.
const RUN_AT_ONCE: &[&str] = &[
    "$(shell", "${shell", "$(eval", "${eval", "$(file", "${file", "$(guile", "${guile",
];
/// Targets of make that say nothing about whether a rule runs, or how.
const HARMLESS: &[&str] = &[
    ".PHONY",
    ".PRECIOUS",
    ".INTERMEDIATE",
    ".SECONDARY",
    ".SILENT",
    ".NOTPARALLEL",
    ".DELETE_ON_ERROR",
];
/// First words of lines that hold for the whole file.
const DIRECTIVES_OF_MAKE: &[&str] = &[
    "include", "-include", "sinclude", "export", "unexport", "undefine", "vpath", "load", "-load",
];
const DIRECTIVES_OF_JUST: &[&str] = &[
    "set", "alias", "import", "import?", "mod", "mod?", "unexport",
];
/// Lines of make that leave a rule open.
const CONDITIONS: &[&str] = &["ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"];
/// First words that bring other files in.
const INCLUDES: &[&str] = &["include", "-include", "sinclude", "import", "import?"];

/// A rule with what it needs first.
struct Rule {
    names: Vec<String>,
    needs: Vec<String>,
    text: String,
    /// Whether it runs though there is a file of its name.
    is_forced: bool,
}

struct Assignment {
    name: String,
    value: String,
    line: String,
    /// Whether it holds for every rule, used there or not.
    is_for_all: bool,
}

/// The rules of a file.
pub(super) struct Recipes {
    rules: Vec<Rule>,
    assignments: Vec<Assignment>,
    /// Lines that hold for all rules.
    always: Vec<String>,
    included: Vec<String>,
    reader: Reader,
}

impl Recipes {
    pub(super) fn read(content: &str, reader: Reader) -> Self {
        let content = content.replace("\\\r\n", " ").replace("\\\n", " ");
        let mut file = Self {
            rules: Vec::new(),
            assignments: Vec::new(),
            always: Vec::new(),
            included: Vec::new(),
            reader,
        };
        let (mut in_rule, mut in_definition) = (false, false);
        let mut begins_command = '\t';
        for line in content.lines() {
            let plain = line.trim();
            let first = plain.split_whitespace().next().unwrap_or_default();
            if in_definition {
                in_definition = first != "endef";
                file.always.push(line.to_owned());
                continue;
            }
            let is_set_in = line.starts_with(begins_command)
                || (reader == Reader::Just && line.starts_with([' ', '\t']));
            let is_condition = reader == Reader::Make && is_condition(first);
            if in_rule && (is_set_in || is_condition) {
                if let Some(rule) = file.rules.last_mut() {
                    rule.text.push('\n');
                    rule.text.push_str(line);
                }
                continue;
            }
            if plain.is_empty() || plain.starts_with('#') {
                continue;
            }
            if reader == Reader::Make && without_modifiers(plain).0.starts_with("define ") {
                in_definition = true;
                in_rule = false;
                file.always.push(line.to_owned());
                continue;
            }
            in_rule = file.heading(plain, first);
            let prefix = file.assignments.last();
            let prefix = prefix.filter(|assigned| assigned.name == ".RECIPEPREFIX");
            if let Some(prefix) = prefix {
                begins_command = prefix.value.chars().next().unwrap_or('\t');
            }
        }
        file.put_names();
        file
    }

    /// Reads a line that is no part of a recipe; says whether a rule begins.
    fn heading(&mut self, line: &str, first: &str) -> bool {
        if self.reader == Reader::Make && is_condition(first) {
            self.always.push(line.to_owned());
            return false;
        }
        let (unmarked, is_exported) = without_modifiers(line);
        if let Some((name, value)) = assignment(unmarked) {
            let runs = RUN_AT_ONCE.iter().any(|call| value.contains(call))
                || unmarked.contains("!=")
                || (self.reader == Reader::Just && value.contains('`'));
            self.assignments.push(Assignment {
                is_for_all: is_exported || runs || FOR_ALL.contains(&name),
                name: name.to_owned(),
                value: value.to_owned(),
                line: line.to_owned(),
            });
            return false;
        }
        let directives = match self.reader {
            Reader::Make => DIRECTIVES_OF_MAKE,
            Reader::Just => DIRECTIVES_OF_JUST,
        };
        if INCLUDES.contains(&first) {
            let files = line.split_whitespace().skip(1);
            let files = files.take_while(|word| !word.starts_with('#'));
            let plain = files.map(|file| file.trim_matches(['"', '\'']).to_owned());
            self.included.extend(plain);
        }
        let parted = (!directives.contains(&first))
            .then(|| split_outside(line))
            .flatten();
        let Some((names, rest)) = parted else {
            self.always.push(line.to_owned());
            return false;
        };
        // A variable whose name is a value itself.
        if rest.trim_start_matches(':').starts_with('=') {
            self.always.push(line.to_owned());
            return false;
        }
        let names = match self.reader {
            // What follows the name of a recipe are its parameters.
            Reader::Just => words(names.trim_start_matches('@'))
                .into_iter()
                .take(1)
                .collect(),
            Reader::Make => words(names),
        };
        let (needs, recipe) = match self.reader {
            Reader::Make => rest.split_once(';').unwrap_or((rest, "")),
            Reader::Just => (rest, ""),
        };
        let mut text = line.to_owned();
        if !recipe.trim().is_empty() {
            text.push_str("\n\t");
            text.push_str(recipe.trim());
        }
        self.rules.push(Rule {
            names,
            needs: words(needs.trim_start_matches(':')),
            text,
            is_forced: rest.starts_with(':'),
        });
        true
    }

    /// Puts the values of variables in the places of names.
    fn put_names(&mut self) {
        let put = |names: &[String]| {
            let expanded = names.iter().map(|name| {
                if name.contains('$') {
                    self.expanded(name)
                } else {
                    name.clone()
                }
            });
            expanded.flat_map(|name| words(&name)).collect()
        };
        let rules = self.rules.iter();
        let rules: Vec<(Vec<String>, Vec<String>)> = rules
            .map(|rule| (put(&rule.names), put(&rule.needs)))
            .collect();
        let included = put(&self.included);
        self.included = included;
        for (rule, (names, needs)) in self.rules.iter_mut().zip(rules) {
            (rule.names, rule.needs) = (names, needs);
        }
    }

    /// Lists the files that are read as parts of this one.
    pub(super) fn included(self) -> Vec<String> {
        self.included
    }

    /// Returns all that decides what an entry does; an empty name is the first entry.
    pub(super) fn text(&self, name: &str) -> String {
        let recipes = self.reached(name);
        let used = self.variables(&recipes);
        let all: Vec<String> = used.into_iter().chain(recipes).collect();
        all.join("\n")
    }

    /// Returns the command lines of an entry.
    pub(super) fn commands(&self, name: &str) -> String {
        let recipes = self.reached(name);
        let lines = recipes.iter().flat_map(|recipe| recipe.lines().skip(1));
        let plain =
            lines.map(|line| self.expanded(line.trim().trim_start_matches(['@', '-', '+'])));
        plain.collect::<Vec<_>>().join("\n")
    }

    /// Returns the name of an entry, where make runs nothing for it once there is a file of that name.
    pub(super) fn done_by_file(&self, name: &str) -> Option<String> {
        let name = self.start(name);
        let of_name = |rule: &&Rule| rule.names.contains(&name);
        let mut rules = self.rules.iter().filter(of_name).peekable();
        let needs_none = |rule: &Rule| {
            let needs = rule.needs.iter().take_while(|need| *need != "|");
            !rule.is_forced && needs.count() == 0
        };
        let is_done = self.reader == Reader::Make
            && rules.peek().is_some()
            && !self.is_phony(&name)
            && rules.all(needs_none);
        is_done.then_some(name)
    }

    fn is_phony(&self, name: &str) -> bool {
        let is_phony = |rule: &&Rule| rule.names.iter().any(|name| name == ".PHONY");
        let mut rules = self.rules.iter().filter(is_phony);
        rules.any(|rule| rule.needs.iter().any(|need| need == name))
    }

    /// Returns the entry that is run; an empty name is the first one.
    fn start(&self, name: &str) -> String {
        if !name.is_empty() {
            return name.to_owned();
        }
        let goal = self
            .assignments
            .iter()
            .rfind(|assigned| assigned.name == ".DEFAULT_GOAL");
        if let Some(goal) = goal {
            return goal.value.clone();
        }
        let mut names = self.rules.iter().flat_map(|rule| &rule.names);
        let first = names.find(|name| !name.starts_with('.') && !name.contains('%'));
        first.cloned().unwrap_or_default()
    }

    /// Lists the texts of a rule and of all that it needs, and of those that hold for every rule.
    fn reached(&self, name: &str) -> Vec<String> {
        let special = self.rules.iter().filter(|rule| {
            let names = &mut rule.names.iter();
            self.reader == Reader::Make
                && names.any(|name| name.starts_with('.') && !HARMLESS.contains(&name.as_str()))
        });
        let mut found: Vec<String> = special.map(|rule| rule.text.clone()).collect();
        let mut open = vec![self.start(name)];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            if self.is_phony(&name) {
                found.push(format!(".PHONY: {name}"));
            }
            let of_name = |rule: &&Rule| rule.names.iter().any(|known| is_of(known, &name));
            for rule in self.rules.iter().filter(of_name) {
                found.push(rule.text.clone());
                let needs = rule.needs.iter();
                open.extend(needs.map(|need| need.trim_matches(['(', ')']).to_owned()));
            }
        }
        found
    }

    /// Lists the assignments that texts use, by way of others, too, and what holds for all rules.
    fn variables(&self, texts: &[String]) -> Vec<String> {
        let mut used = BTreeSet::new();
        for text in texts.iter().chain(&self.always) {
            used.extend(names_in(text));
        }
        let all = self.exports_all();
        let mut taken = vec![all; self.assignments.len()];
        loop {
            let mut is_done = true;
            for (assigned, taken) in self.assignments.iter().zip(&mut taken) {
                if !*taken && (assigned.is_for_all || used.contains(assigned.name.as_str())) {
                    used.extend(names_in(&assigned.value));
                    *taken = true;
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        let assigned = self.assignments.iter().zip(taken);
        assigned
            .filter(|(_, taken)| *taken)
            .map(|(assigned, _)| assigned.line.clone())
            .chain(self.always.iter().cloned())
            .collect()
    }

    /// Says whether whatever is run sees every variable.
    fn exports_all(&self) -> bool {
        let mut names = self.rules.iter().flat_map(|rule| &rule.names);
        let mut lines = self.always.iter().map(|line| words(line));
        names.any(|name| name == ".EXPORT_ALL_VARIABLES")
            || lines.any(|words| {
                words == ["export"] || words.starts_with(&["set".into(), "export".into()])
            })
    }

    /// Puts the values of variables in their places.
    fn expanded(&self, line: &str) -> String {
        let mut text = line.to_owned();
        for Assignment { name, value, .. } in &self.assignments {
            for mark in [
                format!("$({name})"),
                format!("${{{name}}}"),
                format!("{{{{{name}}}}}"),
                format!("{{{{ {name} }}}}"),
            ] {
                text = text.replace(&mark, value.trim_matches(['"', '\'']));
            }
        }
        // Where nobody says otherwise, it is whoever reads this.
        text.replace("$(MAKE)", "make").replace("${MAKE}", "make")
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn is_condition(first: &str) -> bool {
    let word = first.split('(').next().unwrap_or(first);
    CONDITIONS.contains(&word)
}

/// Says whether a rule is one for a name, which may lie in its pattern.
fn is_of(rule: &str, name: &str) -> bool {
    match rule.split_once('%') {
        None => rule == name,
        Some((before, after)) => {
            name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        }
    }
}

/// Lists the words of a text that may be names of variables.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let of_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    text.split(move |letter: char| !of_name(letter))
}

/// Parts a line at its first colon that is not in the name of a value.
fn split_outside(line: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, letter) in line.char_indices() {
        match letter {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return Some((&line[..at], &line[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Takes the words from an assignment that say for whom it holds, and says whether it holds for whatever is run.
fn without_modifiers(line: &str) -> (&str, bool) {
    let (mut rest, mut is_exported) = (line, false);
    while let Some((word, behind)) = rest.split_once([' ', '\t'])
        && matches!(word, "export" | "override" | "private" | "unexport")
        && !behind.trim_start().starts_with(['=', ':', '?', '+', '!'])
    {
        is_exported |= word == "export";
        rest = behind.trim_start();
    }
    (rest, is_exported)
}

/// Reads `NAME = value`, with any of the signs of make and just.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(plain)).then(|| (name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::{Reader, Recipes};

    const MAKEFILE: &str = "PYTHON = python3\nPY := $(PYTHON) -B\nOUT = out\n\n.PHONY: test\nall: build\n\ntest: prepare\nifdef CI\n\t$(PY) run.py\nendif\n\nprepare:\n\tmkdir -p out\n\nbuild:\n\tcc -o $(OUT) app.c\n\nunit-%:\n\tpython3 $*.py\n";

    #[test]
    fn whatever_decides_what_a_target_does_is_a_part_of_it() {
        let with = |line: &str| format!("{line}\n{MAKEFILE}");
        let made = |from: &str, to: &str| MAKEFILE.replace(from, to);
        let rows = [
            ("test", with("SHELL := /bin/true"), true),
            ("test", with("override SHELL := /bin/true"), true),
            ("test", with("\tSHELL = /bin/true"), true),
            ("test", with("SHELL \\\n= /bin/true"), true),
            ("test", with("export PATH := ./bin:$(PATH)"), true),
            ("test", with("PATH = ./bin"), true),
            ("test", with("export NODE_OPTIONS = -r ./a.js"), true),
            ("test", with("export OUT"), true),
            ("test", with("MAKEFLAGS += -n"), true),
            ("test", with("GNUMAKEFLAGS = -i"), true),
            ("test", with(".IGNORE:"), true),
            ("test", with(".IGNORE: test"), true),
            ("test", with(".ONESHELL:"), true),
            ("test", with("$(eval SHELL := /bin/true)"), true),
            ("test", with("X := $(eval SHELL := /bin/true)"), true),
            ("test", with("X := $(shell rm run.py)"), true),
            ("test", with("$(NAME)LL := /bin/true"), true),
            ("test", with("include other.mk"), true),
            ("test", with("-include other.mk"), true),
            ("test", with("define SHELL\n/bin/true\nendef"), true),
            ("test", with("%: PY = true"), true),
            (
                "test",
                made("test: prepare", "test: PY = true\ntest: prepare"),
                true,
            ),
            ("test", made("\t$(PY)", "\t-$(PY)"), true),
            ("test", made("\t$(PY) run.py", "\ttrue"), true),
            ("test", made("python3 -B", "true"), false),
            ("test", made("PYTHON = python3", "PYTHON = true"), true),
            ("test", made(".PHONY: test", ".PHONY: all"), true),
            ("unit-a", made("python3 $*.py", "true"), true),
            ("", with(".DEFAULT_GOAL := prepare"), true),
            // What decides about others.
            ("test", made("cc -o", "cc -O2 -o"), false),
            ("test", made("OUT = out", "OUT = app"), false),
            ("test", with("SOURCES = a.c \\\n  b.c"), false),
            ("test", with("export_dir = out"), false),
            ("test", made(".PHONY: test", ".PHONY: test all"), false),
            (
                "test",
                made("build:\n", "build:\nifdef DEBUG\n\techo\nendif\n"),
                false,
            ),
        ];
        for (name, after, expected) in rows {
            let text = |content: &str| Recipes::read(content, Reader::Make).text(name);
            assert_eq!(text(MAKEFILE) != text(&after), expected, "{name}: {after}");
        }
    }

    #[test]
    fn whatever_decides_what_a_recipe_does_is_a_part_of_it() {
        let justfile = "python := 'python3'\n\n[private]\ntest: (prepare 'a')\n    {{python}} run.py\n\nprepare what:\n    mkdir {{what}}\n\nbuild:\n    cc app.c\n";
        let with = |line: &str| format!("{line}\n{justfile}");
        let made = |from: &str, to: &str| justfile.replace(from, to);
        let rows = [
            (with("set shell := ['true']"), true),
            (with("export PATH := './bin'"), true),
            (with("x := `rm run.py`"), true),
            (with("import 'other.just'"), true),
            (made("'python3'", "'true'"), true),
            (made("mkdir", "true"), true),
            (made("cc app.c", "cc -O2 app.c"), false),
            (with("out := 'out'"), false),
        ];
        for (after, expected) in rows {
            let text = |content: &str| Recipes::read(content, Reader::Just).text("test");
            assert_eq!(text(justfile) != text(&after), expected, "{after}");
        }
    }

    #[test]
    fn files_that_are_read_as_parts_are_named() {
        let file = "DIR = mk\ninclude $(DIR)/a.mk b.mk # both\n-include c.mk\n";
        let included = Recipes::read(file, Reader::Make).included();
        assert_eq!(included, ["mk/a.mk", "b.mk", "c.mk"]);
        let file = "import? 'a.just'\n";
        assert_eq!(Recipes::read(file, Reader::Just).included(), ["a.just"]);
    }

    #[test]
    fn a_target_that_needs_nothing_is_done_by_a_file_of_its_name() {
        let rows = [
            ("test:\n\t./run\n", "test", true),
            ("test: | out\n\t./run\n", "", true),
            ("test: out\n\t./run\n", "test", false),
            ("test::\n\t./run\n", "test", false),
            (".PHONY: test\ntest:\n\t./run\n", "test", false),
            ("build:\n\tcc\n", "test", false),
        ];
        for (file, name, expected) in rows {
            let done = Recipes::read(file, Reader::Make).done_by_file(name);
            assert_eq!(done.is_some(), expected, "{file}");
        }
    }
}
