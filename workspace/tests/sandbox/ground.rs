//! A home, a checkout of a person, two slots and a state directory, and every way in which a command can be confined there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::Context as _;
use nix::unistd::geteuid;
use ropewalk_workspace::sandbox::egress::Egress;
use ropewalk_workspace::{
    CommandOutput, CommandRunner, CommandSpec, Environment, Hold, Level, Limits, Sandbox,
    SandboxOptions,
};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

const HELPER: &str = env!("CARGO_BIN_EXE_ropewalk-sandbox");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Whom root becomes to be a user.
const NOBODY: u32 = 65534;
pub(crate) const CANARY: &str = "canary-of-the-state";
pub(crate) const LIMITS: Limits = Limits {
    memory_bytes: 256 * 1024 * 1024,
    processes: 100,
    disk_bytes: 64 * 1024 * 1024,
};

/// Held by whoever looks at what is gone from the disk, and by whoever writes much to it and removes that again.
pub(crate) static DISK: Mutex<()> = Mutex::const_new(());
/// Held by whoever looks at what is gone from the memory that no process has for itself, and by whoever has much of it and
/// gives that back; taken after [`DISK`].
pub(crate) static SHARED_MEMORY: Mutex<()> = Mutex::const_new(());

/// How commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) level: Level,
    /// By root as somebody else.
    pub(crate) as_nobody: bool,
}

/// Every way that there is.
pub(crate) fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for as_nobody in [false, true] {
        for level in [Level::Namespaces, Level::Bubblewrap] {
            if !as_nobody || geteuid().is_root() {
                ways.push(Way { level, as_nobody });
            }
        }
    }
    ways
}

/// Those in which a command is confined by the very user who runs the test.
pub(crate) fn own_ways() -> impl Iterator<Item = Way> {
    ways().into_iter().filter(|way| !way.as_nobody)
}

pub(crate) struct Ground {
    base: TempDir,
    environment: Environment,
    egress: Egress,
}

impl Ground {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    /// Lies in another directory than those that go with a command.
    pub(crate) fn below(directory: &Path) -> anyhow::Result<Self> {
        let base = tempfile::tempdir_in(directory)?;
        let place = |name: &str| base.path().join(name);
        for directory in [
            "home/.ssh",
            "checkout",
            "outside",
            "bin",
            "state/slots/1/tree",
            "state/slots/2/tree",
        ] {
            fs::create_dir_all(place(directory))?;
        }
        for file in [
            "home/.ssh/id",
            "checkout/.env",
            "state/ropewalk.db",
            "state/slots/2/tree/file",
        ] {
            fs::write(place(file), CANARY)?;
        }
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755))?;
        let environment = Environment::from_pairs([
            ("PATH", format!("{}:{PATH}", place("bin").display()).into()),
            ("HOME", place("home").into_os_string()),
        ]);
        Ok(Self {
            base,
            environment,
            egress: Egress::none(),
        })
    }

    /// Lets commands reach what `egress` says.
    pub(crate) fn with_egress(self, egress: Egress) -> Self {
        Self { egress, ..self }
    }

    /// Lets the program have a variable that commands inherit.
    pub(crate) fn with_variable(self, name: &str, value: &str) -> Self {
        let environment = self.environment.with([(name, value)]);
        Self {
            environment,
            ..self
        }
    }

    /// Puts a directory of the base first on the path.
    pub(crate) fn with_programs(self, name: &str) -> Self {
        let mut path = self.place(name).into_os_string();
        if let Some(others) = self.environment.get("PATH") {
            path.push(":");
            path.push(others);
        }
        let home = self.place("home").into_os_string();
        Self {
            environment: Environment::from_pairs([("PATH", path), ("HOME", home)]),
            ..self
        }
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.place("state/slots/1/tree")
    }

    /// Runs `line` with the rights of whoever runs the test.
    pub(crate) fn unconfined(&self, line: &str) -> anyhow::Result<Output> {
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &self.told(line)])
            .current_dir(self.tree());
        Ok(shell.env("HOME", self.place("home")).output()?)
    }

    /// Runs `line` confined.
    pub(crate) async fn confined(&self, way: Way, line: &str) -> anyhow::Result<CommandOutput> {
        let spec = CommandSpec::shell(self.told(line), self.tree()).with_writable(self.tree());
        self.run(way, &spec).await
    }

    /// Runs a command confined.
    pub(crate) async fn run(&self, way: Way, spec: &CommandSpec) -> anyhow::Result<CommandOutput> {
        let runner = self.runner(way).await?;
        Ok(runner.run(spec, &CancellationToken::new()).await?)
    }

    /// Returns what runs commands confined.
    pub(crate) async fn runner(&self, way: Way) -> anyhow::Result<CommandRunner> {
        let runner = CommandRunner::new(self.environment.clone());
        Ok(runner.confined(Some(self.sandbox(way).await?)))
    }

    pub(crate) async fn sandbox(&self, way: Way) -> anyhow::Result<Sandbox> {
        let options = self.options(way)?;
        let made = Sandbox::at(way.level, options).await;
        made.map_err(anyhow::Error::msg)
            .with_context(|| format!("{way:?}"))
    }

    /// Makes a sandbox in which `hold` bounds commands.
    pub(crate) async fn held(&self, way: Way, hold: Hold) -> anyhow::Result<Sandbox> {
        let made = Sandbox::of(way.level, hold, self.options(way)?).await;
        made.map_err(anyhow::Error::msg)
            .with_context(|| format!("{way:?} {hold}"))
    }

    fn options(&self, way: Way) -> anyhow::Result<SandboxOptions> {
        let mut helper = PathBuf::from(HELPER);
        if way.as_nobody {
            give_to_nobody(&self.place("state"))?;
            give_to_nobody(&self.place("home"))?;
            helper = self.place("bin/helper");
            become_nobody(&helper, HELPER)?;
            let bubblewrap = self.place("bin/bwrap");
            become_nobody(&bubblewrap, "/usr/bin/bwrap")?;
            if way.level == Level::Bubblewrap {
                helper = HELPER.into();
            }
        }
        Ok(SandboxOptions {
            environment: self.environment.clone(),
            helper,
            // Of the last there is nothing, in a place that is shown to be read.
            hidden: vec![
                self.place("state"),
                self.place("checkout"),
                "/usr/share/ropewalk-is-not-there".into(),
            ],
            objects: Some(self.place("state/repository.git/objects")),
            limits: LIMITS,
            egress: self.egress.clone(),
        })
    }

    /// Puts places in for their names.
    fn told(&self, line: &str) -> String {
        let base = self.base.path().display().to_string();
        line.replace("BASE", &base)
    }
}

