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
/// So long a text may grow by the values that are put into it.
const LONGEST_BYTES: usize = 64 * 1024;

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
    /// What variables are given for one rule alone, and line by line.
    beside: Vec<(String, String)>,
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
            beside: Vec::new(),
            always: Vec::new(),
            included: Vec::new(),
            reader,
        };
        let mut in_rule = false;
        // The variable that is defined line by line.
        let mut definition: Option<String> = None;
        let mut begins_command = '\t';
        for line in content.lines() {
            let plain = line.trim();
            let first = plain.split_whitespace().next().unwrap_or_default();
            if let Some(name) = &definition {
                if first == "endef" {
                    definition = None;
                } else {
                    file.beside.push((name.clone(), plain.to_owned()));
                }
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
            if reader == Reader::Make
                && let Some(name) = without_modifiers(plain).0.strip_prefix("define ")
            {
                definition = Some(words(name).into_iter().next().unwrap_or_default());
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
            let files = words(line).into_iter().skip(1);
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
        if self.reader == Reader::Make
            && let Some((name, value)) =
                assignment(without_modifiers(rest.trim_start_matches(':').trim_start()).0)
        {
            self.beside.push((name.to_owned(), value.to_owned()));
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

    /// Lists what variables are given, with their names.
    pub(super) fn assignments(self) -> Vec<(String, String)> {
        let assigned = self.assignments.into_iter().map(|assigned| {
            let value = match self.reader {
                Reader::Make => assigned.value.split(" #").next().unwrap_or_default(),
                Reader::Just => assigned.value.trim_matches(['"', '\'']),
            };
            (assigned.name, value.to_owned())
        });
        assigned.chain(self.beside).collect()
    }

    /// Lists the files that are read as parts of this one.
    pub(super) fn included(self) -> Vec<String> {
        self.included
    }

    /// Returns all that decides what an entry does; an empty name is the first entry.
    pub(super) fn text(&self, name: &str) -> String {
        let (rules, phony) = self.reached(name);
        let recipes = rules.into_iter().map(|rule| rule.text.clone());
        let phony = phony.iter().map(|name| format!(".PHONY: {name}"));
        let recipes: Vec<String> = recipes.chain(phony).collect();
        let used = self.variables(&recipes);
        let all: Vec<String> = used.into_iter().chain(recipes).collect();
        all.join("\n")
    }

    /// Returns the command lines of an entry as a shell reads them, but for the variables of the file.
    pub(super) fn commands(&self, name: &str) -> String {
        let (rules, _) = self.reached(name);
        let lines = rules.into_iter().flat_map(|rule| {
            let lines = rule.text.lines().skip(1);
            lines.map(move |line| self.as_shell(rule, line))
        });
        lines.collect::<Vec<String>>().join("\n")
    }

    fn as_shell(&self, rule: &Rule, line: &str) -> String {
        let line = line.trim().trim_start_matches(['@', '-', '+']);
        match self.reader {
            Reader::Make => with_names_of(rule, line),
            Reader::Just => line.replace("{{", "${").replace("}}", "}"),
        }
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

    /// Lists a rule and all that it needs, with those that hold for every rule, and which of their names are no files.
    fn reached(&self, name: &str) -> (Vec<&Rule>, Vec<String>) {
        let special = self.rules.iter().filter(|rule| {
            let names = &mut rule.names.iter();
            self.reader == Reader::Make
                && names.any(|name| name.starts_with('.') && !HARMLESS.contains(&name.as_str()))
        });
        let mut found: Vec<&Rule> = special.collect();
        let mut phony = Vec::new();
        let mut open = vec![self.start(name)];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let of_name = |rule: &&Rule| rule.names.iter().any(|known| is_of(known, &name));
            for rule in self.rules.iter().filter(of_name) {
                found.push(rule);
                let needs = rule.needs.iter();
                open.extend(needs.map(|need| need.trim_matches(['(', ')']).to_owned()));
            }
            if self.is_phony(&name) {
                phony.push(name);
            }
        }
        (found, phony)
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

    /// Puts the values of variables in their places in a name.
    fn expanded(&self, line: &str) -> String {
        let mut text = line.to_owned();
        for Assignment { name, value, .. } in &self.assignments {
            for mark in [
                format!("$({name})"),
                format!("${{{name}}}"),
                format!("{{{{{name}}}}}"),
                format!("{{{{ {name} }}}}"),
            ] {
                let value = value.trim_matches(['"', '\'']);
                let grown = text.matches(&mark).count() * value.len();
                if text.len() + grown <= LONGEST_BYTES {
                    text = text.replace(&mark, value);
                }
            }
        }
        text
    }
}

/// Cuts a text into its words; what stands in the brackets behind a `$` belongs to one.
fn words(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut depth, mut before) = (0_usize, ' ');
    for letter in text.chars() {
        match letter {
            '(' | '{' if depth > 0 || before == '$' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = letter;
        if depth == 0 && letter.is_whitespace() {
            found.push(String::new());
        } else if let Some(word) = found.last_mut() {
            word.push(letter);
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// Puts the names of a rule and of what it needs in the places of the signs by which its recipe says them; what a pattern stands for
/// is a glob.
fn with_names_of(rule: &Rule, line: &str) -> String {
    let glob = |names: &[String]| names.join(" ").replace('%', "*");
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('$') {
        text.push_str(before);
        let mut letters = behind.chars();
        let put = match letters.next() {
            Some('$') => "$".to_owned(),
            Some('<') => glob(rule.needs.get(..1).unwrap_or_default()),
            Some('^' | '+' | '?') => glob(&rule.needs),
            Some('@') => glob(rule.names.get(..1).unwrap_or_default()),
            _ => {
                text.push('$');
                rest = behind;
                continue;
            }
        };
        if text.len() + put.len() > LONGEST_BYTES {
            rest = behind;
            continue;
        }
        text.push_str(&put);
        rest = letters.as_str();
    }
    text + rest
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
mod tests;
