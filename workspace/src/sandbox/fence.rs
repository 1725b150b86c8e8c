//! Fences a command in a second time, inside its tree: by landlock, where the kernel has it, it writes nowhere else.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, path_beneath_rules,
};

use super::plan::Plan;

/// The newest rules that are asked for; an older kernel keeps those that it knows.
const NEWEST: ABI = ABI::V5;

/// Says that the kernel has landlock; where it has none, the tree and its read-only mounts alone hold a command.
pub fn has_landlock() -> bool {
    // It is made and dropped: nothing is restricted by that.
    let asked = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1));
    asked.and_then(Ruleset::create).is_ok()
}

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
