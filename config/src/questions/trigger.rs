//! Lists what makes agents ask, with the values that each question speaks of.

use serde::{Deserialize, Serialize};

macro_rules! triggers {
    ($( #[doc = $doc:literal] $variant:ident = $name:literal ($($placeholder:literal),* $(,)?) $([$($fact:literal),+])? ),+ $(,)?) => {
        /// What makes an agent ask.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Trigger {
            $( #[doc = $doc] $variant ),+
        }

        impl Trigger {
            /// Lists every trigger.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// Returns the written form.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $name ),+ }
            }

            /// Says in a few words what makes the agent ask, for people.
            pub fn in_words(self) -> &'static str {
                let text = match self { $( Self::$variant => $doc ),+ };
                text.trim().trim_end_matches('.')
            }

            /// Returns the trigger written as `text`.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $( $name => Some(Self::$variant), )+ _ => None }
            }

            /// Returns the values that its question must be given.
            pub const fn placeholders(self) -> &'static [&'static str] {
                match self { $( Self::$variant => &[$( $placeholder ),*] ),+ }
            }

            /// Returns the ids of its choices.
            pub const fn choices(self) -> &'static [&'static str] {
                super::choice::ids(self)
            }

            /// Returns the numbers that its condition may speak of.
            pub const fn facts(self) -> &'static [&'static str] {
                match self { $( Self::$variant => &[$( $( $fact ),+ )?] ),+ }
            }
        }
    };
}

triggers! {
    /// An idea was begun.
    IdeaCreated = "idea_created" (),
    /// The problem is described in few words.
    ProblemStatementVague = "problem_statement_vague" ("kind", "problem_snippet") ["problem_description.length"],
    /// A phase of the ideation is complete.
    PhaseComplete = "phase_complete" (),
    /// The idea has many parts.
    IdeaComplexityHigh = "idea_complexity_high" () ["complexity_score"],
    /// Research is about to begin.
    BeforeResearch = "before_research" (),
    /// A requirement can be read in two ways.
    RequirementAmbiguous = "requirement_ambiguous" ("requirement", "ambiguous_term"),
    /// Two architectures would do.
    MultipleArchitectures = "multiple_architectures"
        ("feature", "approach_a", "pros_a", "cons_a", "effort_a", "approach_b", "pros_b", "cons_b", "effort_b"),
    /// The scope is about to be fixed.
    BeforeFinalizeSpec = "before_finalize_spec" ("in_scope_list", "out_scope_list"),
    /// The feature depends on something outside.
    ExternalDependencies = "external_dependencies" ("dependency_list"),
    /// A specification is ready to be read.
    SpecComplete = "spec_complete" ("task_count", "complexity", "risks"),
    /// Two implementations would do.
    MultipleImplementations = "multiple_implementations"
        ("task_id", "approach_1", "description_1", "approach_2", "description_2", "recommendation"),
    /// Something needed is written nowhere.
    MissingContext = "missing_context" ("task_id", "missing_info"),
    /// A task takes much longer than planned.
    TaskComplexityExceeded = "task_complexity_exceeded"
        ("task_id", "estimate", "actual", "remaining", "common_reason") ["actual_time", "estimated_time"],
    /// Half of the tasks are complete.
    MilestoneReached = "milestone_reached"
        ("completed_count", "total_count", "time", "test_status", "encouragement_message")
        ["completed_tasks", "total_tasks"],
    /// A task has used up its tries.
    TaskFailedRepeatedly = "task_failed_repeatedly"
        ("task_id", "attempts", "error_message", "attempts_list", "standing", "recommended") ["attempts"],
    /// An attempt was ended because it stood still.
    TaskInterrupted = "task_interrupted" ("task_id", "why"),
    /// A task declares files that judge its work.
    ProtectedFiles = "protected_files" ("task_id", "file_list", "difference"),
    /// A check of a task could not run.
    CheckHeld = "check_held" ("task_id", "why"),
    /// Somebody else moved a build's branch.
    BranchMoved = "branch_moved" ("branch", "expected", "found"),
    /// The user's repository does not take a build's branch.
    BranchRefused = "branch_refused" ("branch", "why"),
    /// What is done for a build ended the program too often.
    BuildHeld = "build_held" ("idea", "why"),
    /// A build has ended.
    BuildFinished = "build_finished"
        ("idea", "status", "complete", "failed", "skipped", "requirements", "branch", "gate", "buts", "review"),
    /// The branch of a build could not be merged.
    LandingRefused = "landing_refused" ("branch", "into", "why"),
    /// A budget is used up.
    BudgetExceeded = "budget_exceeded" ("idea", "scope", "used", "limit"),
    /// A build must know how deep to validate.
    ValidationLevelNeeded = "validation_level_needed" ("recommendation"),
    /// A validation found several issues.
    MultipleFailures = "multiple_failures"
        ("count", "critical_count", "critical_list", "warning_count", "warning_list"),
    /// A validation found a hole.
    SecurityVulnerability = "security_vulnerability"
        ("vuln_type", "severity", "file", "line", "description", "risk_description"),
    /// Nobody has seen that a check fails where a test does.
    BlindCheck = "blind_check" ("check", "finding"),
    /// Tests cover too little.
    CoverageBelowThreshold = "coverage_below_threshold" ("coverage", "threshold", "uncovered_list"),
    /// A validation passed.
    ValidationPassed = "validation_passed" ("test_count", "coverage", "lint_status", "security_status"),
    /// The product is about to be tried.
    BeforeUxTesting = "before_ux_testing" (),
    /// An interaction took longer than expected.
    UsabilityConcern = "usability_concern"
        ("action", "expected_time", "actual_time", "friction_list") ["task_time", "expected_time"],
    /// Some people cannot use a part.
    AccessibilityViolation = "accessibility_violation"
        ("violation", "level", "impact", "element", "affected_users"),
    /// The product was tried.
    UxTestingComplete = "ux_testing_complete"
        ("score", "highlight_1", "highlight_2", "improvement_1", "improvement_2"),
    /// A pattern showed in several builds.
    PatternDetected = "pattern_detected" ("pattern_description", "count", "contexts") ["pattern.confidence"],
    /// A failure taught something.
    GotchaCandidate = "gotcha_candidate" ("gotcha", "context", "impact"),
    /// A lesson is good enough for the conventions file.
    ClaudeMdPromotion = "claude_md_promotion"
        ("count", "pattern", "proposed_addition", "conventions_file")
        ["pattern.confidence", "pattern.occurrences"],
    /// A week has passed.
    WeeklySummary = "weekly_summary"
        ("pattern_count", "gotcha_count", "total_entries", "conventions_file", "conventions_updates", "top_learning"),
    /// A person keeps giving the same answer.
    RepeatedAnswer = "repeated_answer" ("count", "answer", "question"),
    /// A task does not move.
    TaskStuck = "task_stuck" ("task_id", "minutes", "loop", "last_progress", "interrupt_minutes"),
    /// A task needs files that other builds own.
    ChangeRequested = "change_requested" ("task_id", "branch", "files"),
    /// An agent cannot decide alone.
    DecisionNeeded = "decision_needed" ("summary", "details", "recommendation"),
    /// A provider refuses its key.
    ProviderKeyRefused = "provider_key_refused" ("provider", "variable", "message"),
}
