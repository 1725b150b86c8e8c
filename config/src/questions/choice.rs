//! Lists the choices of each trigger: what decisions match on, and what a template must offer.
//!
//! A decision reads the id of a choice through its enum and never a label, so that people may word questions as they
//! like. That a template offers the very ids of its enum is checked when it is loaded.

use ropewalk_schemas::ChoiceId;

use super::Trigger;

macro_rules! choices {
    ($( $(#[$doc:meta])* $trigger:ident { $( $(#[$about:meta])* $choice:ident = $id:literal ),+ $(,)? } )+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $trigger {
                $( $(#[$about])* #[doc = concat!("Written `", $id, "`.")] $choice ),+
            }

            impl $trigger {
                /// Returns the choice that an answer names, if it names one of these.
                pub fn of(choice: Option<&ChoiceId>) -> Option<Self> {
                    match choice?.as_str() { $( $id => Some(Self::$choice), )+ _ => None }
                }

                /// Returns the written form.
                pub const fn as_str(self) -> &'static str {
                    match self { $( Self::$choice => $id ),+ }
                }
            }
        )+

        /// Returns the ids that the template of `trigger` offers.
        pub(super) const fn ids(trigger: Trigger) -> &'static [&'static str] {
            match trigger {
                $( Trigger::$trigger => &[$( $id ),+], )+
                Trigger::ProblemStatementVague => &[],
            }
        }
    };
}

