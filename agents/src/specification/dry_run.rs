//! Tries the checks of a plan on the commit that it begins at: one that passes there proves nothing, and one that cannot run
//! never will.

mod hindrance;
mod uncounted;

use std::collections::BTreeSet;
use std::time::Duration;

use ropewalk_gate::GateError;
use ropewalk_gate::judge::Ruling;
use ropewalk_gate::trial::{self, Trial};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::attempt::{FailureClass, Proof};
use ropewalk_schemas::specification::{Document, DryRunCount};
use ropewalk_schemas::task::{Action, TaskBlock, Validation};
use ropewalk_schemas::{CommitId, RequirementId, TaskId};

use super::SpecificationOptions;
use super::submission::Plan;
use hindrance::Hindrance;

/// So long all checks of a plan may take together; what is left then is told as untried.
const PATIENCE: Duration = Duration::from_mins(10);

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DryRun {
    /// What the model should mend.
    pub(super) faults: Vec<String>,
    /// What people should know where it was not mended.
    pub(super) notes: Vec<String>,
    /// How many checks went as they should.
    pub(super) count: DryRunCount,
    /// Whether nothing could be tried here.
    pub(super) untried: bool,
}

/// Tries each check once, however many tasks name it; what is kept has passed its check where it landed.
pub(super) async fn run(
    options: &SpecificationOptions,
    base: &CommitId,
    plan: &Plan,
    kept: &BTreeSet<TaskId>,
) -> DryRun {
    let tasks = plan.tasks.iter().filter(|task| !kept.contains(&task.id));
    let tasks: &[&TaskBlock] = &tasks.collect::<Vec<_>>();
    let mut validations: Vec<&Validation> = Vec::new();
    for task in tasks {
        if !validations.contains(&&task.validation) {
            validations.push(&task.validation);
        }
    }
    if validations.is_empty() {
        return DryRun::default();
    }
    let trials = trial::of_validations(&options.gate, base, &validations, PATIENCE);
    // What is not tried is made all the same.
    let made: Vec<&TaskBlock> = plan.tasks.iter().collect();
    // A plan is no worse for a machine that cannot try it, and whoever approves it is told.
    let trials = match trials.await {
        Ok(trials) => trials,
        Err(error) => return untried(options, (tasks, &made), &error),
    };
    let mut dry = DryRun {
        count: of(tasks),
        ..DryRun::default()
    };
    let trial = |task: &TaskBlock| {
        let at = validations.iter().position(|one| **one == task.validation);
        at.and_then(|at| trials.get(at)).and_then(Option::as_ref)
    };
    let holds = |task: &TaskBlock| trial(task).is_some_and(|trial| trial.ruling == Ruling::Holds);
    let unshown = unshown(&plan.document, &plan.tasks, holds);
    for task in tasks {
        let trial = trial(task);
        let hindrance = hindrance::find(&options.gate, task, trial, &made);
        match trial.and_then(|trial| uncounted::find(task, trial, &made)) {
            Some(found) if hindrance.is_none() => found.tell(&mut dry),
            _ => judge(task, trial, hindrance.as_ref(), &unshown, &mut dry),
        }
    }
    dry
}

/// Says what can be known of checks that could not be tried: which programs this machine does not have.
fn untried(
    options: &SpecificationOptions,
    (tasks, made): (&[&TaskBlock], &[&TaskBlock]),
    error: &GateError,
) -> DryRun {
    let mut dry = DryRun {
        notes: vec![format!("the checks were not dry-run: {}", Words::of(error))],
        untried: true,
        ..DryRun::default()
    };
    for task in tasks {
        let found = hindrance::find(&options.gate, task, None, made);
        if found.is_some() {
            judge(task, None, found.as_ref(), &[], &mut dry);
        }
    }
    dry
}

/// Lists the requirements of which the checks of all tasks say nothing: they change nothing, and pass before the work.
fn unshown<'a>(
    document: &'a Document,
    tasks: &[TaskBlock],
    holds: impl Fn(&TaskBlock) -> bool,
) -> Vec<&'a RequirementId> {
    let says_nothing = |task: &TaskBlock| task.preserves || (verifies(task) && holds(task));
    let ids = document.requirements.iter().map(|one| &one.id);
    let mut found: Vec<&RequirementId> = ids.collect();
    found.retain(|id| {
        let mut covering = tasks.iter().filter(|task| task.is_for(id));
        covering.all(says_nothing)
    });
    found
}

fn verifies(task: &TaskBlock) -> bool {
    task.action == Action::Verify
}

