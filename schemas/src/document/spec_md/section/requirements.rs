//! Reads and writes the requirements of spec.md: each with how it is accepted and where it comes from.

use super::super::super::escape::{Place, unescaped};
use super::super::super::front::Line;
use super::super::super::{DocumentError, Fault, shown};
use super::{cell, indented, list_or_table, read_either, table, value};
use crate::ids::RequirementId;
use crate::specification::Requirement;

/// How the lines begin that follow what is required.
const ACCEPTED: &str = "\nAccepted when: ";
const SOURCE: &str = "\nSource: ";

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
    } = requirement;
    let told = |heading: &str, text: &str| {
        let told = Some(format!("{heading}{text}"));
        told.filter(|_| !text.is_empty()).unwrap_or_default()
    };
    let (acceptance, source) = (told(ACCEPTED, acceptance), told(SOURCE, source));
    let whole = format!("{id} ({priority}): {text}{acceptance}{source}");
    format!("- {}", indented(&whole).trim_start())
}

fn rows(requirements: &[Requirement]) -> String {
    let rows = requirements.iter().map(|requirement| {
        let Requirement {
            id,
            text,
            priority,
            acceptance,
            source,
        } = requirement;
        [id.as_str(), text, priority, acceptance, source].map(cell)
    });
    table(
        ["ID", "Requirement", "Priority", "Acceptance", "Source"],
        rows,
    )
}

/// Reads either form.
pub(super) fn read(lines: &[Line<'_>]) -> Result<Vec<Requirement>, DocumentError> {
    read_either(lines, read_item, read_row)
}

fn read_row(line: usize, cells: [String; 5]) -> Result<Requirement, DocumentError> {
    let [id, text, priority, acceptance, source] = cells.map(|cell| unescaped(&cell, Place::Cell));
    Ok(Requirement {
        id: value::<RequirementId>(line, &id)?,
        text,
        priority,
        acceptance,
        source,
    })
}

fn read_item(line: usize, item: &str) -> Result<Requirement, DocumentError> {
    let fault = || Fault::NotARequirement(shown(item)).at(line);
    let (id, rest) = item.split_once(" (").ok_or_else(fault)?;
    let (priority, rest) = rest.split_once("): ").ok_or_else(fault)?;
    let (rest, source) = rest.rsplit_once(SOURCE).unwrap_or((rest, ""));
    let (text, acceptance) = rest.split_once(ACCEPTED).unwrap_or((rest, ""));
    Ok(Requirement {
        id: value::<RequirementId>(line, id)?,
        text: text.to_owned(),
        priority: priority.to_owned(),
        acceptance: acceptance.to_owned(),
        source: source.to_owned(),
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
        };
        let list = written(std::slice::from_ref(&requirement));
        assert_eq!(
            list,
            "- FR-1 (must): A table has one cell a line.\n  Accepted when: `print(t)` shows\n  |====\n  | a\n  |====\n  \
             Source: planning/brief.md\n"
        );
        let ambiguous = Requirement {
            text: "Say\nSource: nobody".to_owned(),
            source: String::new(),
            ..requirement
        };
        let table = written(std::slice::from_ref(&ambiguous));
        assert!(table.starts_with("| ID |"), "{table}");
        assert_eq!(read(&lines_of(&table)).unwrap(), [ambiguous]);
    }
}
