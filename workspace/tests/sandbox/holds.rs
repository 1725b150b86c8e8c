//! What bounds the memory and the processes of a command: its group where one can be made, else limits and a watch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::libc::{MFD_NOEXEC_SEAL, SYS_exit, SYS_memfd_create, SYS_prctl};
use nix::unistd::geteuid;
use ropewalk_workspace::{
    CommandOutput, CommandRunner, CommandSpec, CommandStatus, Environment, Hold, Level,
};
use tokio_util::sync::CancellationToken;

use crate::ground::{DISK, Ground, SHARED_MEMORY, Way, only_stopped, ways};

/// 300 processes at once, and 1 GiB of memory; each says so when it got there. Whoever is stopped is so before it has
/// slept; with nothing in the way there is nothing to wait for.
const BOMB: &str =
    "for i in $(seq 300); do sleep 60 & all=\"$all $!\"; done; sleep HOLD; echo reached; kill $all";
const HOG: &str = "head -c 1G /dev/zero | tail | wc -c; sleep HOLD; echo reached";

/// Which groups this machine makes for root: one tree for all controllers, or one for each.
fn kind() -> Hold {
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    match controllers {
        Ok(there) if there.contains("memory") && there.contains("pids") => Hold::CgroupV2,
        _ => Hold::CgroupV1,
    }
}

/// How many groups a command is in.
fn groups_each() -> usize {
    if kind() == Hold::CgroupV2 { 1 } else { 2 }
}

/// Returns the directory below which the groups of commands of this process are made.
fn own_group(controller: &str) -> anyhow::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let (mount, before) = match kind() {
        Hold::CgroupV2 => ("/sys/fs/cgroup".into(), "0::/".to_owned()),
        _ => (
            Path::new("/sys/fs/cgroup").join(controller),
            format!(":{controller}:/"),
        ),
    };
    let mut below = groups.lines().filter_map(|line| line.split_once(&before));
    let (_, below) = below.next().context("this machine has no cgroups")?;
    // Where this process went to, since it has groups beside it.
    Ok(mount.join(below.strip_suffix("ropewalk.main").unwrap_or(below)))
}

/// Returns the groups of commands that are there now, whoever made them.
fn groups(controller: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for home in fs::read_dir(own_group(controller)?)?.flatten() {
        if home.file_name().to_string_lossy().starts_with("ropewalk-") {
            let inside = fs::read_dir(home.path()).into_iter().flatten().flatten();
            found.extend(
                inside
                    .map(|entry| entry.path())
                    .filter(|path| path.is_dir()),
            );
        }
    }
    Ok(found)
}

/// Says whether groups are made here. Root makes some of version 1, and of version 2 where nobody else is in its own; whoever
/// else was given none is refused them, and watched.
async fn makes_groups() -> anyhow::Result<bool> {
    let way = Way {
        level: Level::Namespaces,
        as_nobody: false,
    };
    let ground = Ground::new()?;
    let Err(refused) = ground.held(way, kind()).await else {
        return Ok(true);
    };
    let told = format!("{refused:#}");
    let is_shared = told.contains("os error 16") || told.contains("has no memory and pids");
    let by_others = kind() == Hold::CgroupV2 && is_shared;
    assert!(
        !geteuid().is_root() || by_others,
        "root makes groups: {told}"
    );
    assert!(by_others || told.contains("/sys/fs/cgroup"), "{told}");
    assert_eq!(ground.sandbox(way).await?.hold(), Hold::Watch);
    Ok(false)
}

fn owned_by_root() -> Vec<Way> {
    let ways = ways().into_iter();
    ways.filter(|way| !way.as_nobody || way.level == Level::Bubblewrap)
        .collect()
}

