//! Takes files that people send along with what they say about an idea: kept in its folder, and told in its conversation.
//!
//! A file is data: its name is made harmless, it can never be executed, and nothing here looks inside it but to read a text
//! aloud and to tell a picture. It stays in the folder of the idea and does not travel with the code.

pub mod kept;

use std::io::Write;
use std::path::{Path, PathBuf};

use ropewalk_orchestrator::Context;
use ropewalk_schemas::amount::{counted, size};
use ropewalk_schemas::idea::{Attachment, Message, Session};
use ropewalk_schemas::{ContentHash, SessionId, UserSlug};
use ropewalk_store::{Query, ReadError};

use crate::ideas::{self, AcceptedMessage, ChatError, Words};

/// The folder of the files below that of the idea.
pub const FOLDER: &str = "attachments";
/// The most bytes of one file; Telegram gives a bot no larger one.
pub const FILE_BYTES: u64 = 20 * 1024 * 1024;
/// The most bytes of all files of an idea.
const ALL_BYTES: u64 = 200 * 1024 * 1024;
/// The most files of an idea.
const MOST_FILES: usize = 200;
/// How much of a text is read aloud in the conversation.
const READ_BYTES: usize = 16 * 1024;
/// The most bytes of a name.
const NAME_BYTES: usize = 80;
/// The most bytes of what stands behind the last dot of a name.
const ENDING_BYTES: usize = 12;

/// A file as somebody sends it.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    /// What its sender calls it; nothing in it is trusted.
    pub name: &'a str,
    /// What sort of file its sender says it is.
    pub media_type: Option<&'a str>,
    /// What it holds.
    pub bytes: &'a [u8],
    /// What is said along with it; nothing where it is empty.
    pub words: &'a str,
    /// What is to be known about it, such as that nobody wrote down a voice note; nothing where it is empty.
    pub note: &'a str,
}

/// A file that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentReceipt {
    /// The message that tells of it.
    pub said: AcceptedMessage,
    /// The file.
    pub file: Attachment,
}

