//! Lists the sections of spec.md, and reads and writes the body of each.

mod interfaces;
mod requirements;

use std::str::FromStr;

use super::super::escape::{Place, escaped, unescaped};
use super::super::front::Line;
use super::super::{DocumentError, Fault, shown};
use crate::ids::KnowledgeId;
use crate::repo_path::RepoPath;
use crate::specification::{Document, FilePlan, Interface, NewPackage, Requirement};
use crate::task::GotchaReference;

/// A section as it is found.
#[derive(Debug)]
pub(super) struct Body<'a, 'b> {
    /// Its heading.
    pub(super) title: &'static str,
    /// The line of the heading.
    pub(super) line: usize,
    /// The lines below.
    pub(super) lines: &'b [Line<'a>],
}

/// A section as it is written.
#[derive(Debug)]
pub(super) struct Section {
    /// Its heading.
    pub(super) title: &'static str,
    /// Its lines.
    pub(super) body: String,
}

/// The field of the document that a section holds, by its shape.
pub(super) enum Kind<'a> {
    /// A text.
    Text(&'a mut String),
    /// A list of texts.
    List(&'a mut Vec<String>),
    /// A list of requirements.
    Requirements(&'a mut Vec<Requirement>),
    /// A table of files.
    Files(&'a mut Vec<FilePlan>),
    /// A list of interfaces.
    Interfaces(&'a mut Vec<Interface>),
    /// A table of packages.
    Packages(&'a mut Vec<NewPackage>),
    /// A list of lessons.
    Gotchas(&'a mut Vec<GotchaReference>),
}

/// The headings, in order.
pub(super) const TITLES: [&str; 17] = [
    "Context Read",
    "Missing Inputs",
    "Objective",
    "Success Criteria",
    "Out of Scope",
    "Functional Requirements",
    "Non-functional Requirements",
    "New Files",
    "Modified Files",
    "Files to Avoid",
    "Interfaces",
    "Data",
    "Dependencies",
    "New Packages",
    "Gotchas",
    "Validation",
    "Risks",
];

/// Returns the field that the section `title` holds.
fn field<'a>(title: &str, document: &'a mut Document) -> Kind<'a> {
    match title {
        "Context Read" => Kind::List(&mut document.context_read),
        "Missing Inputs" => Kind::List(&mut document.missing_inputs),
        "Success Criteria" => Kind::List(&mut document.success_criteria),
        "Out of Scope" => Kind::List(&mut document.out_of_scope),
        "Functional Requirements" => Kind::Requirements(&mut document.requirements),
        "Non-functional Requirements" => Kind::Requirements(&mut document.quality),
        "New Files" => Kind::Files(&mut document.new_files),
        "Modified Files" => Kind::Files(&mut document.modified_files),
        "Files to Avoid" => Kind::Files(&mut document.avoid_files),
        "Interfaces" => Kind::Interfaces(&mut document.interfaces),
        "Data" => Kind::List(&mut document.data),
        "Dependencies" => Kind::List(&mut document.dependencies),
        "New Packages" => Kind::Packages(&mut document.new_packages),
        "Gotchas" => Kind::Gotchas(&mut document.gotchas),
        "Validation" => Kind::List(&mut document.validation),
        "Risks" => Kind::List(&mut document.risks),
        // `Objective`: the callers only come with one of `TITLES`.
        _ => Kind::Text(&mut document.objective),
    }
}

/// Returns the sections that hold anything, in order.
pub(super) fn of(document: &Document) -> Vec<Section> {
    let mut copy = document.clone();
    TITLES
        .iter()
        .map(|title| Section {
            title,
            body: written(&field(title, &mut copy)),
        })
        .filter(|section| !section.body.is_empty())
        .collect()
}

fn written(kind: &Kind<'_>) -> String {
    match kind {
        Kind::Text(text) if text.is_empty() => String::new(),
        Kind::Text(text) => format!("{}\n", escaped(text, Place::Section)),
        Kind::List(items) => items.iter().map(|item| written_item("", item)).collect(),
        Kind::Gotchas(gotchas) => gotchas
            .iter()
            .map(|gotcha| {
                let id = gotcha.id.map(|id| format!("[{id}] ")).unwrap_or_default();
                written_item(&id, &gotcha.text)
            })
            .collect(),
        Kind::Interfaces(list) => interfaces::written(list),
        Kind::Packages(packages) => {
            let rows = packages.iter().map(|package| {
                [&package.manager, &package.name, &package.purpose].map(|text| cell(text))
            });
            table(["Manager", "Package", "Purpose"], rows)
        }
        Kind::Requirements(list) => requirements::written(list),
        Kind::Files(files) => {
            let rows = files.iter().map(|file| {
                let path = format!("`{}`", cell(file.path.as_str()));
                let owner = file.owner.as_deref().unwrap_or_default();
                [path, cell(&file.purpose), cell(owner)]
            });
            table(["File", "Purpose", "Owner"], rows)
        }
    }
}

fn written_item(prefix: &str, text: &str) -> String {
    let item = format!("- {prefix}{}", escaped(text, Place::Item));
    format!("{}\n", item.trim_end_matches(' '))
}

/// Returns `list` where it reads back as `items`, else the table of them.
fn list_or_table<T: PartialEq>(
    items: &[T],
    list: String,
    table: impl FnOnce() -> String,
    read: fn(&[Line<'_>]) -> Result<Vec<T>, DocumentError>,
) -> String {
    match read(&lines_of(&list)) {
        Ok(back) if back == items => list,
        _ => table(),
    }
}

/// Reads a list by its items or a table by its rows, as either was written.
fn read_either<T, const COLUMNS: usize>(
    lines: &[Line<'_>],
    item: fn(usize, &str) -> Result<T, DocumentError>,
    row: fn(usize, [String; COLUMNS]) -> Result<T, DocumentError>,
) -> Result<Vec<T>, DocumentError> {
    let first = lines.iter().find(|line| !line.text.trim().is_empty());
    if first.is_some_and(|line| line.text.trim_start().starts_with('-')) {
        let items = read_items(lines)?.into_iter();
        return items.map(|(line, text)| item(line, &text)).collect();
    }
    let rows = read_rows(lines)?.into_iter();
    rows.map(|(line, cells)| row(line, cells)).collect()
}

/// Returns the lines of a text that is written here.
fn lines_of(text: &str) -> Vec<Line<'_>> {
    let lines = (1..).zip(text.lines());
    lines
        .map(|(number, text)| Line {
            number,
            text,
            span: 0..0,
        })
        .collect()
}

/// Indents each line that holds something, as what belongs to an item is.
fn indented(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("  {line}\n"),
    });
    lines.collect()
}

fn cell(text: &str) -> String {
    escaped(text, Place::Cell)
}

fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let rows: Vec<String> = rows
        .map(|row| format!("| {} |\n", row.join(" | ")))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let rule = ["---"; COLUMNS].join(" | ");
    format!("| {} |\n| {rule} |\n{}", head.join(" | "), rows.concat())
}

/// Reads a section into its field.
pub(super) fn read(body: &Body<'_, '_>, document: &mut Document) -> Result<(), DocumentError> {
    match field(body.title, document) {
        Kind::Text(text) => *text = read_text(body.lines),
        Kind::List(items) => {
            *items = read_items(body.lines)?
                .into_iter()
                .map(|(_, item)| unescaped(&item, Place::Item))
                .collect();
        }
        Kind::Gotchas(gotchas) => {
            for (line, item) in read_items(body.lines)? {
                gotchas.push(read_gotcha(line, &item)?);
            }
        }
        Kind::Interfaces(list) => *list = interfaces::read(body.lines)?,
        Kind::Packages(packages) => {
            for (_, cells) in read_rows(body.lines)? {
                let [manager, name, purpose] = cells.map(|cell| unescaped(&cell, Place::Cell));
                packages.push(NewPackage {
                    manager,
                    name,
                    purpose,
                });
            }
        }
        Kind::Requirements(list) => *list = requirements::read(body.lines)?,
        Kind::Files(files) => {
            for (line, [path, purpose, owner]) in read_rows(body.lines)? {
                let [path, purpose, owner] =
                    [bare(&path), &purpose, &owner].map(|cell| unescaped(cell, Place::Cell));
                let path = RepoPath::parse(&path)
                    .map_err(|error| Fault::Value(one_line(&error)).at(line))?;
                let owner = Some(owner).filter(|owner| !owner.is_empty());
                files.push(FilePlan {
                    path,
                    purpose,
                    owner,
                });
            }
        }
    }
    Ok(())
}

fn value<Id: FromStr>(line: usize, text: &str) -> Result<Id, DocumentError>
where
    Id::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error: Id::Err| Fault::Value(one_line(&error)).at(line))
}

/// An error may quote a cell whose text has line breaks.
fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().lines().collect::<Vec<_>>().join(" ")
}