/// Reads a counter of the group that the one command of this process is in, as long as there is one.
fn counter(file: &str, name: &str) -> anyhow::Result<u64> {
    let mut most = 0;
    for group in groups_of(std::process::id())? {
        let text = fs::read_to_string(group.join(file)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        most = most.max(line.map_or(0, |value| value.trim().parse().unwrap_or(0)));
    }
    Ok(most)
}

#[tokio::test]
async fn its_group_stops_a_fork_bomb_and_a_memory_hog() -> anyhow::Result<()> {
    if !makes_groups().await? {
        return Ok(());
    }
    // Of the groups of another test a counter proves nothing.
    if std::env::var_os(ALONE).is_none() {
        let status = again("holds::its_group_stops_a_fork_bomb_and_a_memory_hog")?.status()?;
        assert!(status.success());
        return Ok(());
    }
    let of_memory = match kind() {
        Hold::CgroupV2 => "memory.events",
        _ => "memory.oom_control",
    };
    for (line, told, file, name) in [
        (BOMB, "processes", "pids.events", "max "),
        (HOG, "memory", of_memory, "oom_kill "),
    ] {
        let free = Ground::new()?.unconfined(&line.replace("HOLD", "0"))?;
        assert!(String::from_utf8_lossy(&free.stdout).contains("reached"));
        let line = &line.replace("HOLD", "60");
        for way in owned_by_root() {
            let ground = Ground::new()?;
            let sandbox = ground.held(way, kind()).await?;
            assert_eq!(sandbox.hold(), kind());
            let runner = CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")]));
            let runner = runner.confined(Some(sandbox));
            let spec = CommandSpec::shell(line, ground.tree()).with_writable(ground.tree());
            let cancel = CancellationToken::new();
            let mut running = std::pin::pin!(runner.run(&spec, &cancel));
            let mut met = 0;
            // Before each of its steps, since the last ones remove the group.
            let running = std::future::poll_fn(|context| {
                met = met.max(counter(file, name).unwrap_or_default());
                running.as_mut().poll(context)
            });
            let output = running.await?;
            assert!(met > 0, "{way:?}: the group counted nothing: {output:?}");
            assert!(!output.stdout.contains("reached"), "{way:?}: {output:?}");
            assert!(!output.succeeded(), "{way:?}: {output:?}");
            let said = output.stderr.contains("the command was stopped");
            assert!(said && output.stderr.contains(told), "{way:?}: {output:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn without_groups_a_watch_stops_them() -> anyhow::Result<()> {
    for (line, told) in [(BOMB, "processes"), (HOG, "memory")] {
        for (way, output) in watched(&line.replace("HOLD", "60")).await? {
            // A user meets the bound of the kernel, whose words are those of the shell.
            let by_kernel = told == "processes" && way.as_nobody && output.stderr.contains("fork");
            let by_watch =
                output.stderr.contains("the command was stopped") && output.stderr.contains(told);
            assert!(by_kernel || by_watch, "{way:?}: {output:?}");
        }
    }
    Ok(())
}

/// 512 MiB in a segment that belongs to no process.
const SEGMENT: &str = "perl -e 'my $id = shmget(0, 1 << 29, 0600) // die; my $part = \"x\" x (1 << 24); \
    for (0..31) { shmwrite($id, $part, $_ << 24, 1 << 24) or die } \
    sleep HOLD; shmctl($id, 0, 0); print \"reached\\n\"'";
/// As much in files in memory that have no name, each of them shorter than a file may be, after what a program does first. Some
/// machines refuse one that could be run, and old ones do not know how to say that it cannot.
const NAMELESS: &str = "perl -e 'FIRST my $name = \"x\"; my $part = \"x\" x (1 << 24); for my $file (1..16) { \
    my $number = syscall(MEMFD, $name, SEAL); $number = syscall(MEMFD, $name, 0) if $number < 0; \
    open($files[$file], \">&=\", $number) or die; syswrite($files[$file], $part) // die for 1..2 } \
    sleep HOLD; print \"reached\\n\"'";
/// Files that lie in memory where a command is confined, each of them shorter than a file may be.
const FILES: &str = "for i in 1 2 3 4 5 6; do head -c 40M /dev/zero > /tmp/held-$$-$i; done && \
    head -c 40M /dev/zero > /dev/shm/held-$$ && sleep HOLD; rm /tmp/held-$$-* /dev/shm/held-$$ && echo reached";
/// Files that were removed from there, and are held open.
const REMOVED: &str = "for i in $(seq 3 9); do eval \"exec $i>/tmp/held-$$\"; rm /tmp/held-$$; head -c 40M /dev/zero >&$i; done; \
    sleep HOLD; echo reached";
/// Memory of a program whose first thread has ended.
const THREAD: &str =
    "PATH=/usr/local/bin:/usr/bin:/bin python3 -c 'import ctypes, os, threading, time
def hold():
    held = b\"x\" * (1 << 29)
    time.sleep(HOLD)
    print(\"reached\", flush=True)
    os._exit(0)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(EXIT, 0)'";

/// Runs `line` confined in every way, held by a watch alone.
async fn watched(line: &str) -> anyhow::Result<Vec<(Way, CommandOutput)>> {
    let mut outputs = Vec::new();
    for way in ways() {
        let ground = Ground::new()?;
        let sandbox = ground.held(way, Hold::Watch).await?;
        let runner = CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")]));
        let spec = CommandSpec::shell(line, ground.tree()).with_writable(ground.tree());
        let runner = runner.confined(Some(sandbox));
        outputs.push((way, runner.run(&spec, &CancellationToken::new()).await?));
    }
    Ok(outputs)
}

#[tokio::test]
async fn without_groups_memory_that_nobody_maps_counts() -> anyhow::Result<()> {
    // Unconfined, its files lie on the disk.
    let _disk = DISK.lock().await;
    let _memory = SHARED_MEMORY.lock().await;
    let nameless = NAMELESS
        .replace("MEMFD", &SYS_memfd_create.to_string())
        .replace("SEAL", &MFD_NOEXEC_SEAL.to_string());
    let hides = format!("syscall({SYS_prctl}, 4, 0, 0, 0, 0) and die;");
    let [shown, hidden] = ["", &hides].map(|first| nameless.replace("FIRST", first));
    for line in [shown.as_str(), &hidden, SEGMENT, FILES, REMOVED] {
        only_stopped(line, "memory", Some(Hold::Watch)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_groups_memory_counts_though_the_first_thread_has_ended() -> anyhow::Result<()> {
    let line = THREAD.replace("EXIT", &SYS_exit.to_string());
    only_stopped(&line, "memory", Some(Hold::Watch)).await
}

#[tokio::test]
async fn without_groups_what_is_cached_or_was_given_back_is_not_counted() -> anyhow::Result<()> {
    let _disk = DISK.lock().await;
    let _memory = SHARED_MEMORY.lock().await;
    let line = "head -c 50M /dev/zero > file; for i in 1 2 3 4 5 6; do cat file > /dev/null; done; \
                for i in 1 2 3 4; do head -c 50M /dev/zero > /tmp/one; head -c 50M /dev/zero > /tmp/two; \
                sleep 0.6; rm /tmp/one /tmp/two; done && echo reached";
    for (way, output) in watched(line).await? {
        assert!(output.stdout.contains("reached"), "{way:?}: {output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_was_removed_from_memory_and_is_held_open_is_not_on_the_disk() -> anyhow::Result<()> {
    let _memory = SHARED_MEMORY.lock().await;
    // More than may be on the disk, and less than may be in memory; it is looked at twice meanwhile.
    let line = "for place in 3:/tmp 4:/dev/shm; do eval \"exec ${place%:*}>${place#*:}/held\"; rm ${place#*:}/held; \
                head -c 50M /dev/zero >&${place%:*}; done; sleep 3; echo reached";
    for (way, output) in watched(line).await? {
        assert!(output.stdout.contains("reached"), "{way:?}: {output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn who_may_not_join_a_group_is_watched() -> anyhow::Result<()> {
    if !makes_groups().await? || !geteuid().is_root() {
        return Ok(());
    }
    let way = Way {
        level: Level::Namespaces,
        as_nobody: true,
    };
    let ground = Ground::new()?;
    let refused = ground.held(way, kind()).await.unwrap_err();
    assert!(
        format!("{refused:#}").contains("join its group"),
        "{refused:#}"
    );
    assert_eq!(ground.sandbox(way).await?.hold(), Hold::Watch);
    let as_root = Way {
        as_nobody: false,
        ..way
    };
    assert_eq!(Ground::new()?.sandbox(as_root).await?.hold(), kind());
    Ok(())
}

/// Says to the second run of a test that it is the only one of its process.
const ALONE: &str = "ROPEWALK_TEST_HOLD_ALONE";

/// Starts this program again for one test alone.
fn again(test: &str) -> anyhow::Result<Command> {
    let mut again = Command::new(std::env::current_exe()?);
    again.args(["--exact", test]).env(ALONE, "1");
    again.stdout(Stdio::null());
    Ok(again)
}

/// Returns the groups of commands that the process `id` made.
fn groups_of(id: u32) -> anyhow::Result<Vec<PathBuf>> {
    let name = format!("ropewalk-{id}-");
    let is_its = |path: &PathBuf| path.display().to_string().contains(&name);
    let mut all = [groups("pids")?, groups("memory")?].concat();
    all.sort();
    all.dedup();
    Ok(all.into_iter().filter(is_its).collect())
}

#[tokio::test]
async fn a_command_leaves_no_group_and_nobody_in_it() -> anyhow::Result<()> {
    if !makes_groups().await? {
        return Ok(());
    }
    if std::env::var_os(ALONE).is_none() {
        let status = again("holds::a_command_leaves_no_group_and_nobody_in_it")?.status()?;
        assert!(status.success());
        return Ok(());
    }
    for way in owned_by_root() {
        let ground = Ground::new()?;
        let sandbox = ground.held(way, kind()).await?;
        let runner = CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")]));
        let runner = runner.confined(Some(sandbox));
        for (line, seconds, status) in [
            ("setsid sleep 271 & sleep 1", 30, CommandStatus::Exited(0)),
            (
                "trap '' TERM; sleep 272; sleep 272",
                2,
                CommandStatus::TimedOut,
            ),
        ] {
            let spec = CommandSpec::shell(line, ground.tree()).with_writable(ground.tree());
            let spec = spec.with_timeout(Duration::from_secs(seconds));
            let cancel = CancellationToken::new();
            let mut running = std::pin::pin!(runner.run(&spec, &cancel));
            // However long it takes to begin on a busy machine.
            while groups_of(std::process::id())?.len() < groups_each() {
                let moment = tokio::time::timeout(Duration::from_millis(5), &mut running).await;
                assert!(moment.is_err(), "{way:?}: {moment:?}");
            }
            let output = running.await?;
            assert_eq!(output.status, status, "{way:?}: {output:?}");
            assert_eq!(groups_of(std::process::id())?, Vec::<PathBuf>::new());
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_a_killed_process_left_is_removed_by_the_next() -> anyhow::Result<()> {
    let way = Way {
        level: Level::Namespaces,
        as_nobody: false,
    };
    if std::env::var_os(ALONE).is_some() {
        let ground = Ground::new()?;
        let sandbox = ground.held(way, kind()).await?;
        let runner = CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")]));
        let spec = CommandSpec::shell("sleep 600", ground.tree());
        let runner = runner.confined(Some(sandbox));
        runner.run(&spec, &CancellationToken::new()).await?;
        return Ok(());
    }
    if !makes_groups().await? {
        return Ok(());
    }
    let mut starter = again("holds::what_a_killed_process_left_is_removed_by_the_next")?.spawn()?;
    let begun = Instant::now();
    let is_full = |group: &PathBuf| {
        fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| text.lines().count() > 1)
    };
    while !groups_of(starter.id())?.iter().any(is_full) {
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing began");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let left = groups_of(starter.id())?;
    assert_eq!(left.len(), groups_each(), "{left:?}");
    starter.kill()?;
    starter.wait()?;
    Ground::new()?.held(way, kind()).await?;
    // Nothing but the next removes them; it may be another test, which is still at it.
    let is_there = |group: &PathBuf| group.exists() || group.parent().is_some_and(Path::exists);
    let begun = Instant::now();
    while left.iter().any(is_there) {
        assert!(begun.elapsed() < Duration::from_mins(1), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
