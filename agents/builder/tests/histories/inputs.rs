//! Names the inputs of both machines, and says which of them a history played.

use std::collections::BTreeSet;

use ropewalk_builder::machine::build::Input as BuildInput;
use ropewalk_builder::machine::task::Input as TaskInput;

/// Lists the inputs of a machine, and names each. The match is exhaustive: whatever is new has to stand here, and so to be played.
macro_rules! inputs {
    ($list:ident, $name:ident, $input:ident: $($variant:ident)+) => {
        const $list: &[&str] = &[$(stringify!($variant)),+];

        pub(crate) const fn $name(input: &$input) -> &'static str {
            match input {
                $($input::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}

inputs!(OF_TASKS, of_task, TaskInput:
    Edges Carry TakeUp Claim Obstruct Await Progress Extend Refrain Reach Land SendBack Fail CutOff Interrupt Suspend PutQuestion
    Answer ExhaustBudget LoseProvider ProviderBack FilesFree Tick Fund Resume HandOver ChangeOwner Deny Allow Forbid Recheck Retry
    Skip Leave LayDown Assign Advise Hear Ask);

inputs!(OF_BUILDS, of_build, BuildInput:
    Prime Begin Pause Count Rest Hold Contest SettleBranch GoOn Resume Revive Verify Pass Fail Stop Abandon Rank Conclude Amend
    ExhaustBudget Fund Land Merge RefuseLanding AcceptRisk Explain Heed Ask);

/// The inputs that were applied, and not refused.
#[derive(Debug, Default)]
pub(crate) struct PlayedInputs {
    pub(crate) of_tasks: BTreeSet<&'static str>,
    pub(crate) of_builds: BTreeSet<&'static str>,
}

impl PlayedInputs {
    /// Adds what another history played.
    pub(crate) fn add(&mut self, other: Self) {
        self.of_tasks.extend(other.of_tasks);
        self.of_builds.extend(other.of_builds);
    }

    /// Names the inputs that were never applied.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = |machine: &str, all: &[&str], played: &BTreeSet<&str>| -> Vec<String> {
            let never = all.iter().filter(|name| !played.contains(*name));
            never.map(|name| format!("{machine} `{name}`")).collect()
        };
        let mut all = missing("task", OF_TASKS, &self.of_tasks);
        all.extend(missing("build", OF_BUILDS, &self.of_builds));
        all
    }
}
