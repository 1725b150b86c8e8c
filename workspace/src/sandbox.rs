//! Confines commands: each sees the system, may change its checkout and nothing else, and has no network but its own.
//!
//! A [`Sandbox`] says what a command sees (`plan`, `system`). Where bubblewrap works it builds that, else the program
//! starts itself again and does so by namespaces (`namespaces`, `tree`, `loopback`). In both the first process inside is
//! this program (`init`): it gives up every right, is fenced in by landlock and by a filter of system calls, starts the
//! command, and watches what it uses up (`limits`). With that process everything ends that the command ever started.
//! Where cgroups can be made, each command is in one that bounds memory and processes (`groups`), and ends with that too.
//!
//! What it is not: it holds no git of ours, and it does not judge what a command may be asked to do.

mod bubblewrap;
mod capabilities;
mod denial;
mod entry;
mod fence;
mod filter;
mod forward;
mod groups;
mod init;
mod interpreter;
mod limits;
mod loopback;
mod namespaces;
mod plan;
mod stage;
mod starter;
mod system;
mod tree;

pub mod egress;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ropewalk_schemas::advice::Advice;

use crate::Environment;
use crate::process::{self, CommandError};
use egress::{Door, Egress};
use groups::Groups;
use plan::{Mount, Plan, is_seen};
use stage::{Stage, WORD};
use system::System;

pub use denial::{Denial, fails_anywhere};
pub use entry::{enter, helper};
pub use fence::has_landlock;
pub use groups::Hold;

pub(crate) use groups::Group;
pub use plan::{Limits, Reach};
pub use system::SearchGap;

/// So much fits into each directory in memory that goes with a command.
const SCRATCH_BYTES: u64 = 1024 * 1024 * 1024;
/// Where the helper lies in a tree that bubblewrap made.
const HELPER: &str = "/run/ropewalk";
/// Where commands find the objects of the clone, to be read.
const OBJECTS: &str = "/run/ropewalk-objects";
/// Where commands find a directory for scratch files: short, since names of sockets are.
pub(crate) const SCRATCH: &str = "/run/ropewalk-tmp";
/// The directory for scratch files that goes with a command.
pub(crate) const OWN_TMP: &str = "/tmp";

/// What confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Bubblewrap makes the namespaces.
    Bubblewrap,
    /// This program makes them itself.
    Namespaces,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Namespaces => "namespaces",
        })
    }
}

/// Says why no command can be confined here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no sandbox works here (bubblewrap: {bubblewrap}; namespaces: {namespaces})")]
pub struct SandboxError {
    /// What bubblewrap said.
    pub bubblewrap: String,
    /// What the helper said.
    pub namespaces: String,
}

impl Advice for SandboxError {
    fn next(&self) -> Option<String> {
        Some(
            "install bubblewrap, or allow user namespaces (sysctl user.max_user_namespaces, \
             kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
                .to_owned(),
        )
    }
}

/// What a sandbox is made of.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// What commands inherit: says where tools are.
    pub environment: Environment,
    /// This program, which is started again as `HELPER __sandbox …`.
    pub helper: PathBuf,
    /// What no command may see: the state directory above all, and the checkout of the person with its git directories.
    pub hidden: Vec<PathBuf>,
    /// The objects of the clone, which commands see in a place of their own.
    pub objects: Option<PathBuf>,
    /// What one command may use up.
    pub limits: Limits,
    /// What commands reach beside their own loopback.
    pub egress: Egress,
}

/// What a command is given for itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Way<'a> {
    /// The socket by which it reaches hosts.
    pub(crate) door: Option<&'a Path>,
    /// The group that holds it.
    pub(crate) group: Option<&'a Group>,
}

/// Confines commands; found out once (`command/probe.rs`), cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    level: Level,
    options: SandboxOptions,
    /// What every command sees.
    system: Arc<System>,
    bubblewrap: Option<PathBuf>,
    hold: Hold,
    groups: Option<Groups>,
}

/// What a sandbox is made of and what every command sees in it: the same at each level and hold that is tried.
#[derive(Debug)]
pub(crate) struct Surroundings {
    options: SandboxOptions,
    system: Arc<System>,
}

impl Surroundings {
    /// Looks at this machine as it is now.
    pub(crate) fn find(mut options: SandboxOptions) -> Self {
        for place in &mut options.hidden {
            *place = real(place);
        }
        Self {
            system: Arc::new(System::find(&options.environment, &options.hidden)),
            options,
        }
    }

    /// Returns what commands inherit.
    pub(crate) fn environment(&self) -> &Environment {
        &self.options.environment
    }
}

impl Sandbox {
    /// Makes a sandbox of one level and one hold that nobody has tried yet; where they are not there, says why.
    pub(crate) fn untried(
        level: Level,
        hold: Hold,
        surroundings: &Surroundings,
    ) -> Result<Self, String> {
        let Surroundings { options, system } = surroundings;
        let variables = options.environment.variables();
        let bubblewrap = process::locate(Path::new("bwrap"), variables);
        if level == Level::Bubblewrap && bubblewrap.is_none() {
            return Err("`bwrap` is not on the PATH".to_owned());
        }
        Ok(Self(Arc::new(Inner {
            level,
            groups: Groups::find(hold)?,
            options: options.clone(),
            system: Arc::clone(system),
            bubblewrap,
            hold,
        })))
    }

    /// Returns what confines commands.
    pub fn level(&self) -> Level {
        self.0.level
    }

    /// Returns what bounds the memory and the processes of commands.
    pub fn hold(&self) -> Hold {
        self.0.hold
    }

    /// Returns where private files beside programs are not hidden, since not all was looked at for them.
    pub fn unsearched(&self) -> Option<&SearchGap> {
        self.0.system.unsearched.as_ref()
    }

