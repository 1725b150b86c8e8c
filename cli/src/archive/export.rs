//! Verb `export`: writes a project into one file, beside whatever runs on it.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_config::ProjectFile;
use ropewalk_schemas::advice::Words;
use ropewalk_store::{Location, leave_behind};
use ropewalk_workspace::{Identity, LocalClone, LocalCloneOptions};
use serde::Serialize;

use super::pack::Contents;
use super::{BUNDLE, DATABASE, FOLDERS, FORM, Manifest, SETTINGS, STATE};
use crate::app::App;
use crate::error::CliError;
use crate::wiring::{self, OpenProject};

/// Where it is written to.
#[derive(Debug, Args)]
pub struct Export {
    /// The file to write, which is not there yet.
    file: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    file: PathBuf,
    size_bytes: u64,
    /// Keys of the configuration that held a secret.
    left_out: Vec<String>,
}

impl Export {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let path = app.directory()?.join(&self.file);
        if path.symlink_metadata().is_ok() {
            return Err(exists(&path));
        }
        let opened = app.open().await?;
        opened.person()?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let there = folder.metadata();
        there.map_err(|error| CliError::file(folder, &error))?;
        // The error itself names a temporary file.
        let file = |error: std::io::Error| CliError::file(folder, &error.kind().into());
        // Private, since it holds what models and people said; moved to its place when it is whole.
        let partial = tempfile::NamedTempFile::new_in(folder).map_err(file)?;
        let written = write(app, &opened, partial.reopen().map_err(file)?).await;
        opened.close().await?;
        let left_out = written?;
        let file = partial.persist_noclobber(&path);
        let file = file.map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&path),
            _ => CliError::file(&path, &error.error),
        })?;
        let size_bytes = file.metadata().map_or(0, |file| file.len());
        let exported = Report {
            file: path,
            size_bytes,
            left_out,
        };
        app.output.show(&exported, human)
    }
}

/// Gathers what goes along in a folder of its own and writes it to `file`; returns the keys that were left out.
async fn write(app: &App, opened: &OpenProject, file: File) -> Result<Vec<String>, CliError> {
    let state = opened.project.state();
    let in_state = |error| CliError::file(state, &error);
    let folder = tempfile::tempdir_in(state).map_err(in_state)?;
    let aside = folder.path().to_owned();
    let git = wiring::git(&app.environment).await?;
    let options = LocalCloneOptions {
        user_repository: opened.project.locations.repository.clone(),
        state: state.to_owned(),
        identity: Identity::default(),
    };
    let clone = LocalClone::open_or_create(git, options).await?;
    let branch = clone.default_branch_head().await?.branch;
    // First what is true, then the commits that it names, which are there before it names them.
    let copy = aside.join("database");
    std::fs::create_dir(&copy).map_err(in_state)?;
    let database = copy.join("ropewalk.db");
    opened.store.copy_to(&database).await?;
    leave_behind(&database).await?;
    clone.write_bundle(&aside.join(BUNDLE)).await?;
    let left_out = settings(opened, &aside.join(SETTINGS))?;
    let mut manifest = Manifest {
        form: FORM,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        project: opened.project.locations.name.clone(),
        branch,
        at: opened.clock.now(),
        size_bytes: 0,
    };
    let beside = match wiring::location(&opened.project)? {
        Location::Sqlite(path) => path.parent().map(Path::to_owned),
        Location::Postgres(_) => Some(copy),
    };
    let state = state.to_owned();
    let packing = tokio::task::spawn_blocking(move || {
        let mut contents = Contents::default();
        for name in [SETTINGS, BUNDLE] {
            contents.add(name, &aside.join(name))?;
        }
        contents.add(DATABASE, &database)?;
        for name in FOLDERS {
            // Where the database lies, the data of its large events does.
            let from = beside.as_ref().filter(|_| name == "blobs");
            let from = from.unwrap_or(&state).join(name);
            let place = format!("{STATE}/{name}");
            contents.copy(&place, &from, &aside.join(&place))?;
        }
        manifest.size_bytes = contents.size_bytes();
        contents.write(file, &manifest)
    });
    let packed = packing.await.map_err(CliError::failed)?;
    packed.map_err(|error| {
        let words: Words = (format!("nothing was exported: {error}"), "make room").into();
        CliError::refused("file", words)
    })?;
    drop(folder);
    Ok(left_out)
}

/// Writes the configuration as it can be read elsewhere; what is laid over it on this machine stays here.
fn settings(opened: &OpenProject, to: &Path) -> Result<Vec<String>, CliError> {
    let text = match &opened.project.loaded.project_file {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| CliError::file(path, &error))?
        }
        None => String::new(),
    };
    std::fs::write(to, text).map_err(|error| CliError::file(to, &error))?;
    let mut file = ProjectFile::open(to)?;
    for key in ["project.state", "store.location"] {
        file.remove(key);
    }
    let left_out = file.remove_secrets()?;
    file.set("project.repo", ".")?;
    file.save()?;
    Ok(left_out)
}

fn exists(path: &Path) -> CliError {
    let message = format!("`{}` is there already", path.display());
    CliError::refused("exists", (message, "name another file"))
}

fn human(exported: &Report) -> String {
    let secrets = match exported.left_out.join("`, `") {
        keys if keys.is_empty() => String::new(),
        keys => format!("\nleft out, since they held secrets: `{keys}`"),
    };
    format!(
        "wrote {} ({} KiB)\nimport it elsewhere with `ropewalk import FILE DIRECTORY`; who can read it can read what people and models said{secrets}",
        exported.file.display(),
        exported.size_bytes.div_ceil(1024),
    )
}
