//! Reads the folder of an idea that travels with the code: what people wrote as it is, the plan as it was approved.

use std::path::{Path, PathBuf};

use ropewalk_desk::attachments;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::document::spec_md::SpecHeader;
use ropewalk_schemas::document::{self, spec_md, tasks_md};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_store::revision_key;
use ropewalk_workspace::clone::FileChange;
use tracing::warn;

use crate::SharedState;
use crate::error::BuilderError;

/// A longer file of an idea folder does not travel with the code.
const LONGEST_FILE_BYTES: u64 = 1024 * 1024;
/// More files of an idea folder do not travel with the code.
const MOST_FILES: usize = 1_000;
/// Where the plan lies in the folder of its idea.
const SPEC: &str = "build/spec.md";
/// Where its tasks lie there.
const TASKS: &str = "build/tasks.md";

/// A file with its path in the folder of its idea.
type FolderFile = (String, Vec<u8>);

/// Returns the files to add to `head`; none where a file or link of the user is in the place of the folder.
pub(super) async fn files(
    shared: &SharedState,
    context: &Context,
    build: &Build,
    head: &CommitId,
) -> Result<Vec<FileChange>, BuilderError> {
    let idea = &build.idea;
    let folder = RepoPath::of_idea(idea);
    let there = shared.clone.list_files(head, "ideas").await?;
    let is_in_the_way = |path: &str| path == "ideas" || path == folder.as_str();
    if let Some(taken) = there.iter().find(|entry| is_in_the_way(&entry.path)) {
        warn!(build.id = %build.id, "`{}` is no folder, so the idea does not travel with its code", taken.path);
        return Ok(Vec::new());
    }
    let mut found = read(&shared.idea_folder(build))?;
    if found.is_empty() {
        warn!(build.id = %build.id, "there is no folder of idea `{idea}` to travel with its code");
    } else if !holds_what_was_approved(&found, build) {
        warn!(build.id = %build.id, "the plan in the folder of `{idea}` is not what was approved, which travels instead");
        found.retain(|(name, _)| name != SPEC && name != TASKS);
        found.extend(approved(context, build).await?);
    }
    say_approved(context, build, &mut found).await?;
    let changes = found.into_iter().filter_map(|(name, content)| {
        // What has no name in a repository stays where it is.
        let path = RepoPath::parse(&format!("{folder}/{name}")).ok()?;
        Some(FileChange::Write { path, content })
    });
    Ok(changes.collect())
}

/// Says that the plan in the folder, if there is one, is that of the build, however it is written.
fn holds_what_was_approved(found: &[FolderFile], build: &Build) -> bool {
    let text = |wanted: &str| {
        let (_, content) = found.iter().find(|(name, _)| name == wanted)?;
        Some(String::from_utf8_lossy(content).into_owned())
    };
    let (spec, tasks) = (text(SPEC), text(TASKS));
    if spec.is_none() && tasks.is_none() {
        return true;
    }
    let spec = spec.and_then(|text| spec_md::parse(&text).ok());
    let tasks = tasks.and_then(|text| tasks_md::parse(&text).ok());
    spec.zip(tasks).is_some_and(|((_, document), tasks)| {
        document::hash(&document, &tasks.blocks()) == build.hash
    })
}

/// Writes the plan as it was approved.
async fn approved(context: &Context, build: &Build) -> Result<Vec<FolderFile>, BuilderError> {
    let key = revision_key(build.spec, build.revision);
    let Some(revision) = context.store.get::<Revision>(&key).await? else {
        return Ok(Vec::new());
    };
    let tasks = tasks_md::render(&tasks_md::TasksPlan {
        id: build.spec,
        title: &revision.document.title,
        spec_version: revision.number,
        context: &revision.document.context_read,
        tasks: &revision.tasks,
    });
    let mut written = vec![(TASKS.to_owned(), tasks.into_bytes())];
    if let Some(header) = header(context, build).await? {
        let text = spec_md::render(&header, &revision.document);
        written.push((SPEC.to_owned(), text.into_bytes()));
    }
    Ok(written)
}

/// Says in spec.md that its revision is approved: it was written before anybody had read it. What cannot be read stays.
async fn say_approved(
    context: &Context,
    build: &Build,
    found: &mut [FolderFile],
) -> Result<(), BuilderError> {
    let Some(header) = header(context, build).await? else {
        return Ok(());
    };
    for (_, content) in found.iter_mut().filter(|(name, _)| name == SPEC) {
        let text = std::str::from_utf8(content).ok();
        if let Some(text) = text.and_then(|text| spec_md::reheaded(text, &header).ok()) {
            *content = text.into_bytes();
        }
    }
    Ok(())
}

/// What stands above spec.md of what the build was approved for.
async fn header(context: &Context, build: &Build) -> Result<Option<SpecHeader>, BuilderError> {
    let spec = build.spec.to_string();
    let spec = context.store.get::<Specification>(&spec).await?;
    Ok(spec.map(|spec| SpecHeader::approved(&spec, build.revision, &build.hash)))
}

/// Reads a folder; links, long files and what is no text path stay where they are.
fn read(folder: &Path) -> Result<Vec<FolderFile>, BuilderError> {
    let mut files = Vec::new();
    for path in listed(folder)?.into_iter().take(MOST_FILES) {
        let size = path
            .metadata()
            .map_err(|source| BuilderError::of_file(&path, source))?
            .len();
        let name = path.strip_prefix(folder).ok().and_then(Path::to_str);
        if let Some(name) = name
            && size <= LONGEST_FILE_BYTES
        {
            let content =
                std::fs::read(&path).map_err(|source| BuilderError::of_file(&path, source))?;
            files.push((name.to_owned(), content));
        }
    }
    Ok(files)
}

/// Lists the plain files below the folder of an idea, in the order of their names, without those that people attached.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, BuilderError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    let attached = folder.join(attachments::FOLDER);
    while let Some(directory) = open.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(BuilderError::of_file(&directory, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| BuilderError::of_file(&directory, source))?;
            let kind = entry
                .file_type()
                .map_err(|source| BuilderError::of_file(&entry.path(), source))?;
            if kind.is_dir() && entry.path() != attached {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
