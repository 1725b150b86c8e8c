//! Makes the repository that commands in a checkout see: a throwaway one, whose objects are those of the clone.
//!
//! Build tools ask git for versions, and models for what was before. They get a repository of their own: its `HEAD` is one
//! commit on the base of the build, with the tree that is checked out, and the same tree on the same base has the same
//! commit. Objects are read from the clone, none are copied: those of branches that no ref shows lie there, too
//! (`docs/adr/0036-objects-of-other-branches-can-be-read.md`). Nobody looks at what was done to it: our own git names
//! the clone with every call, and each move of the checkout throws the whole of it away.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_index::hash::{Kind, hasher};
use ropewalk_schemas::CommitId;

use crate::{GitError, LocalClone};

/// The branch that commands are on.
const BRANCH: &str = "refs/heads/ropewalk";
/// Whose commit it is; the same for everybody, since its id tells cached results apart.
const AUTHOR: &str = "Ropewalk <ropewalk@localhost>";
/// What its commit says.
const MESSAGE: &str = "The build so far";
/// What git needs to know; nothing in it is ever obeyed by our own git.
const CONFIG: &str = "[core]\n\tbare = false\n\tfilemode = true\n\tlogallrefupdates = false\n[gc]\n\tauto = 0\n\
                      [maintenance]\n\tauto = false\n[user]\n\tname = Ropewalk\n\temail = ropewalk@localhost\n";
/// The directories without which git takes a directory for no repository, and those of what is written there.
const DIRECTORIES: [&str; 3] = ["objects/info", "refs/heads", "refs/tags"];

/// The history that commands in a checkout see; cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    ground: Arc<Ground>,
    /// Where commands find the objects of the clone.
    objects: PathBuf,
}

/// What is below the commit that commands see, and the same for all checkouts of a build.
#[derive(Debug)]
pub(super) struct Ground {
    base: CommitId,
    tree: String,
    /// When the base was committed: what is on it was then, too.
    seconds: i64,
    /// The tags in the history of the base, as lines of `packed-refs`.
    tags: String,
    /// Where the history was cut off.
    shallow: Option<Vec<u8>>,
}

/// The commit that commands see.
struct Head {
    id: String,
    /// What it is made of; none where the base itself is seen.
    object: Option<Vec<u8>>,
}

impl LocalClone {
    /// Returns what commands see on `base`, which find objects in `objects`.
    pub async fn history_on(&self, base: &CommitId, objects: PathBuf) -> Result<History, GitError> {
        let ground = if let Some(known) = self.known().ground(base) {
            known
        } else {
            let read = Arc::new(self.ground(base).await?);
            self.known().lay(base, &read);
            read
        };
        Ok(History { ground, objects })
    }

    /// Returns where the objects of the clone lie.
    pub(crate) fn objects(&self) -> PathBuf {
        Self::objects_below(self.state())
    }

    /// Returns where the objects of the clone lie whose state directory is `state`.
    pub fn objects_below(state: &Path) -> PathBuf {
        Self::directory_below(state).join("objects")
    }

    async fn ground(&self, base: &CommitId) -> Result<Ground, GitError> {
        let about = self
            .call(["log", "-1", "--no-show-signature", "--format=%T %ct"])
            .argument(base.as_str());
        let tags = self
            .call([
                "for-each-ref",
                "--format=%(objectname) refs/tags/%(refname:lstrip=4)",
            ])
            .argument(format!("--merged={base}"))
            .argument("refs/ropewalk/user/tags/");
        let (about, tags) = tokio::try_join!(self.git().run(about), self.git().run(tags))?;
        let line = about.line();
        let (tree, seconds) = line
            .split_once(' ')
            .and_then(|(tree, seconds)| Some((tree, seconds.parse().ok()?)))
            .ok_or_else(|| GitError::unreadable("log", &about.stdout))?;
        Ok(Ground {
            base: base.clone(),
            tree: tree.to_owned(),
            seconds,
            tags: String::from_utf8_lossy(&tags.stdout).into_owned(),
            shallow: fs::read(self.directory().join("shallow")).ok(),
        })
    }
}