/// Lets `line` use up too much, with nothing in the way and then confined in every way, held by the best there is where no
/// `hold` is named; each ends it for that. Whoever is stopped is so before it has slept; with nothing in the way there is
/// nothing to wait for.
pub(crate) async fn only_stopped(line: &str, told: &str, hold: Option<Hold>) -> anyhow::Result<()> {
    let free = Ground::new()?.unconfined(&line.replace("HOLD", "0"))?;
    let said = String::from_utf8_lossy(&free.stdout);
    assert!(said.contains("reached"), "unconfined: {free:?}");
    let line = line.replace("HOLD", "60");
    for way in ways() {
        let ground = Ground::new()?;
        let sandbox = match hold {
            Some(hold) => ground.held(way, hold).await?,
            None => ground.sandbox(way).await?,
        };
        let runner = CommandRunner::new(ground.environment.clone()).confined(Some(sandbox));
        let spec = CommandSpec::shell(line.as_str(), ground.tree()).with_writable(ground.tree());
        let output = runner.run(&spec, &CancellationToken::new()).await?;
        // What was closed could not be removed with the ground.
        let closed = ground.tree().join("closed");
        fs::set_permissions(closed, fs::Permissions::from_mode(0o700)).ok();
        assert!(!output.stdout.contains("reached"), "{way:?}: {output:?}");
        // A user meets the bound of the kernel, whose words are those of the shell.
        let by_kernel = told == "processes" && way.as_nobody && output.stderr.contains("fork");
        let by_watch =
            output.stderr.contains("the command was stopped") && output.stderr.contains(told);
        assert!(by_kernel || by_watch, "{way:?} {told}: {output:?}");
    }
    Ok(())
}

/// Writes a program that starts `program` as a user who is nobody.
fn become_nobody(at: &Path, program: &str) -> anyhow::Result<()> {
    let user = format!("--reuid={NOBODY} --regid={NOBODY} --clear-groups");
    // Everything that is left of the base is for everyone to read, as a home is not.
    fs::write(
        at,
        format!("#!/bin/sh\nexec setpriv {user} {program} \"$@\"\n"),
    )?;
    Ok(fs::set_permissions(at, fs::Permissions::from_mode(0o755))?)
}

fn give_to_nobody(place: &Path) -> anyhow::Result<()> {
    chown(place, Some(NOBODY), Some(NOBODY))?;
    if place.is_dir() {
        for entry in fs::read_dir(place)? {
            give_to_nobody(&entry?.path())?;
        }
    }
    Ok(())
}
