//! Reads the workspace from the disk, once, into plain text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::manifest::{self, Manifest};

/// Where a package keeps Rust sources.
const SOURCE_DIRECTORIES: [&str; 4] = ["src", "tests", "benches", "examples"];

/// Below these lie inputs of tests, which need not even compile.
const FIXTURES: &str = "fixtures";

/// Where the walks of a browser lie.
const WALKS: &str = "tests/tests/scenarios/fixtures";

/// The workspace as text.
pub(crate) struct Workspace {
    pub(crate) members: Vec<Member>,
    /// The dependencies that members share.
    pub(crate) shared: Vec<String>,
    /// The text of `deny.toml`.
    pub(crate) deny: String,
    /// The text of `docs/scenarios.md`.
    pub(crate) scenarios: String,
    /// The text of `docs/capabilities.md`.
    pub(crate) capabilities: String,
    /// The text of `docs/ux.md`.
    pub(crate) expectations: String,
    /// Prompts, configurations and documents: path below the root, and text.
    pub(crate) texts: BTreeMap<String, String>,
    /// The text of the list of pages that walks visit.
    pub(crate) visits: String,
    /// What a browser is led by: name and text of each walk.
    pub(crate) walks: BTreeMap<String, String>,
}

/// One package of the workspace.
pub(crate) struct Member {
    /// Its directory below the root of the workspace.
    pub(crate) directory: String,
    pub(crate) manifest: Manifest,
    /// Its Rust files: path below the directory, and text.
    pub(crate) files: BTreeMap<String, String>,
}

impl Workspace {
    /// Reads the workspace this test belongs to.
    pub(crate) fn load() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = read(&root.join("Cargo.toml"))?;
        let members = manifest::members(&text)?;
        Ok(Self {
            shared: manifest::shared(&text)?,
            members: members
                .into_iter()
                .map(|directory| Member::load(&root, directory))
                .collect::<Result<_>>()?,
            deny: read(&root.join("deny.toml"))?,
            scenarios: read(&root.join("docs/scenarios.md"))?,
            capabilities: read(&root.join("docs/capabilities.md"))?,
            expectations: read(&root.join("docs/ux.md"))?,
            texts: texts(&root)?,
            visits: read(&root.join(WALKS).join("visits.json"))?,
            walks: scripts(&root.join(WALKS))?,
        })
    }
}

impl Member {
    /// Its short name: the last part of its directory.
    pub(crate) fn name(&self) -> &str {
        let directory = self.directory.as_str();
        directory
            .rsplit_once('/')
            .map_or(directory, |(_, name)| name)
    }

    fn load(root: &Path, directory: String) -> Result<Self> {
        let base = root.join(&directory);
        let manifest = base.join("Cargo.toml");
        let manifest = Manifest::parse(&read(&manifest)?)
            .with_context(|| format!("cannot parse `{}`", manifest.display()))?;
        let mut files = BTreeMap::new();
        for below in SOURCE_DIRECTORIES {
            collect(&base, below, &mut files)?;
        }
        if base.join("build.rs").is_file() {
            files.insert("build.rs".to_owned(), read(&base.join("build.rs"))?);
        }
        Ok(Self {
            directory,
            manifest,
            files,
        })
    }
}

fn collect(base: &Path, below: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    let directory = base.join(below);
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&directory)
        .with_context(|| format!("cannot list `{}`", directory.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}/{name}");
        if entry.file_type()?.is_dir() {
            if name != FIXTURES {
                collect(base, &path, files)?;
            }
        } else if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            files.insert(path, read(&entry.path())?);
        }
    }
    Ok(())
}

fn texts(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for (folder, ending) in [("config", "toml"), ("config/prompts", "md"), ("docs", "md")] {
        for entry in fs::read_dir(root.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.to_string_lossy());
            if let Some(name) = name
                && path
                    .extension()
                    .is_some_and(|extension| extension == ending)
            {
                texts.insert(format!("{folder}/{name}"), read(&path)?);
            }
        }
    }
    Ok(texts)
}

fn scripts(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut scripts = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cjs") {
            scripts.insert(path.display().to_string(), read(&path)?);
        }
    }
    Ok(scripts)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
