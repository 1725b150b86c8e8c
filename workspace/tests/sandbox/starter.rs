//! What whoever starts the program did not say, or left open, gives no command a way out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ropewalk_workspace::{CommandRunner, CommandSpec, CommandStatus, Environment};
use tokio_util::sync::CancellationToken;

use crate::attacks::{Attack, only_unconfined, reads_canary};
use crate::ground::{CANARY, Ground, ways};

#[tokio::test]
async fn without_a_path_nothing_runs_unconfined() -> anyhow::Result<()> {
    for way in ways() {
        for path in [None, Some(""), Some(".")] {
            let ground = Ground::new()?;
            let file = ground.place("outside/file");
            let line = format!("echo x > {}", file.display());
            assert!(ground.unconfined(&line)?.status.success());
            fs::remove_file(&file)?;
            // A model can lay one there.
            let shell = ground.tree().join("sh");
            fs::write(&shell, "#!/bin/sh\nexec /bin/sh \"$@\"\n")?;
            fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))?;
            let environment = Environment::from_pairs(path.map(|path| ("PATH", path)));
            let runner = CommandRunner::new(environment);
            let runner = runner.confined(Some(ground.sandbox(way).await?));
            let run = async |line: &str| {
                let spec = CommandSpec::shell(line, ground.tree()).with_writable(ground.tree());
                runner.run(&spec, &CancellationToken::new()).await
            };
            let output = run(&line).await?;
            assert!(!file.exists(), "{way:?} {path:?}: {output:?}");
            // Where nobody says it, programs are where they always are.
            let status = path.map_or(CommandStatus::Exited(0), |_| CommandStatus::Missing);
            let output = run("pwd > mark").await?;
            assert_eq!(output.status, status, "{way:?} {path:?}: {output:?}");
        }
    }
    Ok(())
}

/// Says to the second run of a test which file was open when it was started.
const LEFT_OPEN: &str = "ROPEWALK_TEST_LEFT_OPEN";

#[tokio::test]
async fn no_open_file_of_the_starter_is_handed_on() -> anyhow::Result<()> {
    let Some(file) = std::env::var_os(LEFT_OPEN) else {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("log");
        fs::write(&file, CANARY)?;
        let name = "starter::no_open_file_of_the_starter_is_handed_on";
        let output = Command::new("sh")
            .args(["-c", "exec 9<>\"$2\" && exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe()?)
            .arg(name)
            .arg(&file)
            .env(LEFT_OPEN, &file)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed"), "{output:?}");
        return Ok(());
    };
    only_unconfined(Attack {
        line: "perl -e 'open(my $log, \"<&=\", 9) or die; seek($log, 0, 0); print <$log>'",
        got: &reads_canary,
    })
    .await?;
    only_unconfined(Attack {
        line: "echo escaped >&9",
        got: &|_, _| {
            let text = fs::read_to_string(&file).unwrap_or_default();
            fs::write(&file, CANARY).unwrap();
            text.contains("escaped")
        },
    })
    .await
}
