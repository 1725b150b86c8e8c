//! Locks the files that links among the files of a task lead to: who writes through a link writes those.

use ropewalk_engine::GrantReply;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_workspace::{PathError, Slot};

use super::Grants;
use super::following::go_on;
use crate::attempt::Ending;
use crate::attempt::ending::Fault;
use crate::attempt::work::{Work, held_now};
use crate::error::BuilderError;

/// Takes what the locked files lead to, and waits for it where others hold it; else says how the attempt ends.
pub(in crate::attempt) async fn lock_behind(
    work: &Work<'_>,
    slot: &mut Slot,
    grants: &Grants,
) -> Result<Option<Ending>, BuilderError> {
    let behind = behind(work, slot)?;
    if behind.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = behind.iter().map(|file| format!("`{file}`")).collect();
    let why = format!("a link of the task leads to {}", names.join(" and "));
    Ok(match grants.grant(&behind, &why).await? {
        GrantReply::Granted { .. } => {
            if let Some(head) = grants.later_head(&behind).await? {
                go_on(work, slot, head).await?;
            }
            None
        }
        GrantReply::Denied(reason) => {
            let told = format!("{why}, and that cannot be had: {reason}");
            let fault = Fault::new(FailureClass::Blocked, told);
            Some(Ending::Failed(Box::new(fault)))
        }
        GrantReply::Ended(reason) => Some(Ending::Interrupted(reason)),
    })
}

fn behind(work: &Work<'_>, slot: &Slot) -> Result<Vec<RepoPath>, PathError> {
    let files = slot.files()?;
    let held = held_now(&work.locks);
    let mut behind: Vec<RepoPath> = Vec::new();
    for real in held.keys().filter_map(|file| files.behind_links(file)) {
        let is_held = |file: &RepoPath| file.key() == real.key();
        if !held.keys().any(is_held) && !behind.iter().any(is_held) {
            behind.push(real);
        }
    }
    Ok(behind)
}
