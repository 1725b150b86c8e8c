//! Compares the commits of a build with those of its replay.

use ropewalk_llm::print::plain;
use ropewalk_schemas::CommitId;
use ropewalk_schemas::build::Build;
use ropewalk_workspace::LocalClone;
use ropewalk_workspace::commit::LoggedCommit;

use crate::error::CliError;

/// What a comparison comes to.
pub(super) struct Comparison {
    /// The commits of the replay, the first one first.
    pub(super) commits: Vec<CommitId>,
    /// How many of them note the same of the tasks, at other times.
    pub(super) other_times: usize,
    /// The first difference.
    pub(super) differs: Option<String>,
}

/// Compares commit by commit. One that only notes when its tasks were complete is the same where all else is.
pub(super) async fn compare(
    (before, was): (&LocalClone, &Build),
    (after, is): (&LocalClone, &Build),
) -> Result<Comparison, CliError> {
    let had = commits(before, was).await?;
    let has = commits(after, is).await?;
    let (mut differs, mut other_times) = (None, 0);
    for (was, is) in had.iter().zip(&has) {
        if was.id == is.id {
            continue;
        }
        if is_note_of_times((before, was), (after, is)).await? {
            other_times += 1;
        } else {
            differs = Some(format!(
                "commit {} `{}` was {} `{}`",
                is.id.short(),
                is.subject,
                was.id.short(),
                was.subject
            ));
            break;
        }
    }
    if differs.is_none() && had.len() != has.len() {
        differs = Some(format!(
            "{} commits, and there were {}",
            has.len(),
            had.len()
        ));
    }
    if differs.is_none() && was.state != is.state {
        differs = Some(format!("the build is {}, and was {}", is.state, was.state));
    }
    Ok(Comparison {
        commits: has.into_iter().map(|commit| commit.id).collect(),
        other_times,
        differs,
    })
}

async fn commits(clone: &LocalClone, build: &Build) -> Result<Vec<LoggedCommit>, CliError> {
    match (&build.base, &build.head) {
        (Some(base), Some(head)) => Ok(clone.log(Some(base), head).await?),
        _ => Ok(Vec::new()),
    }
}

/// Says that two commits note the same of the tasks, at other times.
async fn is_note_of_times(
    (before, was): (&LocalClone, &LoggedCommit),
    (after, is): (&LocalClone, &LoggedCommit),
) -> Result<bool, CliError> {
    if was.subject != is.subject || was.trailers != is.trailers || was.trailers.len() != 1 {
        return Ok(false);
    }
    let (had, has) = (noted(before, was).await?, noted(after, is).await?);
    Ok(had.is_some() && had == has)
}

/// Returns what a commit makes of the one file that it changes, without times.
async fn noted(
    clone: &LocalClone,
    commit: &LoggedCommit,
) -> Result<Option<(String, String)>, CliError> {
    let from = format!("{}^", commit.id);
    let changed = clone.changed_files(&from, commit.id.as_str()).await?;
    let [file] = changed.as_slice() else {
        return Ok(None);
    };
    let content = clone.read_file(&commit.id, &file.path).await?;
    let text = content.map(|content| plain(&String::from_utf8_lossy(&content)));
    Ok(text.map(|text| (file.path.clone(), text)))
}
