//! Fences a command in a second time, inside its tree: by landlock, where the kernel has it, it writes nowhere else.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, path_beneath_rules,
};

use super::plan::Plan;

/// The newest rules that are asked for; an older kernel keeps those that it knows.
const NEWEST: ABI = ABI::V5;

/// Restricts this process and all that it starts.
pub(super) fn restrict(plan: &Plan) -> Result<(), RulesetError> {
    let everything = AccessFs::from_all(NEWEST);
    let devices = AccessFs::from_read(NEWEST) | AccessFs::WriteFile | AccessFs::IoctlDev;
    let writable = plan.writable().chain(plan.scratch());
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules(["/dev"], devices))?
        .add_rules(path_beneath_rules(["/dev/shm"], everything))?
        .add_rules(path_beneath_rules(writable, everything))?
        .restrict_self()?;
    Ok(())
}
