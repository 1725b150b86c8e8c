//! Gives a file back that was kept with an idea: byte for byte as it was sent, or not at all.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ropewalk_schemas::idea::{Attachment, Idea, Message};
use ropewalk_schemas::image::ImageKind;
use ropewalk_schemas::{ContentHash, Slug};
use ropewalk_store::{Query, ReadError, Store};

use super::{FOLDER, is_text, read_aloud};
use crate::ideas;

/// As many bytes as tell what sort of picture a file is.
const BEGINNING: u64 = 16;

/// What a file holds, told by its bytes and not by its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A picture.
    Picture(ImageKind),
    /// A text.
    Text,
    /// Anything else.
    Other,
}

/// A file as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// What its bytes say that it is.
    pub kind: FileKind,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Says why a file is not given back.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// No such file came along with what was said about the idea.
    #[error("no file `{name}` came along with the idea `{idea}`")]
    Unknown {
        /// The idea.
        idea: Slug,
        /// The file.
        name: String,
    },
    /// It is not in the folder any more, or something else is.
    #[error("`{0}` is not there any more as it was sent")]
    Changed(PathBuf),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl FileKind {
    fn of(bytes: &[u8]) -> Self {
        match ImageKind::of(bytes) {
            Some(kind) => Self::Picture(kind),
            None if std::str::from_utf8(bytes).is_ok_and(is_text) => Self::Text,
            None => Self::Other,
        }
    }
}

/// Returns the file `name` that came along with what was said about an idea; `state` is the state directory.
pub async fn read(
    store: &Store,
    state: &Path,
    slug: &Slug,
    name: &str,
) -> Result<KeptFile, KeptError> {
    let unknown = || KeptError::Unknown {
        idea: slug.clone(),
        name: name.to_owned(),
    };
    let idea = store.get::<Idea>(slug.as_str()).await?;
    let idea = idea.ok_or_else(unknown)?.into_inner();
    let path = format!("{FOLDER}/{name}");
    let mut files = of_idea(store, &idea).await?.into_iter();
    let file = files.find(|file| file.path == path).ok_or_else(unknown)?;
    let path = place(state, &idea, &file);
    let bytes = as_sent(&path, &file).ok_or(KeptError::Changed(path))?;
    Ok(KeptFile {
        kind: FileKind::of(&bytes),
        bytes,
    })
}

/// A text that came along with what was said about an idea.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptText {
    /// Where it lies in the folder of the idea.
    pub path: String,
    /// What it says, as much of it as is read aloud in the conversation; a text that goes on says so at its end.
    pub text: String,
}

/// Returns the texts that came along with what was said about an idea and are there as they were sent, each once, the oldest
/// first.
pub async fn texts(store: &Store, state: &Path, idea: &Idea) -> Result<Vec<KeptText>, ReadError> {
    let mut files = of_idea(store, idea).await?;
    let mut known = BTreeSet::new();
    files.retain(|file| known.insert(file.path.clone()) && !is_picture(state, idea, file));
    let texts = files.into_iter().filter_map(|file| {
        let bytes = as_sent(&place(state, idea, &file), &file)?;
        let read = read_aloud(&bytes)?;
        let goes_on = match bytes.len() {
            all if all > read.len() => format!("\n[It goes on: {all} bytes in all.]"),
            _ => String::new(),
        };
        Some(KeptText {
            path: file.path,
            text: format!("{read}{goes_on}"),
        })
    });
    Ok(texts.collect())
}

/// Lists the files that came along with what was said about an idea, the oldest first.
async fn of_idea(store: &Store, idea: &Idea) -> Result<Vec<Attachment>, ReadError> {
    let said = Query::new().equal("session", idea.session).order_by("at");
    let messages = store.list::<Message>(said).await?.into_iter();
    let files = messages.flat_map(|message| message.into_inner().attachments);
    Ok(files.collect())
}

/// Tells by how a file begins whether it is a picture.
pub fn is_picture(state: &Path, idea: &Idea, file: &Attachment) -> bool {
    let path = place(state, idea, file);
    let mut begins = Vec::new();
    let is_read = is_plain(&path, file)
        && std::fs::File::open(&path)
            .is_ok_and(|file| file.take(BEGINNING).read_to_end(&mut begins).is_ok());
    is_read && ImageKind::of(&begins).is_some()
}

fn place(state: &Path, idea: &Idea, file: &Attachment) -> PathBuf {
    ideas::folder(state, &idea.user, &idea.slug).join(&file.path)
}

/// Returns whether a file is there that has its size, and no link to another.
fn is_plain(path: &Path, file: &Attachment) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_file() && found.len() == file.size_bytes)
}

fn as_sent(path: &Path, file: &Attachment) -> Option<Vec<u8>> {
    let bytes = is_plain(path, file).then(|| std::fs::read(path).ok())??;
    (ContentHash::of(&bytes) == file.hash).then_some(bytes)
}
