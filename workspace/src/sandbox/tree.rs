//! Builds the tree that a command sees out of mounts of its own, and leaves the old one behind.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use super::plan::{self, Mount, Plan};
use super::stage::Fault;
use super::{OWN_TMP, SCRATCH_BYTES};

/// Where both trees hang while the new one is built.
const BASE: &str = "/tmp";
const OLD: &str = "/old";
const NEW: &str = "/new";
/// Devices that are no way to anywhere.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// What of `/proc` speaks of the machine and not of the command.
const MACHINE: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];
const QUIET: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

/// Makes what `plan` shows the whole tree of this process, which has mounts of its own already.
pub(super) fn enter(plan: &Plan) -> Result<(), Fault> {
    leave_for_base().map_err(Fault::at("prepare the mounts"))?;
    devices().map_err(Fault::at("mount `/dev`"))?;
    for entry in plan.laid() {
        lay(entry).map_err(Fault::at(format!("mount `{}`", entry.place().display())))?;
    }
    seal(plan).map_err(Fault::at("make the system read-only"))?;
    processes().map_err(Fault::at("mount `/proc`"))?;
    forget_old().map_err(Fault::at("leave the old tree"))
}

fn leave_for_base() -> io::Result<()> {
    let nothing = None::<&str>;
    // What is mounted here is nobody else's business, and the other way round.
    mount(
        nothing,
        "/",
        nothing,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        nothing,
    )?;
    memory(Path::new(BASE), "0755")?;
    for name in [OLD, NEW] {
        fs::create_dir(format!("{BASE}{name}"))?;
    }
    pivot_root(BASE, format!("{BASE}{OLD}").as_str())?;
    chdir("/")?;
    memory(Path::new(NEW), "0755")?;
    fs::create_dir(within(NEW, Path::new("/proc")))
}

fn memory(place: &Path, mode: &str) -> io::Result<()> {
    let options = format!("mode={mode},size={SCRATCH_BYTES}");
    Ok(mount(
        Some("tmpfs"),
        place,
        Some("tmpfs"),
        QUIET,
        Some(options.as_str()),
    )?)
}

fn bind(from: &Path, to: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(from), to, None::<&str>, flags, None::<&str>)?)
}

/// Returns where `place` is in the tree `under`.
fn within(under: &str, place: &Path) -> PathBuf {
    Path::new(under).join(place.strip_prefix("/").unwrap_or(place))
}

fn lay(entry: &Mount) -> io::Result<()> {
    let place = entry.place();
    let new = within(NEW, place);
    let old = match entry {
        Mount::Show { from, .. } => within(OLD, from),
        _ => within(OLD, place),
    };
    match entry {
        Mount::Link { to, .. } => symlink(to, new),
        Mount::Closed(_) => {
            fs::create_dir_all(&new)?;
            memory(&new, "0755")
        }
        Mount::Scratch(_) => {
            fs::create_dir_all(&new)?;
            memory(
                &new,
                if place == Path::new(OWN_TMP) {
                    "1777"
                } else {
                    "0700"
                },
            )
        }
        Mount::Hide(_) => bind(&within(OLD, Path::new("/dev/null")), &new),
        Mount::Read(_) | Mount::Write(_) | Mount::Show { .. } => {
            if old.is_dir() {
                fs::create_dir_all(&new)?;
            } else {
                new.parent().map(fs::create_dir_all).transpose()?;
                touch(&new)?;
            }
            bind(&old, &new)
        }
    }
}

fn touch(place: &Path) -> io::Result<()> {
    fs::File::options()
        .create(true)
        .append(true)
        .open(place)
        .map(drop)
}

fn devices() -> io::Result<()> {
    let root = within(NEW, Path::new("/dev"));
    fs::create_dir(&root)?;
    for name in DEVICES {
        touch(&root.join(name))?;
        bind(&Path::new(OLD).join("dev").join(name), &root.join(name))?;
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(to, root.join(name))?;
    }
    let terminals = root.join("pts");
    fs::create_dir(&terminals)?;
    let (flags, options) = (
        MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        "newinstance,ptmxmode=0666",
    );
    mount(
        Some("devpts"),
        &terminals,
        Some("devpts"),
        flags,
        Some(options),
    )?;
    let shared = root.join("shm");
    fs::create_dir(&shared)?;
    memory(&shared, "1777")
}

/// Makes every mount read-only that a command may only read, with all that is mounted below it.
fn seal(plan: &Plan) -> io::Result<()> {
    let table = fs::read_to_string(within(OLD, Path::new("/proc/self/mountinfo")))?;
    for (place, flags) in table.lines().filter_map(mounted) {
        let Some(shown) = within_new(&place) else {
            continue;
        };
        let top = plan::top(&plan.mounts, &shown);
        if matches!(
            top,
            Some(
                Mount::Read(_)
                    | Mount::Closed(_)
                    | Mount::Show {
                        writable: false,
                        ..
                    }
            )
        ) {
            remount(&place, flags)?;
        }
    }
    remount(Path::new(NEW), QUIET)
}

fn within_new(place: &Path) -> Option<PathBuf> {
    let below = place.strip_prefix(NEW).ok()?;
    (!below.as_os_str().is_empty()).then(|| Path::new("/").join(below))
}

fn remount(place: &Path, flags: MsFlags) -> io::Result<()> {
    let flags =
        flags | MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
    Ok(mount(
        None::<&str>,
        place,
        None::<&str>,
        flags,
        None::<&str>,
    )?)
}

/// Reads a line of the table of mounts: where it is, and what of it this process may not take away.
fn mounted(line: &str) -> Option<(PathBuf, MsFlags)> {
    let mut fields = line.split(' ');
    let place = unescaped(fields.nth(4)?);
    let mut flags = MsFlags::empty();
    for option in fields.next()?.split(',') {
        flags |= match option {
            "nosuid" => MsFlags::MS_NOSUID,
            "nodev" => MsFlags::MS_NODEV,
            "noexec" => MsFlags::MS_NOEXEC,
            "noatime" => MsFlags::MS_NOATIME,
            "nodiratime" => MsFlags::MS_NODIRATIME,
            "relatime" => MsFlags::MS_RELATIME,
            _ => MsFlags::empty(),
        };
    }
    Some((place.into(), flags))
}

/// Undoes how the kernel writes blanks and backslashes in a path.
fn unescaped(field: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |text, (code, letter)| {
        text.replace(code, letter)
    })
}

fn processes() -> io::Result<()> {
    let root = within(NEW, Path::new("/proc"));
    let flags = QUIET | MsFlags::MS_NOEXEC;
    mount(Some("proc"), &root, Some("proc"), flags, None::<&str>)?;
    for name in MACHINE {
        let place = root.join(name);
        if place.exists() {
            bind(&place, &place)?;
            remount(&place, flags)?;
        }
    }
    Ok(())
}

fn forget_old() -> io::Result<()> {
    umount2(OLD, MntFlags::MNT_DETACH)?;
    chdir(NEW)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    Ok(chdir("/")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_tells_place_and_flags() {
        let line = "36 35 98:0 /a /new/opt\\040x rw,nosuid,noatime master:1 - ext4 /dev/vda rw";
        let expected = (
            "/new/opt x".into(),
            MsFlags::MS_NOSUID | MsFlags::MS_NOATIME,
        );
        assert_eq!(mounted(line), Some(expected));
        assert_eq!(mounted("cut"), None);
        assert_eq!(within_new(Path::new("/new/usr")), Some("/usr".into()));
        assert_eq!(within_new(Path::new("/new")), None);
    }
}