impl History {
    /// Names what commands in a checkout of `tree` see: two that see the same have the same name.
    pub fn name(&self, tree: &str) -> Result<String, GitError> {
        self.named(tree).map_err(GitError::files(&self.objects))
    }

    fn named(&self, tree: &str) -> io::Result<String> {
        let head = self.head(tree)?;
        let seen = format!("{}\n{}", head.id, self.ground.tags);
        Ok(format!(
            "{}-{}",
            head.id,
            hash(self.kind(), seen.as_bytes())?
        ))
    }

    /// Makes the repository in `directory`, where nothing is, for a checkout of `tree` with its `index`.
    pub(crate) fn lay(&self, tree: &str, directory: &Path, index: &Path) -> io::Result<()> {
        let head = self.head(tree)?;
        fs::create_dir(directory)?;
        for below in DIRECTORIES {
            fs::create_dir_all(directory.join(below))?;
        }
        let write = |name: &str, content: &[u8]| fs::write(directory.join(name), content);
        write("HEAD", format!("ref: {BRANCH}\n").as_bytes())?;
        write("config", self.config().as_bytes())?;
        let refs = format!("{} {BRANCH}\n{}", head.id, self.ground.tags);
        write("packed-refs", refs.as_bytes())?;
        let mut objects = self.objects.as_os_str().as_encoded_bytes().to_vec();
        objects.push(b'\n');
        write("objects/info/alternates", &objects)?;
        if let Some(shallow) = &self.ground.shallow {
            write("shallow", shallow)?;
        }
        if let Some(object) = &head.object {
            let (fan_out, name) = head.id.split_at(2);
            fs::create_dir(directory.join("objects").join(fan_out))?;
            write(&format!("objects/{fan_out}/{name}"), &stored(object)?)?;
        }
        self.copy_index(index, &directory.join("index"))
    }

    /// Copies the index, so that git need not look at every file, with the checksum that others than git insist on.
    fn copy_index(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut content = fs::read(from)?;
        let end = content.len().saturating_sub(self.kind().len_in_bytes());
        if content[end..].iter().all(|byte| *byte == 0) {
            let sum = object_id(self.kind(), &content[..end])?;
            content.truncate(end);
            content.extend_from_slice(sum.as_slice());
        }
        fs::write(to, content)?;
        // Files that are as young as the index are looked at again; a younger copy would hide what changed in them.
        let written = fs::metadata(from)?.modified()?;
        fs::File::options()
            .write(true)
            .open(to)?
            .set_modified(written)
    }

    fn kind(&self) -> Kind {
        match self.ground.base.as_str().len() {
            64 => Kind::Sha256,
            _ => Kind::Sha1,
        }
    }

    fn config(&self) -> String {
        match self.kind() {
            Kind::Sha256 => format!(
                "{CONFIG}[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
            ),
            _ => format!("{CONFIG}[core]\n\trepositoryformatversion = 0\n"),
        }
    }

    /// Returns the commit of `tree` on the base; that is the base itself where nothing was changed.
    fn head(&self, tree: &str) -> io::Result<Head> {
        let Ground {
            base,
            tree: ground,
            seconds,
            ..
        } = &*self.ground;
        if tree == ground {
            let id = base.to_string();
            return Ok(Head { id, object: None });
        }
        let text = format!(
            "tree {tree}\nparent {base}\nauthor {AUTHOR} {seconds} +0000\ncommitter {AUTHOR} {seconds} +0000\n\n{MESSAGE}\n"
        );
        let object = format!("commit {}\0{text}", text.len()).into_bytes();
        let id = hash(self.kind(), &object)?;
        Ok(Head {
            id,
            object: Some(object),
        })
    }
}

fn object_id(kind: Kind, bytes: &[u8]) -> io::Result<gix_index::hash::ObjectId> {
    let mut hasher = hasher(kind);
    hasher.update(bytes);
    hasher
        .try_finalize()
        .map_err(|error| io::Error::other(error.to_string()))
}

fn hash(kind: Kind, bytes: &[u8]) -> io::Result<String> {
    let id = object_id(kind, bytes)?;
    Ok(id.as_slice().iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written.
        write!(text, "{byte:02x}").ok();
        text
    }))
}

/// Returns an object as git keeps it.
fn stored(object: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
    stream.write_all(object)?;
    stream.finish()
}