/// Returns the count of a plan of which nothing was tried yet.
fn of(tasks: &[&TaskBlock]) -> DryRunCount {
    DryRunCount {
        tasks: u32::try_from(tasks.len()).unwrap_or(u32::MAX),
        ..DryRunCount::default()
    }
}

/// Says what follows from how the check of `task` went before any work.
fn judge(
    task: &TaskBlock,
    trial: Option<&Trial>,
    hindrance: Option<&Hindrance>,
    unshown: &[&RequirementId],
    dry: &mut DryRun,
) {
    let (id, command) = (&task.id, &task.validation.command);
    let is = |proof| trial.is_some_and(|trial| trial.proof == proof);
    let discriminates = !task.preserves && !verifies(task);
    let alone = unshown
        .iter()
        .filter(|id| verifies(task) && task.is_for(id));
    let alone: Vec<&str> = alone.map(|id| id.as_str()).collect();
    if let Some(Hindrance { what, mend }) = hindrance {
        match mend {
            Some(mend) => dry.faults.push(format!(
                "the check of task `{id}`, `{command}`, cannot run: {what}; {mend}"
            )),
            None => dry.notes.push(format!(
                "the check of task `{id}` could not be dry-run: {what}"
            )),
        }
        return;
    }
    match trial.map(|trial| &trial.ruling) {
        Some(Ruling::Holds) if discriminates => dry.faults.push(format!(
            "the check of task `{id}`, `{command}`, passes before the work, so it proves nothing; let it look at what the task brings, or say `preserves: true` where nothing is to change"
        )),
        Some(Ruling::Holds) if !alone.is_empty() => dry.faults.push(format!(
            "the check of task `{id}`, `{command}`, passes before the work, so nothing shows {}; name that in the `requirements` of the task that fulfils it, or let the check look at what the plan brings",
            alone.join(", ")
        )),
        Some(Ruling::Fails { class: FailureClass::Timeout, .. }) => dry.faults.push(format!(
            "the check of task `{id}`, `{command}`, was stopped at its time limit; name one that ends sooner"
        )),
        Some(Ruling::Fails { finding, .. })
            if task.preserves && task.depends_on.is_empty() =>
        {
            dry.faults.push(format!(
                "task `{id}` says `preserves`, but its check fails before the work: {finding}; name a check that passes today, or leave `preserves` out"
            ));
        }
        Some(Ruling::Held { finding }) => dry
            .notes
            .push(format!("the check of task `{id}` could not be dry-run: {finding}")),
        None | Some(Ruling::Cancelled) => dry
            .notes
            .push(format!("the check of task `{id}` was not dry-run")),
        Some(Ruling::Holds) => dry.count.passed += 1,
        Some(Ruling::Fails { .. }) if trial.is_some_and(|trial| trial.selected_no_test) => {
            dry.count.selected_no_test += 1;
        }
        // What stands before tests that nobody has seen yet keeps the check from them.
        Some(Ruling::Fails { .. }) if is(Proof::CouldNotRun) || is(Proof::FailedUncounted) => {
            dry.count.could_not_run += 1;
        }
        Some(Ruling::Fails { .. }) if is(Proof::TooFewTests) => dry.count.too_few_tests += 1,
        Some(Ruling::Fails { .. }) => dry.count.failed += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::validate::tests::task;
    use super::*;

    fn trial(ruling: &Ruling) -> Trial {
        Trial {
            ruling: ruling.clone(),
            proof: Proof::AssertionFailed,
            selected_no_test: false,
            uncounted: false,
            ended_well: false,
            obstacle: None,
        }
    }

    fn told(task: &TaskBlock, ruling: Option<&Ruling>) -> DryRun {
        let mut dry = DryRun::default();
        judge(task, ruling.map(trial).as_ref(), None, &[], &mut dry);
        dry
    }

    #[test]
    fn a_check_that_could_not_run_yet_is_not_counted_as_one_that_failed() {
        let ruling = Ruling::Fails {
            class: FailureClass::ValidationFailed,
            finding: "no such file".to_owned(),
        };
        for (proof, selected_no_test, expected) in [
            (Proof::AssertionFailed, false, [1, 0, 0, 0]),
            (Proof::CouldNotRun, false, [0, 1, 0, 0]),
            (Proof::FailedUncounted, false, [0, 1, 0, 0]),
            (Proof::CouldNotRun, true, [0, 0, 1, 0]),
            (Proof::TooFewTests, false, [0, 0, 0, 1]),
        ] {
            let (mut dry, ruling) = (DryRun::default(), ruling.clone());
            let trial = Trial {
                ruling,
                proof,
                selected_no_test,
                uncounted: false,
                ended_well: false,
                obstacle: None,
            };
            judge(&task("A", &[]), Some(&trial), None, &[], &mut dry);
            let count = dry.count;
            let early = [count.could_not_run, count.selected_no_test];
            let went = [count.failed, early[0], early[1], count.too_few_tests];
            assert_eq!(went, expected);
            assert_eq!(dry.faults, Vec::<String>::new());
        }
    }

    #[test]
    fn a_check_that_says_nothing_before_the_work_is_a_fault() {
        let plain = task("A", &[]);
        let preserving = TaskBlock {
            preserves: true,
            ..plain.clone()
        };
        let later = TaskBlock {
            preserves: true,
            ..task("A", &["B"])
        };
        let verify = TaskBlock {
            action: Action::Verify,
            ..plain.clone()
        };
        let fails = |class| Ruling::Fails {
            class,
            finding: "it failed".to_owned(),
        };
        let (failed, slow) = (
            fails(FailureClass::ValidationFailed),
            fails(FailureClass::Timeout),
        );
        let held = Ruling::Held {
            finding: "no vitest".to_owned(),
        };
        let holds = Ruling::Holds;
        let cases: [(&TaskBlock, Option<&Ruling>, &str, &str); 9] = [
            (&plain, Some(&holds), "passes before the work", ""),
            (&plain, Some(&failed), "", ""),
            (&plain, Some(&slow), "stopped at its time limit", ""),
            (&plain, Some(&held), "", "could not be dry-run: no vitest"),
            (&plain, None, "", "was not dry-run"),
            (&preserving, Some(&holds), "", ""),
            (&preserving, Some(&failed), "says `preserves`, but", ""),
            (&later, Some(&failed), "", ""),
            (&verify, Some(&holds), "", ""),
        ];
        for (task, ruling, fault, note) in cases {
            let dry = told(task, ruling);
            let count = |text: &str| usize::from(!text.is_empty());
            assert_eq!(dry.faults.len(), count(fault), "{dry:?}");
            assert!(dry.faults.join("; ").contains(fault), "{dry:?}");
            assert_eq!(dry.notes.len(), count(note), "{dry:?}");
            assert!(dry.notes.join("; ").contains(note), "{dry:?}");
            let went = [dry.count.failed, dry.count.passed];
            let expected = match ruling {
                Some(Ruling::Holds) => [0, 1 - u32::try_from(count(fault)).unwrap()],
                Some(Ruling::Fails { .. }) => [1 - u32::try_from(count(fault)).unwrap(), 0],
                _ => [0, 0],
            };
            assert_eq!(went, expected, "{dry:?}");
        }
        for (hindrance, faults, notes) in [
            (Hindrance::program("vitest"), 1, 0),
            (Hindrance::module("pytest", false), 1, 0),
            (Hindrance::module("pytest", true), 0, 1),
        ] {
            let mut dry = DryRun::default();
            judge(
                &plain,
                Some(&trial(&failed)),
                Some(&hindrance),
                &[],
                &mut dry,
            );
            assert_eq!((dry.faults.len(), dry.notes.len()), (faults, notes));
            let told = [dry.faults, dry.notes].concat().join("");
            assert!(told.contains(&hindrance.what), "{told}");
        }
    }

    #[test]
    fn a_requirement_that_only_a_passing_check_verifies_is_a_fault() {
        let id = |text| RequirementId::parse(text).unwrap();
        let mut verify = TaskBlock {
            action: Action::Verify,
            ..task("B", &["A"])
        };
        let mut second = verify.requirements[0].clone();
        second.id = Some(id("FR-2"));
        verify.requirements.push(second);
        let requirement = |text| {
            let written = serde_json::json!({
                "id": text, "text": "it works", "priority": "must", "acceptance": "it does", "source": "",
            });
            serde_json::from_value(written).unwrap()
        };
        let document = Document {
            requirements: ["FR-1", "FR-2"].map(requirement).to_vec(),
            ..Document::default()
        };
        let tasks = [task("A", &[]), verify];
        assert!(unshown(&document, &tasks, |_| false).is_empty());
        let found = unshown(&document, &tasks, |_| true);
        assert_eq!(found, [&id("FR-2")]);
        let holds = trial(&Ruling::Holds);
        for (found, faults) in [(&[][..], 0), (&found, 1)] {
            let mut dry = DryRun::default();
            judge(&tasks[1], Some(&holds), None, found, &mut dry);
            assert_eq!(dry.faults.len(), faults, "{dry:?}");
            assert!(dry.faults.iter().all(|fault| fault.contains("shows FR-2;")));
            assert_eq!(dry.count.passed as usize, 1 - faults);
        }
    }
}
