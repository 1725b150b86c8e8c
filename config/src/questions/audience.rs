//! Says whom a question is for: scope is a matter of the product, code a technical one, machine and money of operations.

use ropewalk_schemas::person::Role;

use super::Trigger;

impl Trigger {
    /// Returns who is asked first.
    pub const fn role(self) -> Role {
        match self {
            Self::IdeaCreated
            | Self::ProblemStatementVague
            | Self::PhaseComplete
            | Self::IdeaComplexityHigh
            | Self::BeforeResearch
            | Self::RequirementAmbiguous
            | Self::BeforeFinalizeSpec
            | Self::SpecComplete
            | Self::MilestoneReached
            | Self::BuildFinished
            | Self::BeforeUxTesting
            | Self::UsabilityConcern
            | Self::AccessibilityViolation
            | Self::UxTestingComplete
            | Self::WeeklySummary
            | Self::RepeatedAnswer => Role::Product,
            Self::MultipleArchitectures
            | Self::ExternalDependencies
            | Self::MultipleImplementations
            | Self::MissingContext
            | Self::TaskComplexityExceeded
            | Self::TaskFailedRepeatedly
            | Self::TaskInterrupted
            | Self::ProtectedFiles
            | Self::BranchMoved
            | Self::BranchRefused
            | Self::LandingRefused
            | Self::ValidationLevelNeeded
            | Self::MultipleFailures
            | Self::SecurityVulnerability
            | Self::BlindCheck
            | Self::CoverageBelowThreshold
            | Self::ValidationPassed
            | Self::PatternDetected
            | Self::GotchaCandidate
            | Self::ClaudeMdPromotion
            | Self::TaskStuck
            | Self::ChangeRequested
            | Self::DecisionNeeded => Role::Technical,
            Self::CheckHeld | Self::BuildHeld | Self::BudgetExceeded | Self::ProviderKeyRefused => {
                Role::Operations
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_code_and_machine_are_matters_of_different_people() {
        for (trigger, expected) in [
            ("spec_complete", Role::Product),
            ("task_failed_repeatedly", Role::Technical),
            ("budget_exceeded", Role::Operations),
        ] {
            assert_eq!(Trigger::parse(trigger).map(Trigger::role), Some(expected));
        }
    }
}
