//! Decides what of an earlier build stays when its specification is amended: all that the change does not touch.

use std::collections::BTreeSet;

use ropewalk_schemas::RequirementId;
use ropewalk_schemas::specification::{Document, Requirement};
use ropewalk_schemas::task::{Task, TaskBlock, TaskState};

/// Lists the requirements that two documents do not both hold in the same words.
pub fn touched(before: &Document, after: &Document) -> BTreeSet<RequirementId> {
    let all = |document: &Document| -> Vec<Requirement> {
        let quality = document.quality.iter();
        document
            .requirements
            .iter()
            .chain(quality)
            .cloned()
            .collect()
    };
    let (before, after) = (all(before), all(after));
    let missing = |from: &[Requirement], all: &[Requirement]| -> Vec<RequirementId> {
        let gone = from.iter().filter(|one| !all.contains(one));
        gone.map(|one| one.id.clone()).collect()
    };
    missing(&before, &after)
        .into_iter()
        .chain(missing(&after, &before))
        .collect()
}

/// Returns the landed task whose work still is what `block` asks for.
///
/// What only orders or advises (phase, priority, edges, lessons, estimates) does not make work invalid; whether it
/// still holds on what others change is for the whole-build check to say.
pub fn carried<'a>(
    block: &TaskBlock,
    before: &'a [Task],
    touched: &BTreeSet<RequirementId>,
) -> Option<&'a Task> {
    let asks = |block: &TaskBlock| {
        (
            block.action,
            block.files().cloned().collect::<Vec<_>>(),
            block.requirements.clone(),
            block.validation.clone(),
            block.code_template.clone(),
            asked_notes(block),
        )
    };
    let named = block
        .requirements
        .iter()
        .filter_map(|line| line.id.as_ref());
    if named.into_iter().any(|id| touched.contains(id)) {
        return None;
    }
    before.iter().find(|task| {
        task.id == block.id && task.state == TaskState::Complete && asks(&task.block) == asks(block)
    })
}

/// Returns the notes without what the plan remarks about owners: a file that was built has one, and nothing else changed.
fn asked_notes(block: &TaskBlock) -> Vec<String> {
    without_owners(block.notes.as_deref().unwrap_or_default())
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Leaves out of notes what the plan remarks about owners: it held when the plan was made, and a task that is built
/// waits for nobody any more.
pub(crate) fn without_owners(notes: &str) -> impl Iterator<Item = &str> {
    notes
        .lines()
        .filter(|line| !line.contains("is owned by build "))
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::task::RequirementLine;

    use super::*;
    use crate::decide::fixture::{block, task};

    fn requirement(id: &str, text: &str) -> Requirement {
        Requirement {
            id: RequirementId::parse(id).unwrap(),
            text: text.to_owned(),
            priority: "must".to_owned(),
            acceptance: String::new(),
            source: String::new(),
        }
    }

    fn document(requirements: &[(&str, &str)]) -> Document {
        Document {
            requirements: requirements
                .iter()
                .map(|(id, text)| requirement(id, text))
                .collect(),
            ..Document::default()
        }
    }

    #[test]
    fn a_requirement_is_touched_when_it_is_new_gone_or_said_differently() {
        let before = document(&[("FR-1", "same"), ("FR-2", "old"), ("FR-3", "gone")]);
        let after = document(&[("FR-1", "same"), ("FR-2", "new"), ("FR-4", "more")]);
        let found: Vec<String> = touched(&before, &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["FR-2", "FR-3", "FR-4"]);
        assert!(touched(&before, &before).is_empty());
    }

    #[test]
    fn only_landed_work_that_is_asked_for_as_before_is_carried() {
        let landed = [
            task("A", TaskState::Complete, &[]),
            task("B", TaskState::Failed, &[]),
        ];
        let none = BTreeSet::new();
        let is_carried = |block: &TaskBlock, touched: &BTreeSet<RequirementId>| {
            carried(block, &landed, touched).is_some()
        };
        assert!(is_carried(&block("A", &[]), &none));
        assert!(!is_carried(&block("B", &[]), &none), "it had not landed");
        assert!(!is_carried(&block("C", &[]), &none), "it is new");
        let mut ordered = block("A", &["B"]);
        ordered.phase = "later".to_owned();
        ordered.priority = Some(1);
        assert!(is_carried(&ordered, &none));
        let mut owned = block("A", &[]);
        owned.notes = Some("`A.txt` is owned by build 1.".to_owned());
        assert!(is_carried(&owned, &none));
        owned.notes = Some("`A.txt` is owned by build 1.\nKeep it short.".to_owned());
        assert!(!is_carried(&owned, &none));
        let mut changed = block("A", &[]);
        changed.validation.command = "another".to_owned();
        assert!(!is_carried(&changed, &none));
        let mut asked = landed[0].clone();
        let id = RequirementId::parse("FR-1").unwrap();
        asked.block.requirements = vec![RequirementLine {
            id: Some(id.clone()),
            text: "x".to_owned(),
        }];
        let block = asked.block.clone();
        let before = [asked];
        assert!(carried(&block, &before, &none).is_some());
        let touched = BTreeSet::from([id]);
        assert!(carried(&block, &before, &touched).is_none());
    }
}
