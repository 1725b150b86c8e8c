//! Writes the file of an archive.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::{END, MANIFEST, Manifest};

/// Files to be packed, each with its place in the archive.
#[derive(Debug, Default)]
pub(super) struct Contents {
    files: Vec<(String, PathBuf)>,
    size_bytes: u64,
}

impl Contents {
    /// Adds a file that nobody changes any more.
    pub(super) fn add(&mut self, name: &str, path: &Path) -> io::Result<()> {
        self.size_bytes += fs::metadata(path)?.len();
        self.files.push((name.to_owned(), path.to_owned()));
        Ok(())
    }

    /// Copies the plain files of `folder`, which others may be writing, to `aside`, and adds the copies.
    pub(super) fn copy(&mut self, name: &str, folder: &Path, aside: &Path) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        fs::create_dir_all(aside)?;
        for entry in entries {
            let entry = entry?;
            let file = entry.file_name();
            let (Some(file), kind) = (file.to_str(), entry.file_type()?) else {
                continue;
            };
            let (name, aside) = (format!("{name}/{file}"), aside.join(file));
            if kind.is_dir() {
                self.copy(&name, &entry.path(), &aside)?;
            } else if kind.is_file() && !file.starts_with('.') {
                match fs::copy(entry.path(), &aside) {
                    Ok(_) => self.add(&name, &aside)?,
                    // It was removed meanwhile, so nothing refers to it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Returns how many bytes the files have together.
    pub(super) const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Writes all of it to `file`, through to the disk.
    pub(super) fn write(&self, file: File, manifest: &Manifest) -> io::Result<()> {
        let packed = GzEncoder::new(BufWriter::new(file), Compression::fast());
        let mut archive = Builder::new(packed);
        let manifest = serde_json::to_vec_pretty(manifest)?;
        append(&mut archive, MANIFEST, manifest.len(), manifest.as_slice())?;
        for (name, path) in &self.files {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            let size = usize::try_from(size).map_err(io::Error::other)?;
            append(&mut archive, name, size, file)?;
        }
        append(&mut archive, END, 0, io::empty())?;
        let file = archive.into_inner()?.finish()?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}

fn append(
    archive: &mut Builder<impl Write>,
    name: &str,
    size: usize,
    content: impl Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(u64::try_from(size).map_err(io::Error::other)?);
    header.set_mode(0o600);
    archive.append_data(&mut header, name, content)
}
