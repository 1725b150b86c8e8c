//! What a confined command can do all the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ropewalk_workspace::{CommandRunner, CommandSpec, CommandStatus, Environment};
use tokio_util::sync::CancellationToken;

use crate::ground::{CANARY, Ground, ways};

/// Serves and asks itself, as tests do.
const TALKS_TO_ITSELF: &str = r#"perl -MIO::Socket::INET -e '
  my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die "serve: $!";
  my $client = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $server->sockport) or die "ask: $!";
  my $peer = $server->accept; print $peer "heard\n"; close $peer; print <$client>;'"#;

#[tokio::test]
async fn a_test_serves_and_asks_its_own_loopback() -> anyhow::Result<()> {
    for way in ways() {
        let output = Ground::new()?.confined(way, TALKS_TO_ITSELF).await?;
        assert_eq!(output.stdout, "heard\n", "{way:?}: {output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn home_and_temporary_files_are_private_and_gone_afterwards() -> anyhow::Result<()> {
    let line = "echo x > ~/kept && echo x > /tmp/kept && mktemp >/dev/null && echo x > /dev/shm/kept && ls ~/kept";
    for way in ways() {
        let ground = Ground::new()?;
        let output = ground.confined(way, line).await?;
        assert!(output.succeeded(), "{way:?}: {output:?}");
        assert!(!ground.place("home/kept").exists(), "{way:?}");
        let again = ground.confined(way, "ls ~ /tmp").await?;
        assert!(!again.stdout.contains("kept"), "{way:?}: {again:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_command_ends_as_it_would_unconfined() -> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?;
        for (line, code) in [("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)] {
            let output = ground.confined(way, line).await?;
            assert_eq!(
                output.status,
                CommandStatus::Exited(code),
                "{way:?} {line}: {output:?}"
            );
        }
        let said = ground
            .confined(way, "echo out; echo err >&2; cat /dev/null; id -u")
            .await?;
        assert!(
            said.stdout.starts_with("out\n") && said.stderr == "err\n",
            "{way:?}: {said:?}"
        );
        fs::write(ground.tree().join("file"), "before")?;
        ground
            .confined(
                way,
                "ls file && cp file copy && mkdir -p a/b && mv copy a/b && rm file",
            )
            .await?;
        assert_eq!(
            fs::read_to_string(ground.tree().join("a/b/copy"))?,
            "before",
            "{way:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_confined_command_is_stopped_at_its_time() -> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?;
        let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
        let runner = CommandRunner::new(environment).confined(Some(ground.sandbox(way).await?));
        let line = "setsid sleep 314 & trap '' TERM; sleep 314 & sleep 314; sleep 314";
        let spec = CommandSpec::shell(line, ground.tree()).with_timeout(Duration::from_millis(300));
        let begun = Instant::now();
        let output = runner.run(&spec, &CancellationToken::new()).await?;
        assert_eq!(output.status, CommandStatus::TimedOut, "{way:?}");
        assert!(begun.elapsed() < Duration::from_mins(1), "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_virtual_environment_finds_its_interpreter_and_shows_nothing_else() -> anyhow::Result<()>
{
    for way in ways() {
        let ground = Ground::new()?;
        let base = ground.place("outside/python");
        fs::create_dir_all(base.join("bin"))?;
        fs::create_dir_all(base.join("lib/python3.12"))?;
        fs::write(base.join("lib/python3.12/os.py"), "the library\n")?;
        fs::write(base.join("secret"), CANARY)?;
        let program = base.join("bin/python3");
        fs::write(
            &program,
            "#!/bin/sh\ncat ${0%/*}/../pyvenv.cfg BASE/lib/*/os.py\n"
                .replace("BASE", &base.display().to_string()),
        )?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        let environment = ground.tree().join(".venv");
        fs::create_dir_all(environment.join("bin"))?;
        fs::write(
            environment.join("pyvenv.cfg"),
            format!("home = {}\n", base.join("bin").display()),
        )?;
        symlink(&program, environment.join("bin/python"))?;
        let output = ground.confined(way, ".venv/bin/python").await?;
        assert!(
            output.stdout.ends_with("the library\n"),
            "{way:?}: {output:?}"
        );
        let output = ground
            .confined(
                way,
                "cat BASE/outside/python/secret; echo x > BASE/outside/python/lib/x",
            )
            .await?;
        assert!(
            !output.succeeded() && !output.stdout.contains(CANARY),
            "{way:?}: {output:?}"
        );
        assert!(!base.join("lib/x").exists());
        // What a model writes there opens nothing that is no interpreter.
        let settings = format!("home = {}\n", ground.place("home/.ssh/bin").display());
        fs::write(environment.join("pyvenv.cfg"), settings)?;
        let output = ground.confined(way, "cat BASE/home/.ssh/id").await?;
        assert!(
            !output.succeeded() && !output.stdout.contains(CANARY),
            "{way:?}: {output:?}"
        );
    }
    Ok(())
}

/// Says to the second run of this test which of [`ways`] it is to start a command in, and that it will be killed.
const KILLED: &str = "ROPEWALK_TEST_KILLED";

#[tokio::test]
async fn a_killed_starter_takes_its_confined_command_along() -> anyhow::Result<()> {
    // Nobody else sleeps for as long, so that it is known by that.
    if let Some(told) = std::env::var_os(KILLED) {
        let told = told.to_string_lossy();
        let (way, seconds) = told.split_once(' ').unwrap_or_default();
        let line = format!("setsid sleep {seconds} & sleep {seconds}");
        let way = ways()[way.parse::<usize>()?];
        Ground::new()?.confined(way, &line).await?;
        return Ok(());
    }
    for (number, way) in ways().into_iter().enumerate() {
        let seconds = format!("{}.{number}", 200_000 + std::process::id());
        let count = || {
            let mut find = Command::new("pgrep");
            find.args(["-x", "-f", &format!("sleep {seconds}")]);
            find.output()
                .map(|output| output.stdout.split(|byte| *byte == b'\n').count() - 1)
        };
        let mut starter = Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "life::a_killed_starter_takes_its_confined_command_along",
            ])
            .env(KILLED, format!("{number} {seconds}"))
            .stdout(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        while count()? < 2 {
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "{way:?} did not begin"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        starter.kill()?;
        starter.wait()?;
        let killed = Instant::now();
        while count()? > 0 {
            assert!(
                killed.elapsed() < Duration::from_mins(1),
                "{way:?} lives on"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