/// Says why a file was not kept.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It is too large.
    #[error("the file has {0} bytes, and {most} is the most", most = size(FILE_BYTES))]
    TooLarge(u64),
    /// The idea has too many of them.
    #[error(
        "the idea has {} of {} already; {MOST_FILES} of {} are the most",
        counted(*files, "file"),
        size(*bytes),
        size(ALL_BYTES)
    )]
    Full {
        /// How many it has.
        files: usize,
        /// How large they are together.
        bytes: u64,
    },
    /// The message that tells of it cannot be taken.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The file cannot be written.
    #[error("cannot keep it in `{path}`: {source}")]
    File {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl From<ReadError> for AttachError {
    fn from(error: ReadError) -> Self {
        Self::Chat(error.into())
    }
}

/// Keeps a file with the idea of a session and tells of it in the conversation; `state` is the state directory. The same
/// file under the same name is kept once.
pub async fn attach(
    context: &Context,
    state: &Path,
    session: SessionId,
    user: &UserSlug,
    sent: Upload<'_>,
) -> Result<AttachmentReceipt, AttachError> {
    let session = ideas::open_session(&context.store, session).await?;
    let size_bytes = sent.bytes.len() as u64;
    match size_bytes {
        0 => return Err(AttachError::Empty),
        size if size > FILE_BYTES => return Err(AttachError::TooLarge(size)),
        _ => {}
    }
    has_room(context, &session, size_bytes).await?;
    let folder = ideas::folder(state, &session.user, &session.idea).join(FOLDER);
    let name =
        keep(&folder, &harmless(sent.name), sent.bytes).map_err(|source| AttachError::File {
            path: folder.clone(),
            source,
        })?;
    let file = Attachment {
        path: format!("{FOLDER}/{name}"),
        media_type: sent.media_type.and_then(known_type),
        size_bytes,
        hash: ContentHash::of(sent.bytes),
    };
    let text = told(&sent, &file);
    let words = Words {
        text: ideas::checked(&text)?,
        ends: false,
        attachments: std::slice::from_ref(&file),
    };
    let said = ideas::add(context, &session, user, words).await?;
    Ok(AttachmentReceipt { said, file })
}

async fn has_room(context: &Context, session: &Session, more: u64) -> Result<(), AttachError> {
    let of_it = Query::new().equal("session", session.id);
    let messages = context.store.list::<Message>(of_it).await?;
    let kept = || messages.iter().flat_map(|message| &message.attachments);
    let (files, bytes) = (
        kept().count(),
        kept().map(|file| file.size_bytes).sum::<u64>(),
    );
    if files < MOST_FILES && bytes + more <= ALL_BYTES {
        return Ok(());
    }
    Err(AttachError::Full { files, bytes })
}

/// Writes a file under the first free name; one that has it already with the same content is that file.
fn keep(folder: &Path, wanted: &str, bytes: &[u8]) -> std::io::Result<String> {
    std::fs::create_dir_all(folder)?;
    if !folder.symlink_metadata()?.is_dir() {
        return Err(std::io::Error::other("it is a link"));
    }
    // Made for this user alone, and never to be executed.
    let mut unfinished = tempfile::Builder::new()
        .prefix(".ropewalk-")
        .tempfile_in(folder)?;
    unfinished.write_all(bytes)?;
    unfinished.as_file().sync_all()?;
    for number in 1..=MOST_FILES {
        let name = numbered(wanted, number);
        let path = folder.join(&name);
        match unfinished.persist_noclobber(&path) {
            Ok(_) => return Ok(name),
            Err(refused) if refused.error.kind() == std::io::ErrorKind::AlreadyExists => {
                unfinished = refused.file;
                let is_plain = path.symlink_metadata()?.is_file();
                if is_plain && std::fs::read(&path)? == bytes {
                    return Ok(name);
                }
            }
            Err(refused) => return Err(refused.error),
        }
    }
    Err(std::io::Error::other(format!(
        "`{wanted}` is there too often"
    )))
}

/// Makes a name of what somebody calls a file: no path, nothing hidden, no letter that means something elsewhere.
fn harmless(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |letter: char| {
        let is_plain = letter.is_alphanumeric() || matches!(letter, '.' | '_');
        if is_plain { letter } else { '-' }
    };
    let mut name: String = last.chars().map(plain).collect();
    while name.contains("--") || name.contains("..") {
        name = name.replace("--", "-").replace("..", ".");
    }
    let name = name.trim_matches(['.', '-']);
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if ending.len() <= ENDING_BYTES => (stem, Some(ending)),
        _ => (name, None),
    };
    let stem = &stem[..stem.floor_char_boundary(NAME_BYTES)];
    match (stem.trim_matches(['.', '-']), ending) {
        ("", None) => "file".to_owned(),
        ("", Some(ending)) => format!("file.{ending}"),
        (stem, None) => stem.to_owned(),
        (stem, Some(ending)) => format!("{stem}.{ending}"),
    }
}

fn numbered(name: &str, number: usize) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, ending))) => format!("{stem}-{number}.{ending}"),
        (_, None) => format!("{name}-{number}"),
    }
}

/// Returns a type that is written like one.
fn known_type(given: &str) -> Option<String> {
    let is_part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
        !part.is_empty() && part.len() <= 64 && part.bytes().all(plain)
    };
    let (kind, of) = given.split_once('/')?;
    (is_part(kind) && is_part(of)).then(|| given.to_ascii_lowercase())
}

/// Returns the text that a file holds, as much as is read aloud; none where it holds anything else.
fn read_aloud(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    is_text(text).then(|| &text[..text.floor_char_boundary(READ_BYTES)])
}

