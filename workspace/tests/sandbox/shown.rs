//! Shows confined commands the history below their checkout, and a place for scratch files.

use std::fs;
use std::path::Path;
use std::process::Command;

use chrono::{DateTime, Utc};
use ropewalk_workspace::{
    CommandSpec, Environment, Git, Identity, LocalClone, LocalCloneOptions, PreserveKey, Slot,
    SlotPool,
};

use crate::ground::{CANARY, Ground, ways};

fn git(directory: &Path, line: &str) -> anyhow::Result<()> {
    let who = "-c 'safe.directory=*' -c user.name=User -c user.email=user@example.org";
    let line = format!("git {who} {line}");
    let status = Command::new("sh")
        .args(["-c", &line])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()?;
    anyhow::ensure!(status.success(), "{line}");
    Ok(())
}

/// A repository with a tag, and its clone in the state directory of the ground.
async fn cloned(ground: &Ground) -> anyhow::Result<LocalClone> {
    let user = ground.place("user");
    fs::create_dir(&user)?;
    git(&user, "init -q -b main")?;
    fs::write(user.join("file"), "one\ntwo\n")?;
    for line in ["add -A", "commit -q -m start", "tag v1"] {
        git(&user, line)?;
    }
    let git = Git::open(&Environment::from_pairs(std::env::vars_os())).await?;
    let options = LocalCloneOptions {
        user_repository: user,
        state: ground.place("state"),
        identity: Identity::default(),
    };
    Ok(LocalClone::open_or_create(git, options).await?)
}

async fn slot(clone: &LocalClone) -> anyhow::Result<Slot> {
    let head = clone.default_branch_head().await?.commit;
    let key = PreserveKey {
        build: "01890a5d-ac96-774b-bcce-b302099a8057".parse()?,
        task: "T-001".parse()?,
        attempt: 1,
    };
    let pool = SlotPool::new(clone.clone(), 1);
    Ok(pool
        .acquire(&key, &head, DateTime::<Utc>::default())
        .await?)
}

#[tokio::test]
async fn git_works_in_a_confined_slot_on_objects_that_nobody_can_change() -> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?;
        let clone = cloned(&ground).await?;
        let mut slot = slot(&clone).await?;
        let base = clone.default_branch_head().await?.commit;
        let objects = ground.runner(way).await?.objects_of(&clone);
        assert!(!objects.starts_with(clone.state()), "{objects:?}");
        slot.show(clone.history_on(&base, objects.clone()).await?)
            .await?;
        let works = "echo 1 > file && git status --short && git diff | grep -c -- -two && git log --format=%s \
                     && git describe --tags && git blame HEAD -- file | wc -l && git add -A && git stash -q && cat file";
        let said = ground.confined(way, works).await?;
        assert_eq!(
            said.stdout, " M file\n1\nstart\nv1\n2\none\ntwo\n",
            "{way:?}: {said:?}"
        );
        let listed = ground
            .confined(way, "ls BASE/state BASE/state/slots")
            .await?;
        assert!(!listed.stdout.contains("repository.git"), "{listed:?}");
        let place = objects.display();
        for attack in [
            format!("touch {place}/new"),
            format!("rm -rf {place}/??"),
            format!(
                "find {place} -type f -exec chmod u+w {{}} + && find {place} -type f -exec sh -c ': > $0' {{}} \\;"
            ),
        ] {
            let before = clone.tree_of(&base).await?;
            ground.confined(way, &attack).await?;
            assert_eq!(clone.tree_of(&base).await?, before, "{way:?}: {attack}");
            git(clone.directory(), "fsck --strict")?;
        }
        assert!(!clone.state().join("repository.git/objects/new").exists());
        let all = ground
            .confined(way, "grep -rs . /run BASE/state | head -c 100000")
            .await?;
        assert!(!all.stdout.contains(CANARY), "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_command_finds_room_for_scratch_files_wherever_the_program_has_its_own()
-> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?.with_variable("TMPDIR", "/var/tmp/of-the-program");
        let made = ground
            .confined(way, "touch $TMPDIR/here && dirname $(mktemp)")
            .await?;
        assert!(made.succeeded(), "{way:?}: {made:?}");
        assert_eq!(made.stdout, "/tmp\n", "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn scratch_files_outlive_a_confined_command_and_lie_beside_its_checkout() -> anyhow::Result<()>
{
    for way in ways() {
        let ground = Ground::new()?;
        let scratch = ground.place("state/slots/1/tmp");
        fs::create_dir(&scratch)?;
        let spec = |line: &str| {
            CommandSpec::shell(line, ground.tree())
                .with_writable(ground.tree())
                .with_scratch(&scratch)
        };
        let made = ground.run(way, &spec("echo kept > $TMPDIR/notes")).await?;
        assert!(made.succeeded(), "{way:?}: {made:?}");
        let read = ground
            .run(way, &spec("cat $(dirname $(mktemp))/notes"))
            .await?;
        assert_eq!(read.stdout, "kept\n", "{way:?}: {read:?}");
        assert_eq!(fs::read_to_string(scratch.join("notes"))?, "kept\n");
        assert_eq!(fs::read_dir(ground.tree())?.count(), 0);
    }
    Ok(())
}
