//! Says how far the requirements of a build are shown by what its gates saw.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attempt::{Evidence, Proof, Verdict};
use crate::ids::RequirementId;
use crate::specification::Requirement;
use crate::task::{Action, Task, TaskState};

/// Says how far a requirement is shown, the best first: of several passes of what one task landed the best counts, since all of them
/// saw the same work, and of several tasks the worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Fulfilment {
    /// Every task for it has landed, and the check of each that works on it tells that work from the tree before.
    Met,
    /// The same, but what failed on the tree before are new tests of one of them: whoever did the work wrote them.
    MetByNewTests,
    /// Every task for it has landed, but all that is shown of one is that its check could not run without the work.
    WeaklyMet,
    /// Every task for it has landed, but nobody has seen a test of the check of one fail: there were too few before, or no known
    /// runner told of one.
    MetUnseen,
    /// Every task for it has landed, but the check of one passes without the work, or all of it together did not pass.
    Unverified,
    /// A task for it has not landed, or there is none.
    Open,
}

/// What a task does for its requirements. Those of the first kind that a requirement has say how far it is shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// It brings some of what is asked for.
    Work,
    /// It leaves what is there as it is.
    Preservation,
    /// It only looks.
    Verification,
}

impl Part {
    fn of(task: &Task) -> Self {
        if task.block.action == Action::Verify {
            Self::Verification
        } else if task.block.preserves {
            Self::Preservation
        } else {
            Self::Work
        }
    }
}

impl Fulfilment {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetByNewTests => "met-by-new-tests",
            Self::WeaklyMet => "weakly-met",
            Self::MetUnseen => "met-unseen",
            Self::Unverified => "unverified",
            Self::Open => "open",
        }
    }

    /// Returns whether what is there shows it, be it weakly.
    pub const fn is_met(self) -> bool {
        matches!(
            self,
            Self::Met | Self::MetByNewTests | Self::WeaklyMet | Self::MetUnseen
        )
    }

    /// Judges one requirement by the tasks of its build and the evidence of the gates. Each task that works on it brings a part of
    /// it, and what shows one part says nothing of another one, so that the worst of them counts. That everything still holds
    /// beside them, or holds once they are done, says nothing of a part that their own checks do not show.
    pub fn of(requirement: &RequirementId, tasks: &[Task], evidence: &[Evidence]) -> Self {
        let of_whole = evidence.iter().filter(|seen| seen.task.is_none());
        let newest = of_whole.max_by_key(|seen| seen.at);
        let holds = newest.is_none_or(|seen| seen.verdict != Verdict::Failed);
        let mut shown = Vec::new();
        for task in tasks.iter().filter(|task| task.is_for(requirement)) {
            let proofs = proofs(task, evidence);
            if task.state != TaskState::Complete || proofs.is_empty() {
                return Self::Open;
            }
            let of_task = if holds {
                Self::of_proofs(&proofs)
            } else {
                Self::Unverified
            };
            shown.push((Part::of(task), Reverse(of_task)));
        }
        let counting = shown.into_iter().min();
        counting.map_or(Self::Open, |(_, Reverse(worst))| worst)
    }

    /// Says how far the passes of one task that landed show what it is for, by the best of them.
    fn of_proofs(proofs: &[Option<Proof>]) -> Self {
        // Where the tree before was not looked at, the pass stands for itself.
        let all = proofs
            .iter()
            .map(|proof| proof.map_or(Self::Met, Self::of_proof));
        all.min().unwrap_or(Self::Unverified)
    }

    const fn of_proof(proof: Proof) -> Self {
        match proof {
            Proof::AssertionFailed | Proof::Preserved => Self::Met,
            Proof::NewTestsFailed => Self::MetByNewTests,
            Proof::CouldNotRun => Self::WeaklyMet,
            Proof::FailedUncounted | Proof::TooFewTests => Self::MetUnseen,
            Proof::PassedBefore | Proof::PassedWithoutWork | Proof::RanNoTest => Self::Unverified,
        }
    }

    /// Judges every requirement that a specification or a task names, in the order in which they are named.
    pub fn of_all<'a>(
        specified: impl IntoIterator<Item = &'a Requirement>,
        tasks: &'a [Task],
        evidence: &[Evidence],
    ) -> Vec<(RequirementId, Self)> {
        let mut found: Vec<(RequirementId, Self)> = Vec::new();
        let specified = specified.into_iter().map(|requirement| &requirement.id);
        let lines = tasks.iter().flat_map(|task| &task.block.requirements);
        for id in specified.chain(lines.filter_map(|line| line.id.as_ref())) {
            if !found.iter().any(|(known, _)| known == id) {
                found.push((id.clone(), Self::of(id, tasks, evidence)));
            }
        }
        found
    }

    /// Tells how many requirements are met, which of them with a task that is shown by how little, how many with a task that is for
    /// others as well, and which are not shown by anything.
    pub fn summed_up(requirements: &[(RequirementId, Self)], tasks: &[Task]) -> String {
        let of = |wanted: Self| {
            let found = requirements.iter().filter(|(_, is)| *is == wanted);
            found.map(|(id, _)| id.as_str()).collect::<Vec<_>>()
        };
        // The others may be shown better: what is told is true of the least shown one, as of a task of tests alone.
        let least = [
            (
                Self::MetByNewTests,
                "with a task of which new tests alone fail without the work",
            ),
            (
                Self::WeaklyMet,
                "with a task whose check could not run without the work",
            ),
            (
                Self::MetUnseen,
                "with a task of whose check nobody has seen a test fail",
            ),
        ];
        let how = least.into_iter().filter_map(|(is, what)| {
            let names = of(is);
            (!names.is_empty()).then(|| format!("{} {what}", names.join(", ")))
        });
        let mut how: Vec<String> = how.collect();
        let shared = requirements
            .iter()
            .filter(|(id, is)| is.is_met() && is_shown_with_others(id, tasks));
        let shared = shared.count();
        if shared > 0 {
            how.push(format!(
                "{shared} with a task that is for others as well, whose check need not look at each"
            ));
        }
        let met = requirements.iter().filter(|(_, is)| is.is_met()).count();
        let mut parts = vec![if how.is_empty() {
            format!("{met} met")
        } else {
            format!("{met} met ({})", how.join("; "))
        }];
        for left in [Self::Unverified, Self::Open] {
            let names = of(left);
            if !names.is_empty() {
                parts.push(format!("{} {left} ({})", names.len(), names.join(", ")));
            }
        }
        parts.join(", ")
    }
}