/// Returns whether these letters say something, and tell a terminal nothing.
fn is_text(text: &str) -> bool {
    let is_plain = |letter: char| !letter.is_control() || letter.is_whitespace();
    !text.trim().is_empty() && text.chars().all(is_plain)
}

/// Tells of a file: what was said along with it, what it is, and what it says.
fn told(sent: &Upload<'_>, file: &Attachment) -> String {
    let kind = file.media_type.as_deref();
    let kind = kind.map_or_else(String::new, |kind| format!(", {kind}"));
    let about = format!(
        "[A file came along: `{}`{kind}, {}.{}{}]",
        file.path,
        counted(file.size_bytes, "byte"),
        if sent.note.is_empty() { "" } else { " " },
        sent.note
    );
    let read = read_aloud(sent.bytes).map(|text| {
        let begins = if (text.len() as u64) < file.size_bytes {
            "It begins:"
        } else {
            "It says:"
        };
        format!("{begins}\n{}", ropewalk_config::fenced(text, None))
    });
    let words = Some(sent.words.trim().to_owned()).filter(|words| !words.is_empty());
    let parts = words.into_iter().chain([about]).chain(read);
    parts.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_and_hides_nothing() {
        for (given, expected) in [
            ("Plan für 2027.pdf", "Plan-für-2027.pdf"),
            ("../../../etc/passwd", "passwd"),
            ("C:\\Windows\\run.exe", "run.exe"),
            ("/", "file"),
            ("", "file"),
            ("..", "file"),
            (".bashrc", "bashrc"),
            ("-rf .jpg", "rf.jpg"),
            ("a\u{202e}gpj.exe", "a-gpj.exe"),
            ("a\n$(reboot)`id`\0.txt", "a-reboot-id.txt"),
            ("....jpg", "jpg"),
            ("a.tar.gz", "a.tar.gz"),
        ] {
            assert_eq!(harmless(given), expected, "{given:?}");
        }
        let long = harmless(&format!("{}.{}", "ü".repeat(500), "x".repeat(500)));
        assert!(long.len() <= NAME_BYTES, "{long}");
        assert_eq!(harmless(&format!("{}.jpg", "a".repeat(500))).len(), 84);
        assert_eq!(
            [1, 2].map(|number| numbered("a.b.txt", number)),
            ["a.b.txt", "a.b-2.txt"]
        );
    }

    #[test]
    fn a_type_is_one_or_is_left_out() {
        assert_eq!(known_type("Image/JPEG"), Some("image/jpeg".to_owned()));
        for given in ["", "text", "a/b/c", "text/`x`", "/x", "x/\n"] {
            assert_eq!(known_type(given), None, "{given:?}");
        }
    }

    #[test]
    fn only_text_is_read_aloud_and_not_all_of_a_long_one() {
        assert_eq!(
            read_aloud(b"# Walks\n\tmany\r\n"),
            Some("# Walks\n\tmany\r\n")
        );
        for bytes in [&b"\xff\xd8\xff"[..], b"a\0b", b"\x1b[2J", b"  \n"] {
            assert_eq!(read_aloud(bytes), None, "{bytes:?}");
        }
        let long = "é".repeat(READ_BYTES);
        assert_eq!(read_aloud(long.as_bytes()).map(str::len), Some(READ_BYTES));
    }

    #[test]
    fn a_file_is_kept_once_beside_others_of_its_name_and_is_no_program() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(FOLDER);
        let kept = |name: &str, bytes: &[u8]| keep(&folder, name, bytes).unwrap();
        assert_eq!(kept("a.sh", b"#!/bin/sh\n"), "a.sh");
        assert_eq!(kept("a.sh", b"#!/bin/sh\n"), "a.sh");
        std::os::unix::fs::symlink("/etc/hostname", folder.join("a-2.sh")).unwrap();
        assert_eq!(kept("a.sh", b"another"), "a-3.sh");
        let mode = folder.join("a.sh").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
        let elsewhere = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        assert!(keep(&link, "a", b"a").is_err());
    }
}
