//! Reads and writes the requirements of spec.md: each with how it is accepted and where it comes from, and some with the one
//! that they take the place of.

use super::super::super::escape::{Place, unescaped};
use super::super::super::front::Line;
use super::super::super::{DocumentError, Fault, shown};
use super::{cell, indented, list_or_table, read_either, table, value};
use crate::ids::RequirementId;
use crate::specification::Requirement;

/// How the lines begin that follow what is required.
const ACCEPTED: &str = "\nAccepted when: ";
const SOURCE: &str = "\nSource: ";
const REPLACES: &str = "\nReplaces: ";
/// The head of a table in which something is replaced.
const WIDE_HEAD: [&str; 6] = [
    "ID",
    "Requirement",
    "Priority",
    "Acceptance",
    "Source",
    "Replaces",
];

/// Writes a list; a table where a text would not come back as it is.
pub(super) fn written(requirements: &[Requirement]) -> String {
    let list: String = requirements.iter().map(item).collect();
    list_or_table(requirements, list, || rows(requirements), read)
}

fn item(requirement: &Requirement) -> String {
    let Requirement {
        id,
        text,
        priority,
        acceptance,
        source,
        replaces,
    } = requirement;
    let told = |heading: &str, text: &str| {
        let told = Some(format!("{heading}{text}"));
        told.filter(|_| !text.is_empty()).unwrap_or_default()
    };
    let (acceptance, source) = (told(ACCEPTED, acceptance), told(SOURCE, source));
    let before = replaces.as_ref().map_or("", RequirementId::as_str);
    let before = told(REPLACES, before);
    let whole = format!("{id} ({priority}): {text}{acceptance}{source}{before}");
    format!("- {}", indented(&whole).trim_start())
}

/// Writes a table, with a column for what is replaced where something is.
fn rows(requirements: &[Requirement]) -> String {
    let cells = |requirement: &Requirement| {
        let replaced = requirement.replaces.as_ref();
        [
            requirement.id.as_str(),
            &requirement.text,
            &requirement.priority,
            &requirement.acceptance,
            &requirement.source,
            replaced.map_or("", RequirementId::as_str),
        ]
        .map(cell)
    };
    let all = requirements.iter().map(cells);
    if requirements.iter().any(|one| one.replaces.is_some()) {
        return table(WIDE_HEAD, all);
    }
    let [id, text, priority, acceptance, source, _] = WIDE_HEAD;
    table(
        [id, text, priority, acceptance, source],
        all.map(|[id, text, priority, acceptance, source, _]| {
            [id, text, priority, acceptance, source]
        }),
    )
}

/// Reads any form.
pub(super) fn read(lines: &[Line<'_>]) -> Result<Vec<Requirement>, DocumentError> {
    let first = lines.iter().find(|line| !line.text.trim().is_empty());
    let borders = first.map_or(0, |line| line.text.matches('|').count());
    if borders == WIDE_HEAD.len() + 1 {
        return read_either(lines, read_item, read_wide_row);
    }
    read_either(lines, read_item, read_row)
}

fn read_row(line: usize, cells: [String; 5]) -> Result<Requirement, DocumentError> {
    let [id, text, priority, acceptance, source] = cells;
    read_wide_row(
        line,
        [id, text, priority, acceptance, source, String::new()],
    )
}

fn read_wide_row(line: usize, cells: [String; 6]) -> Result<Requirement, DocumentError> {
    let [id, text, priority, acceptance, source, replaces] =
        cells.map(|cell| unescaped(&cell, Place::Cell));
    let replaces = Some(replaces).filter(|id| !id.is_empty());
    Ok(Requirement {
        id: value::<RequirementId>(line, &id)?,
        text,
        priority,
        acceptance,
        source,
        replaces: replaces.map(|id| value(line, &id)).transpose()?,
    })
}

fn read_item(line: usize, item: &str) -> Result<Requirement, DocumentError> {
    let fault = || Fault::NotARequirement(shown(item)).at(line);
    let (id, rest) = item.split_once(" (").ok_or_else(fault)?;
    let (priority, rest) = rest.split_once("): ").ok_or_else(fault)?;
    let (rest, replaces) = match rest.rsplit_once(REPLACES) {
        Some((rest, id)) => (rest, Some(value::<RequirementId>(line, id.trim())?)),
        None => (rest, None),
    };
    let (rest, source) = rest.rsplit_once(SOURCE).unwrap_or((rest, ""));
    let (text, acceptance) = rest.split_once(ACCEPTED).unwrap_or((rest, ""));
    Ok(Requirement {
        id: value::<RequirementId>(line, id)?,
        text: text.to_owned(),
        priority: priority.to_owned(),
        acceptance: acceptance.to_owned(),
        source: source.to_owned(),
        replaces,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines_of;
    use super::*;

    #[test]
    fn a_requirement_is_read_as_it_was_meant() {
        let requirement = Requirement {
            id: RequirementId::parse("FR-1").unwrap(),
            text: "A table has one cell a line.".to_owned(),
            priority: "must".to_owned(),
            acceptance: "`print(t)` shows\n|====\n| a\n|====".to_owned(),
            source: "planning/brief.md".to_owned(),
            replaces: None,
        };
        let list = written(std::slice::from_ref(&requirement));
        assert_eq!(
            list,
            "- FR-1 (must): A table has one cell a line.\n  Accepted when: `print(t)` shows\n  |====\n  | a\n  |====\n  \
             Source: planning/brief.md\n"
        );
        let replacing = Requirement {
            id: RequirementId::parse("FR-2").unwrap(),
            replaces: Some(requirement.id.clone()),
            ..requirement.clone()
        };
        let list = written(std::slice::from_ref(&replacing));
        assert!(list.ends_with("brief.md\n  Replaces: FR-1\n"), "{list}");
        assert_eq!(
            read(&lines_of(&list)).unwrap(),
            std::slice::from_ref(&replacing)
        );
        let ambiguous = Requirement {
            text: "Say\nSource: nobody".to_owned(),
            source: String::new(),
            ..requirement
        };
        let both = [ambiguous.clone(), replacing];
        let table = written(&both);
        assert!(table.starts_with("| ID |"), "{table}");
        assert_eq!(read(&lines_of(&table)).unwrap(), both);
        let table = written(std::slice::from_ref(&ambiguous));
        assert!(table.starts_with("| ID |"), "{table}");
        assert_eq!(read(&lines_of(&table)).unwrap(), [ambiguous]);
    }
}
