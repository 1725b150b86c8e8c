//! Places the sockets by which processes of one machine meet, so that each finds them whatever its environment says.
//!
//! They lie in the runtime directory of the user (`XDG_RUNTIME_DIR`) where there is one that nobody else can enter, and the
//! state directory holds links to them: a link is the address, written down where every process of the project looks, as
//! one that cron started does, too. Where there is no such directory they lie in the state directory itself.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Uid;
use ropewalk_schemas::ContentHash;
use tracing::{debug, warn};

/// The longest path that fits into the address of a socket on every system.
const LONGEST_ADDRESS: usize = 100;
/// Our folder of the runtime directory.
const FOLDER: &str = "ropewalk";
/// How many digits tell the projects of a user apart in it.
const DIGITS: usize = 16;
/// How often a process looks whether it can still be reached: a runtime directory goes when its user logs out.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

/// Says why a socket could not be placed or reached.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the socket `{path}`: {source}")]
pub struct SocketError {
    /// The socket.
    path: PathBuf,
    /// Why.
    source: io::Error,
}

impl SocketError {
    pub(crate) fn of(path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            source,
        }
    }
}

/// Where a process lets others of its machine reach it.
#[derive(Debug, Clone)]
pub struct SocketHome {
    state: PathBuf,
    runtime: Option<PathBuf>,
}

impl SocketHome {
    /// Names the state directory, and the runtime directory of the user where the environment has one.
    pub fn new(state: &Path, runtime: Option<PathBuf>) -> Self {
        Self {
            state: state.to_owned(),
            runtime,
        }
    }

    /// Binds the socket `name`, in the runtime directory if that is private, else in the state directory.
    pub(crate) fn hold<Socket>(
        &self,
        name: &str,
        bind: impl Fn(&Path) -> io::Result<Socket>,
    ) -> Result<HeldSocket<Socket>, SocketError> {
        let path = self.state.join(name);
        let placed = match self.runtime_place(name) {
            Some(place) => held(&place, &bind).and_then(|held| link(&place, &path).map(|()| held)),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let placed = placed.or_else(|error| {
            debug!("`{}` lies in the state directory: {error}", path.display());
            held(&path, &bind)
        });
        let (socket, place, identity) = placed.map_err(|error| SocketError::of(&path, error))?;
        Ok(HeldSocket {
            socket,
            path,
            place,
            identity,
        })
    }

    /// Returns where the socket `name` of this state lies in the runtime directory; `None` where others could get at it.
    fn runtime_place(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        let folder = self.runtime.as_ref()?.join(FOLDER);
        if !is_private(self.runtime.as_ref()?) {
            return None;
        }
        DirBuilder::new().mode(0o700).create(&folder).ok();
        let state = self.state.canonicalize().ok()?;
        let digits = ContentHash::of(state.as_os_str().as_bytes()).to_string();
        let digits = digits.get(..DIGITS)?;
        is_private(&folder).then(|| folder.join(format!("{digits}-{name}")))
    }
}

/// A socket that others find, until it is given up.
#[derive(Debug)]
pub(crate) struct HeldSocket<Socket> {
    pub(crate) socket: Socket,
    /// Where others look for it.
    path: PathBuf,
    /// Where it lies.
    place: PathBuf,
    identity: (u64, u64),
}

impl<Socket> HeldSocket<Socket> {
    /// Returns where others look for it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether who looks for it finds this one.
    pub(crate) fn is_found(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Returns this one while it is found, else another that `hold` makes.
    pub(crate) fn kept(self, hold: impl FnOnce() -> Result<Self, SocketError>) -> Self {
        if self.is_found() {
            return self;
        }
        match hold() {
            Ok(next) => next,
            Err(error) => {
                warn!("other processes cannot reach this one: {error}");
                self
            }
        }
    }

    /// Takes it away; whoever comes next makes its own, and a leftover only answers that nobody listens.
    pub(crate) fn give_up(self) {
        drop(fs::remove_file(&self.path));
        drop(fs::remove_file(&self.place));
    }
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Returns whether `directory` is one of ours that nobody else can enter.
fn is_private(directory: &Path) -> bool {
    let own = Uid::effective().as_raw();
    directory.symlink_metadata().is_ok_and(|found| {
        found.is_dir() && found.uid() == own && found.permissions().mode() & 0o777 == 0o700
    })
}

/// Binds a socket at `place`, under another name first, so that nobody reaches it before its permissions are set.
fn held<Socket>(
    place: &Path,
    bind: impl FnOnce(&Path) -> io::Result<Socket>,
) -> io::Result<(Socket, PathBuf, (u64, u64))> {
    let fresh = vacant(place)?;
    let address = Address::of(&fresh)?;
    let socket = bind(&address.path)?;
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    let identity = identity(&fs::symlink_metadata(&fresh)?);
    fs::rename(&fresh, place)?;
    Ok((socket, place.to_owned(), identity))
}

/// Makes `path` a link to `place`, in one step.
fn link(place: &Path, path: &Path) -> io::Result<()> {
    let fresh = vacant(path)?;
    symlink(place, &fresh)?;
    fs::rename(&fresh, path)
}

/// Returns the name under which what becomes `path` is made, where nothing lies.
fn vacant(path: &Path) -> io::Result<PathBuf> {
    let fresh = path.with_extension("new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(fresh),
    }
}

/// A path to a socket that is short enough, however deep the directory lies.
pub(crate) struct Address {
    pub(crate) path: PathBuf,
    /// Kept open while `path` goes through it.
    _directory: Option<File>,
}

impl Address {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if path.as_os_str().len() <= LONGEST_ADDRESS {
            return Ok(Self {
                path: path.to_owned(),
                _directory: None,
            });
        }
        let directory = File::open(directory)?;
        let through = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Ok(Self {
            path: Path::new(&through).join(name),
            _directory: Some(directory),
        })
    }
}

#[cfg(test)]
mod tests;
