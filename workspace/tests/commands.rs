//! Runs real commands and looks for what survives them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ropewalk_workspace::{
    CommandError, CommandOutput, CommandRunner, CommandSpec, CommandStatus, Environment,
    end_orphans,
};
use tokio_util::sync::CancellationToken;

/// Within this a command is stopped that would run for a day.
const SOON: Duration = Duration::from_mins(1);

fn runner() -> CommandRunner {
    CommandRunner::new(Environment::from_pairs(std::env::vars_os()))
}

async fn shell(
    line: &str,
    change: impl FnOnce(CommandSpec) -> CommandSpec,
) -> anyhow::Result<CommandOutput> {
    let spec = change(CommandSpec::shell(line, std::env::temp_dir()));
    Ok(runner().run(&spec, &CancellationToken::new()).await?)
}

/// Counts the processes whose command line holds `needle`.
fn alive(needle: &str) -> anyhow::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc")? {
        let line = std::fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&line).replace('\0', " ");
        count += usize::from(text.starts_with("sleep") && text.contains(needle));
    }
    Ok(count)
}

/// Waits until so many of them run.
async fn all_run(needle: &str, count: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    while alive(needle)? < count {
        anyhow::ensure!(begun.elapsed() < SOON, "`{needle}` never began");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Waits until killed processes are gone from the table.
async fn all_gone(needle: &str) -> anyhow::Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        if alive(needle)? == 0 {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(false)
}

#[tokio::test]
async fn exit_code_and_both_streams_are_reported() -> anyhow::Result<()> {
    let output = shell("echo out; echo err >&2; exit 3", |spec| spec).await?;
    assert_eq!(output.status, CommandStatus::Exited(3));
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert!(!output.truncated);
    Ok(())
}

#[tokio::test]
async fn time_out_ends_the_whole_group() -> anyhow::Result<()> {
    let output = shell("sleep 98761 & echo begun; sleep 98761", |spec| {
        spec.with_timeout(Duration::from_secs(5))
    })
    .await?;
    assert_eq!(output.status, CommandStatus::TimedOut);
    assert_eq!(output.stdout, "begun\n");
    assert!(all_gone("98761").await?);
    Ok(())
}

/// What catalogues of faults allow from the moment that a command is to stop to that in which it is gone.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// The same for one that writes without end: nobody waits for its last words.
const FLOOD_STOPS_WITHIN: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_command_that_ignores_the_request_is_killed() -> anyhow::Result<()> {
    let cancel = CancellationToken::new();
    let asked = OnceLock::new();
    // From here on the clock of the program goes by its own waits alone, however slow the machine is.
    let ask = |_: &[u8]| {
        asked.get_or_init(|| {
            tokio::time::pause();
            cancel.cancel();
            tokio::time::Instant::now()
        });
    };
    let line = "trap '' TERM; echo deaf; sleep 98762; sleep 98762";
    let spec = CommandSpec::shell(line, std::env::temp_dir());
    let output = runner().run_heard(&spec, &cancel, Some(&ask)).await?;
    assert_eq!(output.status, CommandStatus::Cancelled);
    let asked = asked.get().context("it never began")?;
    let took = asked.elapsed();
    assert!(took <= STOPS_WITHIN, "{took:?}");
    assert!(took >= Duration::from_secs(1), "it was given no time");
    tokio::time::resume();
    assert!(all_gone("98762").await?);
    Ok(())
}

#[tokio::test]
async fn background_children_die_with_their_leader() -> anyhow::Result<()> {
    let begun = Instant::now();
    let output = shell("sleep 98763 & echo done", |spec| spec).await?;
    assert_eq!(output.status, CommandStatus::Exited(0));
    assert_eq!(output.stdout, "done\n");
    assert!(begun.elapsed() < SOON);
    assert!(all_gone("98763").await?);
    Ok(())
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() -> anyhow::Result<()> {
    let running = shell("sleep 98764 & sleep 98764", |spec| spec);
    tokio::select! {
        ended = running => anyhow::bail!("it ended: {ended:?}"),
        runs = all_run("98764", 2) => runs?,
    }
    assert!(all_gone("98764").await?);
    Ok(())
}

#[tokio::test]
async fn cancelling_stops_the_command() -> anyhow::Result<()> {
    let cancel = CancellationToken::new();
    let spec = CommandSpec::shell("sleep 98765", "/");
    let runner = runner();
    let (output, runs) = tokio::join!(runner.run(&spec, &cancel), async {
        let runs = all_run("98765", 1).await;
        cancel.cancel();
        runs
    });
    runs?;
    assert_eq!(output?.status, CommandStatus::Cancelled);
    assert!(all_gone("98765").await?);
    Ok(())
}

#[tokio::test]
async fn endless_output_is_cut_and_stopped() -> anyhow::Result<()> {
    let kept = 64 * 1024;
    let (heard, flooded) = (AtomicUsize::new(0), OnceLock::new());
    // How much is read bounds it, and how long that takes is the pace of the machine; what follows is the program's.
    let hear = |bytes: &[u8]| {
        let heard = heard.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if heard > 64 * kept {
            flooded.get_or_init(|| {
                tokio::time::pause();
                tokio::time::Instant::now()
            });
        }
    };
    let spec = CommandSpec {
        output_limit_bytes: kept,
        ..CommandSpec::shell("yes", std::env::temp_dir())
    };
    let never = CancellationToken::new();
    let output = runner().run_heard(&spec, &never, Some(&hear)).await?;
    assert_eq!(output.status, CommandStatus::Flooded);
    assert!(output.truncated);
    assert!(output.stdout.len() < kept + 100);
    let heard = heard.into_inner();
    assert!(heard <= 65 * kept, "{heard} bytes were read");
    let took = flooded.get().context("it was no flood")?.elapsed();
    assert!(took <= FLOOD_STOPS_WITHIN, "{took:?}");
    Ok(())
}

#[tokio::test]
async fn long_output_keeps_both_ends() -> anyhow::Result<()> {
    let output = shell("echo first; seq 1 10000; echo last", |spec| CommandSpec {
        output_limit_bytes: 1000,
        ..spec
    })
    .await?;
    assert_eq!(output.status, CommandStatus::Exited(0));
    assert!(output.truncated);
    assert!(output.stdout.starts_with("first\n") && output.stdout.ends_with("last\n"));
    Ok(())
}

#[tokio::test]
async fn secrets_do_not_reach_the_command() -> anyhow::Result<()> {
    let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin"), ("API_KEY", "secret")]);
    let spec = CommandSpec::shell("env", "/").with_variable("EXTRA", "yes");
    let output = CommandRunner::new(environment)
        .run(&spec, &CancellationToken::new())
        .await?;
    assert!(output.stdout.contains("EXTRA=yes"), "{}", output.stdout);
    assert!(!output.stdout.contains("API_KEY"), "{}", output.stdout);
    Ok(())
}

#[tokio::test]
async fn a_missing_program_is_told_apart_from_a_failing_one() -> anyhow::Result<()> {
    let spec = CommandSpec::executable("no-such-program-here", ["x"], "/");
    let output = runner().run(&spec, &CancellationToken::new()).await?;
    assert_eq!(output.status, CommandStatus::Missing);
    assert!(output.program_missing());
    assert!(
        shell("no-such-program-here", |spec| spec)
            .await?
            .program_missing()
    );
    assert!(!shell("false", |spec| spec).await?.program_missing());
    Ok(())
}

#[tokio::test]
async fn a_program_of_the_directory_stands_in_for_none_of_the_path() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let shell = place.path().join("sh");
    std::fs::write(&shell, "#!/bin/sh\ntouch stood-in\n")?;
    std::fs::set_permissions(&shell, Permissions::from_mode(0o755))?;
    for path in ["", ".", ":bin:."] {
        let runner = CommandRunner::new(Environment::from_pairs([("PATH", path)]));
        let spec = CommandSpec::shell("true", place.path());
        let output = runner.run(&spec, &CancellationToken::new()).await?;
        assert_eq!(output.status, CommandStatus::Missing, "{path}");
        assert!(!place.path().join("stood-in").exists(), "{path}");
    }
    let spec = CommandSpec::executable("./sh", [""; 0], place.path());
    let output = runner().run(&spec, &CancellationToken::new()).await?;
    assert!(output.succeeded() && place.path().join("stood-in").exists());
    Ok(())
}

#[tokio::test]
async fn a_missing_directory_is_an_error_that_names_it() {
    let spec = CommandSpec::shell("true", Path::new("/no/such/directory"));
    let error = runner().run(&spec, &CancellationToken::new()).await;
    assert!(matches!(error, Err(CommandError::Directory(path)) if path.ends_with("directory")));
}

#[tokio::test]
async fn standard_input_is_empty_unless_given() -> anyhow::Result<()> {
    assert_eq!(shell("cat", |spec| spec).await?.stdout, "");
    let given = shell("cat", |spec| CommandSpec {
        stdin: Some(b"hello".to_vec()),
        ..spec
    })
    .await?;
    assert_eq!(given.stdout, "hello");
    Ok(())
}

#[tokio::test]
async fn a_daemon_dies_with_its_command_whatever_it_throws_away() -> anyhow::Result<()> {
    for (line, seconds) in [
        ("setsid sleep 98766 & echo done", "98766"),
        ("env -i setsid sleep 98767 & echo done", "98767"),
        (
            "env -i setsid sh -c 'touch here; sleep 98768 & sleep 98768' >/dev/null 2>&1 & \
             until [ -e here ]; do sleep 0.02; done; echo done",
            "98768",
        ),
        // Each of the three leaves its parent before the command ends.
        (
            "(setsid sh -c '(env -i setsid sh -c \"touch here; exec sleep 98769\" &) &' &) ; \
             until [ -e here ]; do sleep 0.02; done; sleep 0.2; echo done",
            "98769",
        ),
        ("bash -mc 'sleep 98770 & echo done'", "98770"),
    ] {
        // Other tests run commands at the same time, and a daemon without a mark is known by where it is.
        let place = tempfile::tempdir()?;
        let output = shell(line, |spec| CommandSpec {
            directory: place.path().to_owned(),
            ..spec
        })
        .await?;
        assert_eq!(
            (output.status, output.stdout.as_str()),
            (CommandStatus::Exited(0), "done\n"),
            "{line}"
        );
        // Each would sleep for a day: nobody waited for it, and the moment that its command is over it is gone.
        assert_eq!(alive(seconds)?, 0, "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn dropping_the_future_kills_daemons_too() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let running = shell("env -i setsid sleep 98773 & sleep 98773", |spec| {
        CommandSpec {
            directory: place.path().to_owned(),
            ..spec
        }
    });
    tokio::select! {
        ended = running => anyhow::bail!("it ended: {ended:?}"),
        runs = all_run("98773", 2) => runs?,
    }
    assert_eq!(alive("98773")?, 0);
    Ok(())
}

#[tokio::test]
async fn a_command_that_ends_leaves_the_daemons_of_others_alone() -> anyhow::Result<()> {
    let cancel = CancellationToken::new();
    let place = tempfile::tempdir()?;
    let spec = CommandSpec::shell(
        "env -i setsid sleep 98774 & setsid sleep 98774 & wait",
        place.path(),
    );
    let runner = runner();
    let (output, alive_beside) = tokio::join!(runner.run(&spec, &cancel), async {
        let beside = async {
            all_run("98774", 2).await?;
            let other = shell("setsid sleep 98775 & echo done", |spec| spec).await?;
            assert_eq!(other.stdout, "done\n");
            anyhow::Ok((alive("98774")?, alive("98775")?))
        };
        let found = beside.await;
        cancel.cancel();
        found
    });
    assert_eq!(alive_beside?, (2, 0));
    assert_eq!(output?.status, CommandStatus::Cancelled);
    assert_eq!(alive("98774")?, 0);
    Ok(())
}

#[tokio::test]
async fn what_a_killed_owner_left_is_ended_and_nothing_else() -> anyhow::Result<()> {
    for (owner, seconds) in [("gone/state#1", "98771"), ("other/state#1", "98772")] {
        // As a runner that was killed leaves it: whoever started it is gone.
        let left = format!("setsid sh -c 'sleep {seconds} & sleep {seconds}; :' &");
        let starter = std::process::Command::new("sh")
            .args(["-c", &left])
            .env("ROPEWALK_OWNER", owner)
            .env("ROPEWALK_COMMAND", owner)
            .status()?;
        assert!(starter.success());
        all_run(seconds, 2).await?;
    }
    let ended = end_orphans(|owner| owner.starts_with("gone/state#")).await;
    // The shell that waits for them may end by itself once they are gone.
    assert!(ended >= 2, "{ended}");
    assert!(all_gone("98771").await?);
    assert_eq!(alive("98772")?, 2);
    assert!(end_orphans(|owner| owner == "other/state#1").await >= 2);
    assert!(all_gone("98772").await?);
    Ok(())
}
