//! What becomes of the folder in which the documents of an idea travel: they come along, and replace nobody else's.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::document::spec_md;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_store::Query;
use ropewalk_workspace::LocalClone;
use ropewalk_workspace::commit::ChangeKind;

use super::LandError;

/// Returns the folder of the idea where `commit` brings documents into it that `tip` of the branch `into` has not, or not
/// so; refuses where they would replace what no landing of this project brought there.
pub(super) async fn brought(
    clone: &LocalClone,
    context: &Context,
    build: &Build,
    (into, tip, commit): (&str, &CommitId, &CommitId),
) -> Result<Option<RepoPath>, LandError> {
    let folder = RepoPath::of_idea(&build.idea);
    let below = format!("{folder}/");
    let changed = clone.changed_files(tip.as_str(), commit.as_str()).await?;
    let of_idea = changed.iter().filter(|file| file.path.starts_with(&below));
    let kinds: Vec<ChangeKind> = of_idea.map(|file| file.kind).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let replaces = kinds.iter().any(|kind| *kind != ChangeKind::Added);
    if replaces && !is_ours(clone, context, build, tip).await? {
        return Err(LandError::Documents {
            build: build.id,
            into: into.to_owned(),
            folder,
        });
    }
    Ok(Some(folder))
}

/// Says whether the plan in the folder is that of a specification of this project, of whatever revision; where none can be
/// read, whether a build of the idea was landed there before.
async fn is_ours(
    clone: &LocalClone,
    context: &Context,
    build: &Build,
    tip: &CommitId,
) -> Result<bool, LandError> {
    let path = format!("{}/build/spec.md", RepoPath::of_idea(&build.idea));
    let text = clone.read_file(tip, &path).await?;
    let header = text.and_then(|text| spec_md::header(&String::from_utf8_lossy(&text)).ok());
    if let Some(header) = header {
        let key = header.id.to_string();
        let spec = context.store.get::<Specification>(&key).await?;
        return Ok(spec.is_some_and(|spec| spec.idea == build.idea));
    }
    let of_idea = Query::new().equal("idea", build.idea.as_str());
    for earlier in context.store.list::<Build>(of_idea).await? {
        if let Some(landed) = &earlier.merged
            && clone.is_ancestor(landed, tip).await?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