choices! {
    /// Who is the first user of an idea.
    IdeaCreated { Myself = "myself", SmallBusiness = "small-business", Enterprise = "enterprise" }
    /// How to go on after a phase.
    PhaseComplete { Continue = "continue", Refine = "refine", Later = "later" }
    /// How to begin with a large idea.
    IdeaComplexityHigh {
        /// With the part that the words name.
        StartWith = "start-with",
        ThinkThrough = "think-through",
        Full = "full",
    }
    /// What to research.
    BeforeResearch {
        GoAhead = "go-ahead",
        /// Also what the words name.
        Also = "also",
        Skip = "skip",
    }
    /// How fast is fast.
    RequirementAmbiguous { Under100Ms = "under-100-ms", Under1S = "under-1-s", FasterThanNow = "faster-than-now" }
    /// Which architecture.
    MultipleArchitectures { OptionA = "option-a", OptionB = "option-b", TradeOffs = "trade-offs", Other = "other" }
    /// Whether the scope is right.
    BeforeFinalizeSpec {
        Proceed = "proceed",
        /// What the words name belongs to it.
        Add = "add",
        /// What the words name does not belong to it.
        Remove = "remove",
        Discuss = "discuss",
    }
    /// Whether what is outside is there.
    ExternalDependencies { Verified = "verified", Check = "check", DesignAround = "design-around" }
    /// Whether to build the revision that was shown.
    SpecComplete {
        /// This revision is approved and built.
        Start = "start",
        /// Another revision is written by the words.
        Revise = "revise",
        /// Nothing, for now.
        Later = "later",
    }
    /// Which implementation.
    MultipleImplementations {
        Recommended = "recommended",
        Approach1 = "approach-1",
        Approach2 = "approach-2",
        Think = "think",
    }
    /// Where something is written.
    MissingContext { Explain = "explain", File = "file", Skip = "skip", Redesign = "redesign" }
    /// How to go on with a task that takes long.
    TaskComplexityExceeded {
        Continue = "continue",
        /// Its next attempt is told to take a simpler way.
        Simplify = "simplify",
        /// The build pauses.
        Pause = "pause",
        Skip = "skip",
    }
    /// How to go on at half of the way.
    MilestoneReached { KeepGoing = "keep-going", Pause = "pause" }
    /// What becomes of a task that has used up its tries.
    TaskFailedRepeatedly {
        /// Another round, with the words in its prompt.
        Guide = "guide",
        /// The planner thinks the task through with the person, and changes the plan.
        Rethink = "rethink",
        /// The build goes on without it.
        Skip = "skip",
        /// It stays failed; the person mends it.
        Manual = "manual",
        /// It stays failed.
        Leave = "leave",
    }
    /// What becomes of a task whose attempt was ended because it stood still.
    TaskInterrupted {
        /// Another round.
        Again = "again",
        /// Another round, with the words in its prompt.
        Guide = "guide",
        /// The build goes on without it.
        Skip = "skip",
    }
    /// Whether files that judge a task may be changed as shown.
    ProtectedFiles {
        /// The kept candidate goes to the gate again.
        Allow = "allow",
        /// It stays as shown, and the work goes on from it with what a person says.
        AllowAnd = "allow-and",
        /// The work goes on without them.
        Keep = "keep",
        /// The same, with what a person says.
        Guide = "guide",
    }
    /// What becomes of a task whose check could not run.
    CheckHeld {
        /// The kept work is checked again.
        Again = "again",
        Skip = "skip",
    }
    /// How to go on with a branch that somebody else moved.
    BranchMoved {
        /// Its commits become the head.
        BuildOnTop = "build-on-top",
        /// The landed commits go on under a free name.
        OwnBranch = "own-branch",
        /// The build stops.
        Stop = "stop",
    }
    /// How to go on with a branch that the user's repository does not take.
    BranchRefused {
        /// It is published again.
        TryAgain = "try-again",
        /// The build stops.
        Stop = "stop",
    }
    /// How to go on with a build whose work ended the program too often.
    BuildHeld {
        /// It is done again, and counted anew.
        Again = "again",
        /// The build stops.
        Stop = "stop",
    }
    /// What becomes of the branch of a build that has ended.
    BuildFinished {
        /// It is merged into the branch that the build began from.
        Merge = "merge",
        /// The person opens a pull request.
        PullRequest = "pull-request",
        /// It is left alone.
        Leave = "leave",
    }
    /// What to do about a branch that could not be merged.
    LandingRefused {
        TryAgain = "try-again",
        /// A task of the build resolves the conflicts.
        Resolve = "resolve",
        Leave = "leave",
    }
    /// Whether to spend more than a budget.
    BudgetExceeded {
        /// Half of the limit more.
        Half = "half",
        /// The limit once more.
        Double = "double",
        /// The build stops.
        Stop = "stop",
    }
    /// How deep to validate; the ids are those of the levels.
    ValidationLevelNeeded {
        Quick = "quick",
        Standard = "standard",
        Thorough = "thorough",
        Comprehensive = "comprehensive",
        Release = "release",
    }
    /// What to do about failures of the whole build.
    MultipleFailures {
        /// A revision that mends all.
        FixAll = "fix-all",
        /// A revision that mends the critical ones.
        FixCritical = "fix-critical",
        /// The build stays failed.
        Leave = "leave",
    }
    /// What to do about a hole.
    SecurityVulnerability {
        /// A revision that closes it.
        Fix = "fix",
        /// The person mends it.
        Manual = "manual",
        /// It is no longer checked for.
        Accept = "accept",
    }
    /// What to do about a check of which nobody has seen that it can fail.
    BlindCheck {
        /// A revision that makes them count.
        Fix = "fix",
        /// The person mends it.
        Manual = "manual",
        /// They do count: nothing is planted beside them any more.
        Accept = "accept",
    }
    /// What to do about little coverage.
    CoverageBelowThreshold {
        /// A revision with more tests.
        AddTests = "add-tests",
        Accept = "accept",
    }
    /// Whether the good news was read.
    ValidationPassed { Seen = "seen" }
    /// As whom to try the product.
    BeforeUxTesting { FirstTime = "first-time", Power = "power", Accessibility = "accessibility", Mobile = "mobile" }
    /// What to do about friction.
    UsabilityConcern { Log = "log", Accept = "accept", Explain = "explain", Spec = "spec" }
    /// What to do about a part that some cannot use.
    AccessibilityViolation { Fix = "fix", Backlog = "backlog", Show = "show", Manual = "manual" }
    /// What follows from a trial.
    UxTestingComplete { Spec = "spec", GoodEnough = "good-enough", Discuss = "discuss" }
    /// Whether a pattern is kept.
    PatternDetected {
        Add = "add",
        Reject = "reject",
        /// It is kept in these words.
        Refine = "refine",
        Examples = "examples",
    }
    /// Whether a gotcha is kept.
    GotchaCandidate {
        Add = "add",
        ProjectOnly = "project-only",
        /// It is kept in these words.
        Reword = "reword",
    }
    /// Whether a lesson goes into the conventions file.
    ClaudeMdPromotion {
        Promote = "promote",
        NotYet = "not-yet",
        /// It goes in with these words.
        Modify = "modify",
        Keep = "keep",
    }
    /// Whether the week was read.
    WeeklySummary { Seen = "seen" }
    /// Whether an answer becomes a preference.
    RepeatedAnswer { Remember = "remember", KeepAsking = "keep-asking" }
    /// What to do about a task that does not move.
    TaskStuck {
        /// It goes on; its age begins anew.
        Wait = "wait",
        Skip = "skip",
        /// This attempt ends and another begins.
        Retry = "retry",
    }
    /// What to do about a change in a file of another build.
    ChangeRequested {
        /// The task waits until the file is free.
        Wait = "wait",
        /// The change is made on top of what the owner has landed.
        GoOn = "go-on",
        /// The change is not made.
        Refuse = "refuse",
    }
    /// What to do about a key that a provider refuses.
    ProviderKeyRefused {
        /// The provider is looked at again.
        Again = "again",
    }
    /// What an agent could not decide alone; which of them are offered depends on what it is about.
    DecisionNeeded {
        /// Another round for what failed.
        Retry = "retry",
        /// Another round, with the words in its prompt.
        Guide = "guide",
        /// The attempt ends, its work kept.
        Interrupt = "interrupt",
        /// The task is left out.
        Skip = "skip",
        /// The build stands still.
        Pause = "pause",
        /// The build stops.
        Stop = "stop",
        /// The refused call is done when the model makes it again.
        AllowCall = "allow-call",
        /// Whatever the rule leaves to a person is done for the rest of the build.
        AllowRule = "allow-rule",
        /// It stays as it is.
        Leave = "leave",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_by_the_id_of_its_choice_and_by_nothing_else() {
        let of = |text: &str| BuildFinished::of(ChoiceId::parse(text).ok().as_ref());
        assert_eq!(of("merge"), Some(BuildFinished::Merge));
        assert_eq!(
            (of("try-again"), of("Merge it"), BuildFinished::of(None)),
            (None, None, None)
        );
    }
}
