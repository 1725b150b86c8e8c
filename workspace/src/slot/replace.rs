//! Replaces a checkout that cannot be made what it should be: with a file in it that nothing removes, for example.

use std::fs;
use std::path::Path;

use super::SlotError;
use crate::checkout::Checkout;
use crate::{GitError, LocalClone, Retirement};
use ropewalk_schemas::advice::Words;

/// Enters the checkout in `home`; when that fails, and a fresh one can be entered there, the one that was there is retired.
///
/// Where the fresh one fails too it was not the checkout, and everything is as before.
pub(super) async fn enter<Entered, Entry>(
    clone: &LocalClone,
    home: &Path,
    entry: impl Fn() -> Entry,
) -> Result<Option<Entered>, SlotError>
where
    Entry: Future<Output = Result<Option<Entered>, SlotError>>,
{
    let error = match entry().await {
        Err(error) if may_be_of_the_tree(&error) => error,
        entered => return entered,
    };
    let Some(checkout) = Checkout::take(clone, home).await? else {
        return Ok(None);
    };
    let Ok(place) = checkout.retire() else {
        return Err(error);
    };
    let Ok(Some(entered)) = entry().await else {
        give_back(home, &place)?;
        return Err(error);
    };
    let reason = Words::of(&error).to_string();
    tracing::error!(
        "`{}` cannot be used any more and lies in `{}` now: {reason}",
        home.display(),
        place.display()
    );
    clone.note_retirement(Retirement {
        checkout: home.to_owned(),
        place,
        reason,
    });
    Ok(Some(entered))
}

/// Puts a checkout back that was not to blame.
fn give_back(home: &Path, place: &Path) -> Result<(), GitError> {
    if home.exists() {
        fs::remove_dir_all(home).map_err(GitError::files(home))?;
    }
    fs::rename(place, home).map_err(GitError::files(home))
}

fn may_be_of_the_tree(error: &SlotError) -> bool {
    match error {
        SlotError::Empty | SlotError::Gone(_) => true,
        SlotError::AllTaken(_) => false,
        SlotError::Git(error) => matches!(
            error,
            GitError::Files { .. } | GitError::Failed { .. } | GitError::Unreadable { .. }
        ),
    }
}
