//! Follows what is run of a file with entries, such as a target of a Makefile, and of a directory.

use super::super::entries;
use super::globs::{is_literal, target};
use super::programs::{EntryRun, Language, joined, language_of};
use super::{Entry, Place, Reach};
use crate::line::Variables;

impl Reach {
    /// Notes the files that a program may run of a directory, and follows them.
    pub(super) fn directory(
        &mut self,
        place: &Place<'_>,
        (program, word): (&str, &str),
        searched: &[String],
    ) {
        // Of what is not known at all, it is not known what lies in it.
        if target(&place.directory, word).is_none() {
            return;
        }
        if language_of(program) == Some(Language::Python) {
            for path in self.note_run(place, &format!("{word}/__main__.py")) {
                if !place.inner && place.tree.text(&path, place.by_gate).is_some() {
                    self.program(place, &path, searched);
                }
            }
            return;
        }
        let package = "package.json".to_owned();
        let manifest = target(&place.directory, &format!("{word}/{package}"));
        let manifest = manifest.and_then(|path| place.tree.text(&path, place.by_gate));
        let main = manifest.and_then(|text| entries::main_file(&text));
        let main = main.iter().flat_map(|main| {
            let ends = ["", ".*", "/index.*"].into_iter();
            ends.map(move |end| format!("{main}{end}"))
        });
        for file in main.chain(["index.*".to_owned()]) {
            self.note_run(place, &format!("{word}/{file}"));
        }
        let run = EntryRun {
            directory: word.to_owned(),
            files: vec![package],
            names: vec![entries::MAIN.to_owned()],
            assigned: Vec::new(),
        };
        self.entry(place, &run);
    }

    /// Follows an entry of a file into the lines that it runs.
    pub(super) fn entry(&mut self, place: &Place<'_>, run: &EntryRun) {
        for directory in self.directories(place, &run.directory) {
            let place = Place {
                directory,
                ..*place
            };
            self.entry_here(&place, run);
        }
    }

    fn entry_here(&mut self, place: &Place<'_>, run: &EntryRun) {
        let mut candidates = Vec::new();
        for file in &run.files {
            match target(&place.directory, file) {
                Some(path) if !is_literal(&path) => candidates.extend(self.note_run(place, file)),
                path => candidates.extend(path),
            }
        }
        let mut known = candidates.iter().enumerate();
        let known = known.find_map(|(at, path)| Some((at, place.tree.text(path, place.by_gate)?)));
        let Some((at, text)) = known else {
            // Whichever of them is there, nothing is known of its entries.
            for path in candidates {
                self.note(place, path, true);
            }
            return;
        };
        for path in &candidates[..at] {
            self.before.insert(path.clone(), place.check.to_owned());
        }
        let path = &candidates[at];
        let parts = self.parts(place, run, (path.clone(), text));
        let variables = variables_of(place, run, &parts);
        let place = Place {
            directory: place.directory.clone(),
            variables: &variables,
            ..*place
        };
        for name in &run.names {
            let done = entries::done_by_file(path, &parts[0].1, name);
            if let Some(file) = done.and_then(|name| joined(&place.directory, &name)) {
                self.before.insert(file, place.check.to_owned());
            }
            let entry = Entry {
                check: place.check.to_owned(),
                name: name.clone(),
                by_gate: place.by_gate,
            };
            let known = self.entries.entry(path.clone()).or_default();
            if !known.contains(&entry) {
                known.push(entry);
            }
            if place.inner {
                continue;
            }
            // The first entry is one of the file itself.
            let count = if name.is_empty() { 1 } else { parts.len() };
            for (path, text) in &parts[..count] {
                self.inner(&place, &entries::commands(path, text, name), false);
            }
        }
        if !place.inner {
            let assigned = parts.iter();
            let assigned = assigned.flat_map(|(path, text)| entries::assignments(path, text));
            let values: Vec<String> = assigned.map(|(_, value)| value).collect();
            self.follow_substitutions(&place, &values);
        }
    }

    /// Lists a file with entries and its parts that are there, and notes these.
    fn parts(
        &mut self,
        place: &Place<'_>,
        run: &EntryRun,
        file: (String, String),
    ) -> Vec<(String, String)> {
        let mut parts = vec![file];
        let variables = variables_of(place, run, &parts);
        let (path, text) = &parts[0];
        let named = variables.words_of(&entries::included(path, text), 0);
        for word in named {
            for path in self.note_run(place, &word) {
                if !place.inner
                    && let Some(text) = place.tree.text(&path, place.by_gate)
                {
                    parts.push((path, text));
                }
            }
        }
        parts
    }
}

/// Tells what the variables of a file with entries may hold, and of its parts.
fn variables_of(place: &Place<'_>, run: &EntryRun, parts: &[(String, String)]) -> Variables {
    let mut variables = place.variables.clone();
    variables.add("MAKE", ["make".to_owned()]);
    let assigned = parts.iter();
    let assigned = assigned.flat_map(|(path, text)| entries::assignments(path, text));
    let assigned: Vec<(String, String)> = assigned.chain(run.assigned.iter().cloned()).collect();
    variables.define(&assigned);
    variables
}