impl std::fmt::Display for Fulfilment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The tests are of its task, and need not be about this requirement.
            Self::MetByNewTests => formatter.write_str("met with new tests"),
            other => formatter.write_str(&other.as_str().replace('-', " ")),
        }
    }
}

/// Says whether a task that shows a requirement is for others as well: what its check saw is known of the task, and not of each
/// of them. Tests of code need not read the document that comes along with it.
fn is_shown_with_others(requirement: &RequirementId, tasks: &[Task]) -> bool {
    let of_it = || tasks.iter().filter(move |task| task.is_for(requirement));
    let counting = of_it().map(Part::of).min();
    let names_another = |task: &Task| {
        let lines = task.block.requirements.iter();
        let mut ids = lines.filter_map(|line| line.id.as_ref());
        ids.any(|id| id != requirement)
    };
    of_it().any(|task| Some(Part::of(task)) == counting && names_another(task))
}

/// Lists what the passes of a task prove.
fn proofs(task: &Task, evidence: &[Evidence]) -> Vec<Option<Proof>> {
    let passed = evidence.iter().filter(|seen| is_pass(seen, task));
    passed.map(|seen| seen.proof).collect()
}

/// Says whether the gate saw what landed of a task pass.
fn is_pass(seen: &Evidence, task: &Task) -> bool {
    let landed = task
        .commit
        .as_ref()
        .is_none_or(|commit| *commit == seen.commit);
    seen.verdict == Verdict::Passed && seen.task.as_ref() == Some(&task.id) && landed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(id: &str, state: TaskState) -> Task {
        let action = if id.starts_with('V') {
            "VERIFY"
        } else {
            "CREATE"
        };
        let block = json!({
            "id": id, "phase": "api", "action": action, "file": format!("{id}.txt"),
            "requirements": [{ "id": "FR-1", "text": "good" }],
            "validation": { "command": "true", "expected": "exit 0" },
            "preserves": id.starts_with('P'),
        });
        let build = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        let block = serde_json::from_value(block).unwrap();
        Task {
            state,
            ..Task::planned(build, 1, block)
        }
    }

    fn pass(id: &str, proof: Option<&str>) -> Evidence {
        let seen = json!({
            "build": "00000000-0000-7000-8000-000000000001", "task": id, "commit": "1".repeat(40),
            "tree": "", "verdict": "passed", "proof": proof, "at": "2026-03-01T08:00:00Z",
        });
        serde_json::from_value(seen).unwrap()
    }

    /// What is known of the tasks of a requirement: `ID:PROOF` where it is done, `ID` where it was done before there were proofs,
    /// `ID?` where it is open; and what follows.
    const KNOWN: [(&str, Fulfilment); 26] = [
        ("", Fulfilment::Open),
        ("T-1?", Fulfilment::Open),
        ("T-1:assertion-failed", Fulfilment::Met),
        ("T-1:could-not-run", Fulfilment::WeaklyMet),
        // What shows one part of it says nothing of another one.
        (
            "T-1:could-not-run T-2:assertion-failed",
            Fulfilment::WeaklyMet,
        ),
        (
            "T-1:failed-uncounted T-2:assertion-failed",
            Fulfilment::MetUnseen,
        ),
        (
            "T-1:passed-before T-2:could-not-run",
            Fulfilment::Unverified,
        ),
        (
            "T-1:passed-before T-2:assertion-failed",
            Fulfilment::Unverified,
        ),
        (
            "T-1:assertion-failed T-2:passed-without-work",
            Fulfilment::Unverified,
        ),
        ("T-1:assertion-failed T-2:assertion-failed", Fulfilment::Met),
        // That all that was there still passes shows a requirement that asks for nothing else.
        ("P-1:preserved", Fulfilment::Met),
        ("P-1:preserved P-2:preserved", Fulfilment::Met),
        ("P-1:preserved V-1:passed-before", Fulfilment::Met),
        (
            "P-1:ran-no-test V-1:assertion-failed",
            Fulfilment::Unverified,
        ),
        ("T-1:could-not-run P-1:preserved", Fulfilment::WeaklyMet),
        (
            "T-1:passed-without-work P-1:preserved",
            Fulfilment::Unverified,
        ),
        ("T-1:assertion-failed P-1:preserved", Fulfilment::Met),
        ("T-1:passed-before", Fulfilment::Unverified),
        ("T-1", Fulfilment::Met),
        ("T-1:assertion-failed T-2?", Fulfilment::Open),
        ("T-1:assertion-failed V-1?", Fulfilment::Open),
        // A check of what is there shows work no better than the checks of those who did it, and takes nothing from them.
        (
            "T-1:passed-without-work V-1:could-not-run",
            Fulfilment::Unverified,
        ),
        (
            "T-1:passed-without-work V-1:assertion-failed",
            Fulfilment::Unverified,
        ),
        ("T-1:assertion-failed V-1:passed-before", Fulfilment::Met),
        ("V-1:could-not-run", Fulfilment::WeaklyMet),
        (
            "V-1:could-not-run V-2:assertion-failed",
            Fulfilment::WeaklyMet,
        ),
    ];

    #[test]
    fn a_requirement_is_shown_as_far_as_the_work_of_its_least_shown_task() {
        for (known, expected) in KNOWN {
            let (mut tasks, mut evidence) = (Vec::new(), Vec::new());
            for one in known.split_whitespace() {
                let (id, proof) = one
                    .split_once(':')
                    .map_or((one, None), |(id, proof)| (id, Some(proof)));
                if let Some(open) = id.strip_suffix('?') {
                    tasks.push(task(open, TaskState::Ready));
                } else {
                    tasks.push(task(id, TaskState::Complete));
                    evidence.push(pass(id, proof));
                }
            }
            let id = RequirementId::parse("FR-1").unwrap();
            assert_eq!(Fulfilment::of(&id, &tasks, &evidence), expected, "{known}");
        }
    }

    #[test]
    fn a_test_that_failed_is_told_from_what_could_not_run_and_what_nobody_saw_fail() {
        let (new, weak, few) = ("new-tests-failed", "could-not-run", "too-few-tests");
        let rows = [
            (vec![new], Fulfilment::MetByNewTests),
            (vec![weak], Fulfilment::WeaklyMet),
            (vec![few], Fulfilment::MetUnseen),
            (vec!["failed-uncounted"], Fulfilment::MetUnseen),
            // Of several the worst counts.
            (vec![few, weak], Fulfilment::MetUnseen),
            (vec![weak, new], Fulfilment::WeaklyMet),
            (vec![new, "assertion-failed"], Fulfilment::MetByNewTests),
        ];
        let id = RequirementId::parse("FR-1").unwrap();
        for (proofs, expected) in rows {
            let ids: Vec<String> = (1..=proofs.len()).map(|at| format!("T-{at}")).collect();
            let tasks: Vec<Task> = ids.iter().map(|id| task(id, TaskState::Complete)).collect();
            let evidence: Vec<Evidence> = ids
                .iter()
                .zip(&proofs)
                .map(|(id, proof)| pass(id, Some(*proof)))
                .collect();
            let found = Fulfilment::of(&id, &tasks, &evidence);
            assert_eq!(found, expected, "{proofs:?}");
            assert!(found.is_met(), "{proofs:?}");
        }
    }

    #[test]
    fn what_is_told_of_a_requirement_is_true_of_its_least_shown_task() {
        let tasks = ["T-1", "T-2"].map(|id| task(id, TaskState::Complete));
        // The second is of tests alone, so that nothing of it could run before.
        let evidence = [
            pass("T-1", Some("assertion-failed")),
            pass("T-2", Some("could-not-run")),
        ];
        let found = Fulfilment::of_all([], &tasks, &evidence);
        assert_eq!(
            Fulfilment::summed_up(&found, &tasks),
            "1 met (FR-1 with a task whose check could not run without the work)"
        );
    }

    #[test]
    fn a_requirement_that_shares_a_task_is_told_with_what_its_check_need_not_look_at() {
        let shared = "whose check need not look at each";
        // What the tasks are for, and how many requirements share one that shows them.
        let rows = [
            (vec![("T-1", "FR-1"), ("T-2", "FR-2")], 0),
            (vec![("T-1", "FR-1 FR-2")], 2),
            (vec![("T-1", "FR-1"), ("T-2", "FR-1 FR-2")], 2),
            // What preserves or looks shows nothing of a requirement that a task works on.
            (vec![("T-1", "FR-1"), ("P-1", "FR-1 FR-2")], 1),
            (
                vec![("T-1", "FR-1"), ("T-2", "FR-2"), ("V-1", "FR-1 FR-2")],
                0,
            ),
        ];
        for (planned, expected) in rows {
            let (mut tasks, mut evidence) = (Vec::new(), Vec::new());
            for (id, requirements) in &planned {
                let mut done = task(id, TaskState::Complete);
                let line = done.block.requirements.remove(0);
                for id in requirements.split(' ') {
                    let mut named = line.clone();
                    named.id = Some(RequirementId::parse(id).unwrap());
                    done.block.requirements.push(named);
                }
                tasks.push(done);
                evidence.push(pass(id, Some("assertion-failed")));
            }
            let told = Fulfilment::summed_up(&Fulfilment::of_all([], &tasks, &evidence), &tasks);
            let is_told =
                format!("2 met ({expected} with a task that is for others as well, {shared})");
            let nothing = "2 met".to_owned();
            let wanted = if expected > 0 { is_told } else { nothing };
            assert_eq!(told, wanted, "{planned:?}");
        }
    }

    #[test]
    fn nothing_is_told_as_met_by_tests_that_need_not_be_about_it() {
        let words = Fulfilment::MetByNewTests.to_string();
        assert_eq!(words, "met with new tests");
        assert_eq!(Fulfilment::WeaklyMet.to_string(), "weakly met");
    }

    #[test]
    fn what_does_not_hold_together_shows_nothing_until_it_does() {
        let whole = |verdict: &str, minute: u32| -> Evidence {
            let seen = json!({
                "build": "00000000-0000-7000-8000-000000000001", "commit": "2".repeat(40), "tree": "",
                "verdict": verdict, "at": format!("2026-03-01T08:{minute:02}:00Z"),
            });
            serde_json::from_value(seen).unwrap()
        };
        let tasks = [task("T-1", TaskState::Complete)];
        let shown = pass("T-1", Some("assertion-failed"));
        let id = RequirementId::parse("FR-1").unwrap();
        let rows = [
            (vec![whole("failed", 5)], Fulfilment::Unverified),
            (vec![whole("held", 5)], Fulfilment::Met),
            (
                vec![whole("passed", 9), whole("failed", 5)],
                Fulfilment::Met,
            ),
        ];
        for (wholes, expected) in rows {
            let evidence = [vec![shown.clone()], wholes].concat();
            assert_eq!(
                Fulfilment::of(&id, &tasks, &evidence),
                expected,
                "{evidence:?}"
            );
        }
    }
}
