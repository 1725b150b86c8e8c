//! What people say about lines: all of it together is one request for another revision.

use std::fmt::Write as _;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::{BuildId, CommitId, ContentHash, SpecId};
use ropewalk_store::Store;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::people::Person;
use crate::specifications::{self, RequestError};
use crate::views::lines::{FileLines, LinesView, Side};
use crate::views::specification::{CompareError, document_lines};

/// The most comments that go together.
const MOST: usize = 100;
/// The most letters of a line that are quoted.
const QUOTED: usize = 200;

/// What somebody says about a line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comment {
    /// The file, as it was shown.
    pub file: String,
    /// Whether the line is one before the change or after it.
    pub side: Side,
    /// The number of the line, from 1.
    pub line: u32,
    /// What is said.
    pub text: String,
}

/// Says why comments did not become a revision.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The build still changes.
    #[error("build `{0}` has not ended")]
    Unfinished(BuildId),
    /// Another build goes on with its work.
    #[error("build `{0}` was amended, and another one goes on with its work")]
    Amended(BuildId),
    /// What was commented on is not what is there now.
    #[error("what these comments are about has changed since it was shown")]
    Changed,
    /// No such line was shown.
    #[error("`{file}` shows no line {line}")]
    NoLine {
        /// The file.
        file: String,
        /// The number.
        line: u32,
    },
    /// Nothing was said, or too much.
    #[error("there is no comment, or there are more than {MOST}")]
    Count,
    /// Documents of the revision cannot be read.
    #[error(transparent)]
    Document(#[from] CompareError),
    /// The revision was refused.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Returns the lines of the documents of the newest revision of a specification.
pub async fn lines_of_specification(
    store: &Store,
    found: &Specification,
) -> Result<LinesView, CompareError> {
    let of = found.hash.as_ref().map(ToString::to_string);
    Ok(LinesView {
        files: document_lines(store, found).await?,
        of: of.unwrap_or_default(),
    })
}

/// Returns the lines `files` that a build changed.
pub fn lines_of_build(build: &Build, files: Vec<FileLines>) -> LinesView {
    let of = build.head.as_ref().map(ToString::to_string);
    LinesView {
        of: of.unwrap_or_default(),
        files,
    }
}

/// Asks for another revision by comments on the lines of the documents of the newest one, which was shown with `hash`.
pub async fn on_specification(
    context: &Context,
    spec: SpecId,
    hash: &ContentHash,
    by: &Person,
    comments: &[Comment],
) -> Result<(), CommentError> {
    let found = context.store.get::<Specification>(&spec.to_string()).await;
    let found = found.map_err(RequestError::Read)?;
    let found = found.ok_or(RequestError::UnknownSpecification(spec))?;
    if found.hash.as_ref() != Some(hash) {
        return Err(CommentError::Changed);
    }
    let files = document_lines(&context.store, &found).await?;
    let head = format!("Comments on lines of revision {}:", found.revision);
    let feedback = told(&head, &files, comments)?;
    let revised = specifications::revise_shown(context, spec, Some(hash), &by.name, &feedback);
    match revised.await {
        Err(RequestError::Newer { .. }) => Err(CommentError::Changed),
        other => Ok(other?),
    }
}

/// Asks for another revision by comments on the lines of what a finished build changed, which was shown as of `head`
/// and is `files`; returns the specification.
pub async fn on_build(
    context: &Context,
    build: &Build,
    head: &CommitId,
    files: &[FileLines],
    by: &Person,
    comments: &[Comment],
) -> Result<SpecId, CommentError> {
    admits(build)?;
    if build.head.as_ref() != Some(head) {
        return Err(CommentError::Changed);
    }
    let head = format!(
        "Comments on lines of `{}` at {}:",
        build.branch,
        head.short()
    );
    let feedback = told(&head, files, comments)?;
    specifications::revise(context, build.spec, &by.name, &feedback).await?;
    Ok(build.spec)
}

/// Returns whether what a build changed can be commented on.
pub fn admits(build: &Build) -> Result<(), CommentError> {
    if build.continued_by.is_some() {
        Err(CommentError::Amended(build.id))
    } else if build.completed_at.is_none() || build.head.is_none() {
        Err(CommentError::Unfinished(build.id))
    } else {
        Ok(())
    }
}

/// Tells all comments in one text, each with its file and line and what stands there.
fn told(head: &str, files: &[FileLines], comments: &[Comment]) -> Result<String, CommentError> {
    if comments.is_empty() || comments.len() > MOST {
        return Err(CommentError::Count);
    }
    let mut text = head.to_owned();
    for comment in comments {
        let said = comment.text.trim();
        if said.is_empty() {
            return Err(CommentError::Count);
        }
        let file = files.iter().find(|file| file.file == comment.file);
        let line = file.and_then(|file| file.at(comment.side, comment.line));
        let line = line.ok_or_else(|| CommentError::NoLine {
            file: comment.file.clone(),
            line: comment.line,
        })?;
        let quoted = clip::letters(line.text.trim(), QUOTED);
        let gone = match comment.side {
            Side::Old => "removed line",
            Side::New => "line",
        };
        let said = said.replace('\n', "\n  ");
        // A string takes whatever is written.
        write!(
            text,
            "\n- `{}`, {gone} {} (`{}`): {said}",
            comment.file,
            comment.line,
            quoted.replace('`', "'")
        )
        .ok();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(line: u32, text: &str) -> Comment {
        Comment {
            file: "spec.md".to_owned(),
            side: Side::New,
            line,
            text: text.to_owned(),
        }
    }

    #[test]
    fn comments_go_together_with_their_files_and_lines_and_what_stands_there() {
        let files = [FileLines::of_document(
            "spec.md",
            "# Walks\n\n- `FR-1` a list\n",
        )];
        let told_of = |comments: &[Comment]| told("Comments:", &files, comments);
        assert_eq!(
            told_of(&[
                comment(1, " another title "),
                comment(3, "two lists\nor three")
            ])
            .unwrap(),
            "Comments:\n- `spec.md`, line 1 (`# Walks`): another title\n\
             - `spec.md`, line 3 (`- 'FR-1' a list`): two lists\n  or three"
        );
        let refused = told_of(&[comment(4, "x")]).unwrap_err();
        assert!(
            matches!(refused, CommentError::NoLine { line: 4, .. }),
            "{refused}"
        );
        for none in [&[][..], &[comment(1, "  ")]] {
            assert!(matches!(told_of(none), Err(CommentError::Count)));
        }
        let many = vec![comment(1, "x"); MOST + 1];
        assert!(matches!(told_of(&many), Err(CommentError::Count)));
    }
}