fn read_text(lines: &[Line<'_>]) -> String {
    let texts: Vec<&str> = lines.iter().map(|line| line.text).collect();
    unescaped(texts.join("\n").trim_matches('\n'), Place::Section)
}

/// Reads the items of a list, still escaped, with the line that each begins on.
fn read_items(lines: &[Line<'_>]) -> Result<Vec<(usize, String)>, DocumentError> {
    let mut items: Vec<(usize, String)> = Vec::new();
    // Empty lines belong to an item only when an indented line follows them.
    let mut empty = 0;
    for line in lines {
        if line.text.trim().is_empty() {
            empty += 1;
            continue;
        }
        let begins = line
            .text
            .strip_prefix("- ")
            .or((line.text.trim_end() == "-").then_some(""));
        match (begins, line.text.strip_prefix("  "), items.last_mut()) {
            (Some(text), _, _) => items.push((line.number, text.to_owned())),
            (None, Some(text), Some((_, item))) => {
                item.push_str(&"\n".repeat(empty + 1));
                item.push_str(text);
            }
            _ => return Err(Fault::NotAnItem(shown(line.text)).at(line.number)),
        }
        empty = 0;
    }
    Ok(items)
}

fn read_gotcha(line: usize, item: &str) -> Result<GotchaReference, DocumentError> {
    let (id, text) = match item.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((id, text)) => (
            Some(value::<KnowledgeId>(line, id)?),
            text.strip_prefix(' ').unwrap_or(text),
        ),
        None => (None, item),
    };
    Ok(GotchaReference {
        id,
        text: unescaped(text, Place::Item),
    })
}

/// Reads the rows of a table below its head and rule; the cells are still escaped.
fn read_rows<const COLUMNS: usize>(
    lines: &[Line<'_>],
) -> Result<Vec<(usize, [String; COLUMNS])>, DocumentError> {
    let mut rows = Vec::new();
    let filled = lines.iter().filter(|line| !line.text.trim().is_empty());
    for (index, line) in filled.enumerate() {
        let fault = || {
            let row = shown(line.text);
            Fault::NotARow {
                row,
                columns: COLUMNS,
            }
            .at(line.number)
        };
        let cells = line
            .text
            .trim()
            .strip_prefix('|')
            .and_then(|row| row.strip_suffix('|'));
        // A `\|` that somebody wrote by hand is no border.
        let cells: Vec<String> = cells
            .ok_or_else(fault)?
            .replace("\\|", "&#124;")
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect();
        let row: [String; COLUMNS] = cells.try_into().map_err(|_| fault())?;
        if index > 1 {
            rows.push((line.number, row));
        }
    }
    Ok(rows)
}

/// Takes the code marks from around a path.
fn bare(cell: &str) -> &str {
    cell.strip_prefix('`')
        .and_then(|inner| inner.strip_suffix('`'))
        .unwrap_or(cell)
}