    /// Makes the group of one command; none where only a watch holds it.
    pub(crate) fn group(&self) -> Result<Option<Group>, CommandError> {
        let groups = self.0.groups.as_ref();
        let made = groups.map(|groups| groups.open(self.0.options.limits));
        made.transpose().map_err(|source| CommandError::Spawn {
            program: "a command in a cgroup of its own".to_owned(),
            source,
        })
    }

    /// Reads out of what a command wrote, and could not do, what kept it from that; `writable` it could change.
    pub(crate) fn denial(&self, output: &str, writable: &[PathBuf]) -> Option<Denial> {
        let options = &self.0.options;
        let home = options.environment.get("HOME").map(PathBuf::from);
        let hidden: Vec<PathBuf> = options.hidden.iter().cloned().chain(home).collect();
        let writable: Vec<PathBuf> = writable.iter().map(|place| real(place)).collect();
        denial::find(output, &hidden, &writable)
    }

    /// Returns what leads to the hosts that are listed; `None` where there are none.
    pub(crate) fn egress(&self) -> Option<&Egress> {
        let egress = &self.0.options.egress;
        Some(egress).filter(|egress| !egress.hosts.is_empty())
    }

    /// Opens a way to the hosts that a command may reach; `None` where there are none.
    pub(crate) fn door(&self, reach: &Reach) -> Result<Option<Door>, CommandError> {
        let mut egress = self.0.options.egress.clone();
        if reach.packages {
            egress.hosts.append(&mut egress.package_hosts);
        }
        if egress.hosts.is_empty() {
            return Ok(None);
        }
        let opened = Door::open(egress);
        opened.map(Some).map_err(|source| CommandError::Spawn {
            program: "the way to `sandbox.hosts`".to_owned(),
            source,
        })
    }

    /// Returns where commands see the objects of the clone; none where they do not.
    pub(crate) fn objects(&self) -> Option<PathBuf> {
        self.0.options.objects.as_ref().map(|_| OBJECTS.into())
    }

    /// Returns what to start in the place of a command, so that it runs confined.
    pub(crate) fn confine(
        &self,
        (program, arguments): (OsString, Vec<OsString>),
        directory: &Path,
        reach: &Reach,
        way: Way<'_>,
    ) -> Result<(OsString, Vec<OsString>), CommandError> {
        let Inner {
            level,
            options,
            system,
            bubblewrap,
            ..
        } = &*self.0;
        let reach = Reach {
            writable: reach.writable.iter().map(|place| real(place)).collect(),
            packages: reach.packages,
            scratch: reach.scratch.as_deref().map(real),
        };
        let directory = real(directory);
        for place in &reach.writable {
            let made = std::fs::create_dir_all(place);
            made.map_err(|source| CommandError::Spawn {
                program: format!("{} (for `{}`)", program.display(), place.display()),
                source,
            })?;
        }
        // Whatever was to be covered may be gone by now.
        let lasting = system.mounts.iter();
        let lasting = lasting.filter(|mount| system::lasts(mount));
        let mut system: Vec<Mount> = lasting.cloned().collect();
        let home = options
            .environment
            .get("HOME")
            .map(|home| real(Path::new(home)));
        let needed = interpreter::below(&directory, home.as_deref(), &reach.writable);
        // What is seen already is not laid again: that would show what is hidden in it.
        for place in needed {
            if !is_seen(&system, &place) {
                system.push(Mount::Read(place));
            }
        }
        // What is not there hides nothing, and nobody can make it where the system lies open to be read.
        let there = options.hidden.iter().filter(|place| place.exists());
        let hidden: Vec<PathBuf> = there.cloned().collect();
        let plan = Plan::new(&directory, &system, &hidden, &reach, options.limits)
            .with_shown(shown(options, &reach))
            .with_door(way.door.map(real))
            .with_groups(way.group.map(Group::entries).unwrap_or_default());
        let text = serde_json::to_string(&plan).map_err(|error| CommandError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source: error.into(),
        })?;
        let helper = |stage: Stage| [WORD.into(), stage.word().into(), text.clone().into()];
        let command = std::iter::once(program).chain(arguments);
        if let (Level::Bubblewrap, Some(bubblewrap)) = (level, bubblewrap) {
            let mut words = bubblewrap::arguments(&plan, &options.helper);
            words.push(HELPER.into());
            words.extend(helper(Stage::Inside));
            words.extend(command);
            if plan.groups.is_empty() {
                return Ok((bubblewrap.into(), words));
            }
            let mut grouped = helper(Stage::Grouped).to_vec();
            grouped.push(bubblewrap.into());
            grouped.append(&mut words);
            return Ok((options.helper.clone().into(), grouped));
        }
        let words = helper(Stage::Namespaces).into_iter().chain(command);
        Ok((options.helper.clone().into(), words.collect()))
    }
}

/// Returns what commands see that lies elsewhere; a clone that is not made yet has no objects.
fn shown(options: &SandboxOptions, reach: &Reach) -> Vec<Mount> {
    let show = |from: PathBuf, at: &str, writable| Mount::Show {
        from,
        at: at.into(),
        writable,
    };
    let objects = options.objects.iter().filter(|place| place.is_dir());
    let objects = objects.map(|place| show(real(place), OBJECTS, false));
    let scratch = reach.scratch.clone();
    let scratch = scratch.map(|place| show(place, SCRATCH, true));
    objects.chain(scratch).collect()
}

/// Returns where `place` really is: mounts follow no links.
fn real(place: &Path) -> PathBuf {
    place.canonicalize().unwrap_or_else(|_| place.to_owned())
}
