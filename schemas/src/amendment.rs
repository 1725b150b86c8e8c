//! What of an earlier build stays when its specification is amended: all that the change does not touch.

use std::collections::BTreeSet;

use crate::specification::{Document, Requirement};
use crate::task::{Task, TaskBlock, TaskState};
use crate::{BuildId, RepoPath, RequirementId, TaskId};

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
    before
        .iter()
        .find(|task| task.state == TaskState::Complete && is_as_before(block, task, touched))
}

/// Says that `block` asks for what `task` was to do.
fn is_as_before(block: &TaskBlock, task: &Task, touched: &BTreeSet<RequirementId>) -> bool {
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
    let mut named = block
        .requirements
        .iter()
        .filter_map(|line| line.id.as_ref());
    !named.any(|id| touched.contains(id)) && task.id == block.id && asks(&task.block) == asks(block)
}

/// Says that `task`, whose attempt runs, is none of what a revision with these blocks asks for: it ends, with its work
/// kept.
pub fn is_given_up(blocks: &[TaskBlock], task: &Task, touched: &BTreeSet<RequirementId>) -> bool {
    !blocks
        .iter()
        .any(|block| is_as_before(block, task, touched))
}

/// Returns the task whose unfinished work is of use to whoever does `block`.
pub fn begun<'a>(block: &TaskBlock, before: &'a [Task]) -> Option<&'a Task> {
    before.iter().find(|task| {
        let same = task.block.action == block.action && task.block.file == block.file;
        task.id == block.id && same && task.state != TaskState::Complete
    })
}

/// How began what the program itself told a task that goes on from work of an earlier revision: rows of before hold it.
const OF_THE_PROGRAM: &str = "The specification was amended. ";

/// Says whether words to a task are those of people.
pub fn is_of_people(words: &str) -> bool {
    !words.starts_with(OF_THE_PROGRAM)
}

/// Returns what people said to `tasks`, each once with the tasks that were told it.
pub fn told_by_people(tasks: &[Task]) -> Vec<(Vec<&TaskId>, &str)> {
    let mut all: Vec<(Vec<&TaskId>, &str)> = Vec::new();
    for task in tasks {
        for words in task.guidance.iter().filter(|words| is_of_people(words)) {
            match all.iter_mut().find(|(_, known)| known == words) {
                Some((told, _)) if !told.contains(&&task.id) => told.push(&task.id),
                Some(_) => {}
                None => all.push((vec![&task.id], words)),
            }
        }
    }
    all
}

/// Returns the notes without what the plan remarks about owners: a file that was built has one, and nothing else changed.
fn asked_notes(block: &TaskBlock) -> Vec<String> {
    without_owners(block.notes.as_deref().unwrap_or_default())
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What stands in a remark about an owner between the file and the build.
const OWNED_BY: &str = "` is owned by build ";

/// Remarks in the notes of a task whose a file is.
pub fn owner_note(file: &RepoPath, owner: BuildId) -> String {
    format!("`{file}{OWNED_BY}{owner}.")
}

fn is_owner_note(line: &str) -> bool {
    let line = line.trim().strip_prefix('`');
    let owner = line.and_then(|line| line.split_once(OWNED_BY));
    let owner = owner.and_then(|(_, owner)| owner.strip_suffix('.'));
    owner.is_some_and(|owner| owner.parse::<BuildId>().is_ok())
}

/// Leaves out of notes what the plan remarks about owners: it held when the plan was made, and a task that is built
/// waits for nobody any more.
pub fn without_owners(notes: &str) -> impl Iterator<Item = &str> {
    notes.lines().filter(|line| !is_owner_note(line))
}

/// Takes out of the notes of a task what the plan remarks about owners: each revision says it anew.
pub fn forget_owners(task: &mut TaskBlock) {
    let notes = task.notes.take().unwrap_or_default();
    let kept = without_owners(&notes).collect::<Vec<_>>().join("\n");
    task.notes = Some(kept).filter(|notes| !notes.is_empty());
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::task::{Action, RequirementLine, Validation};

    fn block(name: &str, needs: &[&str]) -> TaskBlock {
        let id = |name: &str| TaskId::parse(name).unwrap();
        let file = RepoPath::parse(&format!("src/{name}.rs")).unwrap();
        TaskBlock {
            depends_on: needs.iter().map(|name| id(name)).collect(),
            ..TaskBlock::new(
                id(name),
                "api",
                Action::Create,
                file,
                Validation::passes("true"),
            )
        }
    }

    fn task(name: &str, state: TaskState, needs: &[&str]) -> Task {
        Task {
            state,
            ..Task::planned(BuildId(Uuid::nil()), 1, block(name, needs))
        }
    }

    fn requirement(id: &str, text: &str) -> Requirement {
        Requirement {
            id: RequirementId::parse(id).unwrap(),
            text: text.to_owned(),
            priority: "must".to_owned(),
            acceptance: String::new(),
            source: String::new(),
            replaces: None,
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
    fn what_people_said_is_told_once_with_the_tasks_that_heard_it() {
        let told = |name: &str, words: &[&str]| Task {
            guidance: words.iter().map(|&words| words.to_owned()).collect(),
            ..task(name, TaskState::Ready, &[])
        };
        let tasks = [
            told("T-1", &["Bark in C."]),
            told(
                "T-2",
                &[
                    "The specification was amended. Keep what serves.",
                    "Bark in C.",
                ],
            ),
            told("T-3", &["No."]),
        ];
        let said = told_by_people(&tasks).into_iter();
        let said = said.map(|(tasks, words)| {
            let tasks: Vec<&str> = tasks.iter().map(|task| task.as_str()).collect();
            (tasks.join(" "), words)
        });
        let expected = [
            ("T-1 T-2".to_owned(), "Bark in C."),
            ("T-3".to_owned(), "No."),
        ];
        assert_eq!(said.collect::<Vec<_>>(), expected);
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
    fn what_runs_goes_on_only_where_it_is_asked_for_as_before() {
        let running = task("A", TaskState::Working, &[]);
        let none = BTreeSet::new();
        let same = block("A", &["B"]);
        assert!(!is_given_up(
            &[block("C", &[]), same.clone()],
            &running,
            &none
        ));
        assert!(is_given_up(&[block("C", &[])], &running, &none));
        let mut changed = same.clone();
        changed.validation.command = "another".to_owned();
        assert!(is_given_up(std::slice::from_ref(&changed), &running, &none));
        let before = [running];
        assert!(begun(&changed, &before).is_some());
        changed.action = Action::Delete;
        assert!(begun(&changed, &before).is_none());
        let landed = [task("A", TaskState::Complete, &[])];
        assert!(begun(&same, &landed).is_none());
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
        let remark = owner_note(&owned.file, BuildId(Uuid::nil()));
        owned.notes = Some(remark.clone());
        assert!(is_carried(&owned, &none));
        owned.notes = Some(format!("{remark}\nKeep it short."));
        assert!(!is_carried(&owned, &none));
        forget_owners(&mut owned);
        assert_eq!(owned.notes.as_deref(), Some("Keep it short."));
        let told = "Each row is owned by build teams.";
        owned.notes = Some(told.to_owned());
        forget_owners(&mut owned);
        assert_eq!(
            owned.notes.as_deref(),
            Some(told),
            "no remark of the program"
        );
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
