//! Where programs lie, other things may lie as well: a checkout of a person, and what others may not read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ropewalk_tests::namespaces;
use ropewalk_workspace::CommandSpec;
use tokio_util::sync::CancellationToken;

use crate::ground::{CANARY, Ground, own_ways};

/// One of the places where programs lie.
const OPT: &str = "/opt";

/// Lays an empty directory over it, for this process alone: on the machine, everybody's commands would see what is laid there.
fn cover() -> anyhow::Result<()> {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "mode=0755", "none", OPT])
        .status()?;
    anyhow::ensure!(mounted.success());
    Ok(())
}

/// Writes a file for those whom `mode` lets read it.
fn lay(place: impl AsRef<Path>, text: &str, mode: u32) -> anyhow::Result<()> {
    let place = place.as_ref();
    if let Some(around) = place.parent() {
        fs::create_dir_all(around)?;
    }
    fs::write(place, text)?;
    open_to(place, mode)
}

fn open_to(place: impl AsRef<Path>, mode: u32) -> anyhow::Result<()> {
    Ok(fs::set_permissions(
        place,
        fs::Permissions::from_mode(mode),
    )?)
}

#[tokio::test]
async fn the_checkout_of_a_person_and_what_others_may_not_read_are_not_seen() -> anyhow::Result<()>
{
    if !namespaces::are_own() {
        let name = "programs::the_checkout_of_a_person_and_what_others_may_not_read_are_not_seen";
        return Ok(namespaces::run(name, &[])?);
    }
    cover()?;
    lay("/opt/app/kept/key", CANARY, 0o600)?;
    open_to("/opt/app/kept", 0o700)?;
    lay("/opt/app/README", "open\n", 0o644)?;
    lay("/opt/python/lib/key", CANARY, 0o600)?;
    lay("/opt/python/lib/python3.0/os.py", "", 0o644)?;
    lay("/opt/python/bin/python3", "", 0o755)?;
    open_to("/opt/app", 0o755)?;
    for way in own_ways() {
        lay("/opt/app/.env", CANARY, 0o600)?;
        let ground = Ground::below(Path::new(OPT))?;
        // An interpreter that the checkout needs shows no more of its directory.
        let environment = ground.tree().join(".venv/pyvenv.cfg");
        lay(environment, "home = /opt/python/bin\n", 0o644)?;
        for line in [
            "cat BASE/checkout/.env",
            "cat /opt/app/.env",
            "cat /opt/app/kept/key",
            "cat /opt/python/lib/key",
        ] {
            let free = ground.unconfined(line)?;
            let said = String::from_utf8_lossy(&free.stdout);
            assert!(said.contains(CANARY), "unconfined {line}: {free:?}");
            let output = ground.confined(way, line).await?;
            let said = format!("{way:?} {line}: {output:?}");
            assert!(!output.stdout.contains(CANARY), "{said}");
        }
        let runner = ground.runner(way).await?;
        // What was covered may go while the program runs.
        fs::remove_file("/opt/app/.env")?;
        let line = "cat /opt/app/README && echo alive > mark";
        let spec = CommandSpec::shell(line, ground.tree()).with_writable(ground.tree());
        let output = runner.run(&spec, &CancellationToken::new()).await?;
        assert_eq!(output.stdout, "open\n", "{way:?}: {output:?}");
        assert!(ground.tree().join("mark").exists(), "{way:?}: {output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_program_starts_whoever_else_may_read_what_lies_around_it() -> anyhow::Result<()> {
    if !namespaces::are_own() {
        let name = "programs::a_program_starts_whoever_else_may_read_what_lies_around_it";
        return Ok(namespaces::run(name, &[])?);
    }
    cover()?;
    for way in own_ways() {
        // In the checkout of a person is what they put on their path, and nothing else.
        let ground = Ground::below(Path::new(OPT))?
            .with_programs("own/bin")
            .with_programs("checkout/.venv/bin");
        let calls = "#!/bin/sh\nexec \"${0%/*}/../../tool/bin/hello\"\n";
        lay(ground.place("own/bin/greet"), calls, 0o750)?;
        // The path does not lead there.
        let hello = "#!/bin/sh\ncat \"${0%/*}/../lib/words\"\n";
        lay(ground.place("tool/bin/hello"), hello, 0o750)?;
        lay(ground.place("tool/lib/words"), "hello\n", 0o644)?;
        for directory in ["own", "tool/bin", "tool/lib", "tool"] {
            open_to(ground.place(directory), 0o750)?;
        }
        let wave = ground.place("checkout/.venv/bin/wave");
        lay(wave, "#!/bin/sh\necho bye\n", 0o755)?;
        let line = "greet; wave; cat BASE/checkout/.env";
        let output = ground.confined(way, line).await?;
        assert_eq!(output.stdout, "hello\nbye\n", "{way:?}: {output:?}");
    }
    Ok(())
}
