//! Says which choices not everybody may take, and what it takes.

use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::person::Right;

use super::Trigger;
use super::choice::{
    BlindCheck, BranchMoved, BranchRefused, BudgetExceeded, BuildFinished, BuildHeld, CheckHeld,
    ClaudeMdPromotion, CoverageBelowThreshold, DecisionNeeded, LandingRefused, MilestoneReached,
    ProtectedFiles, SecurityVulnerability, SpecComplete, TaskComplexityExceeded,
    TaskFailedRepeatedly, TaskInterrupted, TaskStuck,
};

/// The choices that not everybody may take.
const NEEDS: [(Trigger, &str, Right); 30] = [
    (
        Trigger::SpecComplete,
        SpecComplete::Start.as_str(),
        Right::Approve,
    ),
    (
        Trigger::ProtectedFiles,
        ProtectedFiles::Allow.as_str(),
        Right::Approve,
    ),
    (
        Trigger::ProtectedFiles,
        ProtectedFiles::AllowAnd.as_str(),
        Right::Approve,
    ),
    (
        Trigger::BranchMoved,
        BranchMoved::BuildOnTop.as_str(),
        Right::Approve,
    ),
    (
        Trigger::SecurityVulnerability,
        SecurityVulnerability::Accept.as_str(),
        Right::Approve,
    ),
    (
        Trigger::BlindCheck,
        BlindCheck::Accept.as_str(),
        Right::Approve,
    ),
    (
        Trigger::CoverageBelowThreshold,
        CoverageBelowThreshold::Accept.as_str(),
        Right::Approve,
    ),
    (
        Trigger::ClaudeMdPromotion,
        ClaudeMdPromotion::Promote.as_str(),
        Right::Approve,
    ),
    (
        Trigger::ClaudeMdPromotion,
        ClaudeMdPromotion::Modify.as_str(),
        Right::Approve,
    ),
    (
        Trigger::BuildFinished,
        BuildFinished::Merge.as_str(),
        Right::Land,
    ),
    (
        Trigger::LandingRefused,
        LandingRefused::TryAgain.as_str(),
        Right::Land,
    ),
    (
        Trigger::LandingRefused,
        LandingRefused::Resolve.as_str(),
        Right::Land,
    ),
    (
        Trigger::BudgetExceeded,
        BudgetExceeded::Half.as_str(),
        Right::Spend,
    ),
    (
        Trigger::BudgetExceeded,
        BudgetExceeded::Double.as_str(),
        Right::Spend,
    ),
    (
        Trigger::BudgetExceeded,
        BudgetExceeded::Stop.as_str(),
        Right::Stop,
    ),
    (
        Trigger::BranchMoved,
        BranchMoved::Stop.as_str(),
        Right::Stop,
    ),
    (
        Trigger::BranchRefused,
        BranchRefused::Stop.as_str(),
        Right::Stop,
    ),
    (Trigger::BuildHeld, BuildHeld::Stop.as_str(), Right::Stop),
    (
        Trigger::MilestoneReached,
        MilestoneReached::Pause.as_str(),
        Right::Stop,
    ),
    (
        Trigger::TaskComplexityExceeded,
        TaskComplexityExceeded::Pause.as_str(),
        Right::Stop,
    ),
    (
        Trigger::DecisionNeeded,
        DecisionNeeded::AllowCall.as_str(),
        Right::Approve,
    ),
    (
        Trigger::DecisionNeeded,
        DecisionNeeded::AllowRule.as_str(),
        Right::Approve,
    ),
    (
        Trigger::DecisionNeeded,
        DecisionNeeded::Pause.as_str(),
        Right::Stop,
    ),
    (
        Trigger::DecisionNeeded,
        DecisionNeeded::Stop.as_str(),
        Right::Stop,
    ),
    (
        Trigger::TaskComplexityExceeded,
        TaskComplexityExceeded::Skip.as_str(),
        Right::Stop,
    ),
    (
        Trigger::TaskFailedRepeatedly,
        TaskFailedRepeatedly::Skip.as_str(),
        Right::Stop,
    ),
    (
        Trigger::TaskInterrupted,
        TaskInterrupted::Skip.as_str(),
        Right::Stop,
    ),
    (Trigger::CheckHeld, CheckHeld::Skip.as_str(), Right::Stop),
    (Trigger::TaskStuck, TaskStuck::Skip.as_str(), Right::Stop),
    (
        Trigger::DecisionNeeded,
        DecisionNeeded::Skip.as_str(),
        Right::Stop,
    ),
];

