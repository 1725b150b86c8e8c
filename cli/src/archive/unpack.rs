//! Reads the file of an archive, which may come from anybody: nothing of it reaches beyond the folder that it is unpacked
//! to, and no more of it than it says.

use std::fs::{DirBuilder, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, Entries, Entry, EntryType};

use super::{BUNDLE, END, FOLDERS, FORM, MANIFEST, Manifest, SETTINGS, STATE, refusal};
use crate::error::CliError;

/// The most bytes of what says what an archive is, and of its configuration.
const MOST_TEXT: u64 = 1024 * 1024;
/// The most bytes that an archive may come to: 256 GiB.
const MOST_BYTES: u64 = 256 * 1024 * 1024 * 1024;
/// The most files in an archive.
const MOST_FILES: usize = 4_000_000;
/// The deepest folder in an archive.
const DEEPEST: usize = 16;

type ArchiveReader = GzDecoder<BufReader<File>>;

/// Reads what the archive at `path` is, and refuses what this program cannot read.
pub(super) fn manifest(path: &Path) -> Result<Manifest, CliError> {
    let mut archive = open(path)?;
    let mut entries = archive.entries().map_err(|error| broken(path, &error))?;
    first(path, &mut entries)
}

/// Unpacks the archive at `path` into `folder`, which is empty.
pub(super) fn unpack(path: &Path, folder: &Path) -> Result<(), CliError> {
    let mut archive = open(path)?;
    let mut entries = archive.entries().map_err(|error| broken(path, &error))?;
    let manifest = first(path, &mut entries)?;
    files(path, &mut entries, folder, manifest.size_bytes)?;
    // The checksum of all that was read is behind it.
    let mut behind = archive.into_inner().take(MOST_TEXT);
    io::copy(&mut behind, &mut io::sink()).map_err(|error| broken(path, &error))?;
    Ok(())
}

fn open(path: &Path) -> Result<Archive<ArchiveReader>, CliError> {
    let file = File::open(path).map_err(|error| CliError::file(path, &error))?;
    Ok(Archive::new(GzDecoder::new(BufReader::new(file))))
}

/// Places every file up to the last entry, `left` bytes at most.
fn files(
    path: &Path,
    entries: &mut Entries<'_, ArchiveReader>,
    folder: &Path,
    mut left: u64,
) -> Result<(), CliError> {
    for _ in 0..MOST_FILES {
        // Without a last entry the end of the file came too early.
        let entry = entries.next().ok_or_else(|| cut(path))?;
        let mut entry = entry.map_err(|error| broken(path, &error))?;
        let name = name(path, &entry)?;
        if name == Path::new(END) {
            return match entries.next() {
                None => Ok(()),
                Some(Ok(_)) => Err(forged(path, "more after its end")),
                Some(Err(error)) => Err(broken(path, &error)),
            };
        }
        left = left
            .checked_sub(entry.size())
            .ok_or_else(|| forged(path, "more than it says"))?;
        if name == Path::new(SETTINGS) && entry.size() > MOST_TEXT {
            return Err(forged(path, "a configuration that is too large"));
        }
        place(path, &mut entry, &folder.join(name))?;
    }
    Err(forged(path, "too many files"))
}

fn first(path: &Path, entries: &mut Entries<'_, ArchiveReader>) -> Result<Manifest, CliError> {
    let first = entries.next().ok_or_else(|| foreign(path))?;
    let first = first.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => broken(path, &error),
        _ => foreign(path),
    })?;
    if name(path, &first)? != Path::new(MANIFEST) || first.size() > MOST_TEXT {
        return Err(foreign(path));
    }
    let mut text = String::new();
    let read = first.take(MOST_TEXT).read_to_string(&mut text);
    read.map_err(|error| broken(path, &error))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|_| foreign(path))?;
    // Asked before the rest, which a newer program may write in other words.
    let form = value["form"].as_u64().ok_or_else(|| foreign(path))?;
    if form > u64::from(FORM) {
        let program = value["program"].as_str().unwrap_or("a newer one");
        let program: String = program.chars().take(40).collect();
        return Err(refusal(
            format!("`{}` was written by ropewalk {program}", path.display()),
            "update this one first",
        ));
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(|_| foreign(path))?;
    if manifest.size_bytes > MOST_BYTES {
        return Err(forged(path, "more than any project has"));
    }
    Ok(manifest)
}

/// Returns the place of an entry; refused is all that is no plain file at a place that archives have.
fn name(path: &Path, entry: &Entry<'_, ArchiveReader>) -> Result<PathBuf, CliError> {
    let name = entry.path().map_err(|error| broken(path, &error))?;
    let shown = || format!("`{}`", name.display());
    if entry.header().entry_type() != EntryType::Regular {
        return Err(forged(
            path,
            &format!("{}, which is no plain file", shown()),
        ));
    }
    let mut parts = Vec::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str().unwrap_or_default()),
            _ => return Err(forged(path, &format!("{}, which leads out of it", shown()))),
        }
    }
    let known = match parts.as_slice() {
        [MANIFEST | SETTINGS | BUNDLE | END] | [STATE, "ropewalk.db"] => true,
        [STATE, folder, _, ..] => FOLDERS.contains(folder) && parts.len() <= DEEPEST,
        _ => false,
    };
    if known {
        Ok(name.into_owned())
    } else {
        Err(forged(path, &format!("{}, which no archive has", shown())))
    }
}

/// Writes one file, which is not there yet.
fn place(path: &Path, entry: &mut Entry<'_, ArchiveReader>, to: &Path) -> Result<(), CliError> {
    let place = |error: io::Error| CliError::file(to, &error);
    if let Some(folder) = to.parent() {
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        folders.create(folder).map_err(place)?;
    }
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o600).open(to);
    let mut file = file.map_err(place)?;
    let mut chunk = vec![0; 64 * 1024];
    let mut left = entry.size();
    while left > 0 {
        let read = entry.read(&mut chunk);
        let read = read.map_err(|error| broken(path, &error))?;
        if read == 0 {
            return Err(cut(path));
        }
        file.write_all(&chunk[..read]).map_err(place)?;
        left = left.saturating_sub(read as u64);
    }
    Ok(())
}

fn broken(path: &Path, error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => cut(path),
        _ => refusal(
            format!("`{}` is damaged: {error}", path.display()),
            "copy it once more, or export the project anew",
        ),
    }
}

fn cut(path: &Path) -> CliError {
    refusal(
        format!("`{}` ends too early", path.display()),
        "copy it once more, or export the project anew",
    )
}

fn foreign(path: &Path) -> CliError {
    refusal(
        format!("`{}` is no archive of a project", path.display()),
        "name a file that `ropewalk export` wrote",
    )
}

fn forged(path: &Path, what: &str) -> CliError {
    refusal(
        format!("`{}` holds {what}", path.display()),
        "take nothing from whoever made it; `ropewalk export` writes no such thing",
    )
}