/// The choices that set nothing going: what was asked is over by them, and everything stays as it is.
const LEAVES: [(Trigger, &str); 9] = [
    (Trigger::SpecComplete, SpecComplete::Later.as_str()),
    (Trigger::BuildFinished, BuildFinished::PullRequest.as_str()),
    (Trigger::BuildFinished, BuildFinished::Leave.as_str()),
    (Trigger::LandingRefused, LandingRefused::Leave.as_str()),
    (
        Trigger::SecurityVulnerability,
        SecurityVulnerability::Manual.as_str(),
    ),
    (Trigger::BlindCheck, BlindCheck::Manual.as_str()),
    (
        Trigger::ClaudeMdPromotion,
        ClaudeMdPromotion::NotYet.as_str(),
    ),
    (Trigger::ClaudeMdPromotion, ClaudeMdPromotion::Keep.as_str()),
    (Trigger::DecisionNeeded, DecisionNeeded::Leave.as_str()),
];

impl Trigger {
    /// Returns whether this choice sets nothing going, so that its question would be closed by it for nothing.
    pub fn leaves(self, choice: &ChoiceId) -> bool {
        LEAVES.contains(&(self, choice.as_str()))
    }

    /// Returns what it takes to choose this, where not everybody may.
    pub fn right(self, choice: &ChoiceId) -> Option<Right> {
        NEEDS
            .iter()
            .find(|(of, id, _)| *of == self && *id == choice.as_str())
            .map(|(_, _, right)| *right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_consequences_for_others_takes_a_right() {
        let of = |trigger: &str, choice| {
            let trigger = Trigger::parse(trigger).unwrap();
            trigger.right(&ChoiceId::parse(choice).unwrap())
        };
        for (trigger, choice, expected) in [
            ("spec_complete", "start", Some(Right::Approve)),
            ("spec_complete", "revise", None),
            ("build_finished", "merge", Some(Right::Land)),
            ("build_finished", "leave", None),
            ("budget_exceeded", "half", Some(Right::Spend)),
            ("budget_exceeded", "stop", Some(Right::Stop)),
            ("decision_needed", "allow-call", Some(Right::Approve)),
            ("decision_needed", "allow-rule", Some(Right::Approve)),
            ("decision_needed", "leave", None),
            ("protected_files", "allow", Some(Right::Approve)),
            ("protected_files", "allow-and", Some(Right::Approve)),
            ("protected_files", "guide", None),
            ("idea_created", "start", None),
            ("task_failed_repeatedly", "guide", None),
            ("task_failed_repeatedly", "skip", Some(Right::Stop)),
        ] {
            assert_eq!(of(trigger, choice), expected, "{trigger} {choice}");
        }
    }

    #[test]
    fn what_sets_nothing_going_is_offered_and_takes_no_right_of_its_own() {
        for (trigger, choice) in LEAVES {
            assert!(trigger.choices().contains(&choice), "{trigger:?} {choice}");
            let choice = ChoiceId::parse(choice).unwrap();
            assert!(trigger.leaves(&choice), "{trigger:?} {choice}");
            assert_eq!(trigger.right(&choice), None, "{trigger:?} {choice}");
        }
        let start = ChoiceId::parse(SpecComplete::Start.as_str()).unwrap();
        assert!(!Trigger::SpecComplete.leaves(&start));
    }

    #[test]
    fn whoever_leaves_a_task_out_gives_up_what_runs() {
        // What is skipped there is research, or what a model offers of its own.
        let of_no_task = [Trigger::BeforeResearch, Trigger::MissingContext];
        for trigger in Trigger::ALL {
            let offered = trigger.choices().iter();
            for choice in offered.filter(|choice| **choice == "skip") {
                let right = trigger.right(&ChoiceId::parse(choice).unwrap());
                let expected = (!of_no_task.contains(trigger)).then_some(Right::Stop);
                assert_eq!(right, expected, "{trigger:?}");
            }
        }
    }
}
