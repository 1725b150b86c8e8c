//! Runs confined what a manager of versions, which lives outside the home, puts on the path.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::ground::{CANARY, Ground, ways};

/// Writes a program, and the directories above it.
fn program(at: &Path, line: &str) -> anyhow::Result<()> {
    if let Some(above) = at.parent() {
        fs::create_dir_all(above)?;
    }
    fs::write(at, format!("#!/bin/sh\n{line}\n"))?;
    Ok(fs::set_permissions(at, fs::Permissions::from_mode(0o755))?)
}

/// Lays what no command has to see beside the manager.
fn keep_something(ground: &Ground) -> anyhow::Result<()> {
    fs::create_dir_all(ground.place("manager/.ssh"))?;
    fs::write(ground.place("manager/.ssh/id"), CANARY)?;
    fs::write(ground.place("manager/credentials"), CANARY)?;
    Ok(())
}

/// Returns a line that tells what is seen of that, and says `bare` where nothing can be made at `place`.
fn looks(place: &str) -> String {
    format!(
        "grep -rsl . BASE/manager/.ssh BASE/manager/credentials; {{ echo 2.0 > BASE/manager/version; }} 2>/dev/null; \
         touch BASE/manager/{place}/own 2>/dev/null || echo bare"
    )
}

#[tokio::test]
async fn a_stand_in_of_a_manager_outside_the_home_starts_the_version_that_is_chosen()
-> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?.with_programs("manager/shims");
        let root = ground.place("manager");
        let dispatch = format!(
            "set -e\nread -r version < {0}/version\nexec \"{0}/versions/$version/bin/$1\"",
            root.display()
        );
        program(&root.join("libexec/dispatch"), &dispatch)?;
        let stand_in = format!("exec {}/libexec/dispatch \"${{0##*/}}\"", root.display());
        program(&root.join("shims/greet"), &stand_in)?;
        for version in ["1.0", "2.0"] {
            let greets = root.join("versions").join(version).join("bin/greet");
            program(&greets, &format!("echo version {version}"))?;
        }
        fs::write(root.join("version"), "1.0\n")?;
        keep_something(&ground)?;
        let said = ground.confined(way, "greet").await?;
        assert_eq!(said.stdout, "version 1.0\n", "{way:?}: {said:?}");
        // Who changes the version outside changes it inside, and nobody inside does.
        let looked = ground.confined(way, &looks("versions")).await?;
        assert_eq!(looked.stdout, "bare\n", "{way:?}: {looked:?}");
        assert_eq!(fs::read_to_string(root.join("version"))?, "1.0\n");
        fs::write(root.join("version"), "2.0\n")?;
        let said = ground.confined(way, "greet").await?;
        assert_eq!(said.stdout, "version 2.0\n", "{way:?}: {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_directory_on_the_path_may_lie_in_one_that_is_shown_later() -> anyhow::Result<()> {
    for way in ways() {
        // The shims of a plugin stand before those of its manager, of which all plugins are shown.
        let ground = Ground::new()?
            .with_programs("manager/shims")
            .with_programs("manager/plugins/more/shims");
        let root = ground.place("manager");
        fs::create_dir_all(root.join("versions"))?;
        program(&root.join("shims/greet"), "echo hello")?;
        program(&root.join("plugins/more/shims/wave"), "echo bye")?;
        let said = ground.confined(way, "greet; wave").await?;
        assert_eq!(said.stdout, "hello\nbye\n", "{way:?}: {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_program_of_a_version_that_is_a_link_to_its_library_starts() -> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?.with_programs("manager/versions/node/v20/bin");
        let root = ground.place("manager");
        let version = root.join("versions/node/v20");
        let greets = "echo \"from $(readlink -f \"$0\")\"";
        program(&version.join("lib/modules/greet/cli"), greets)?;
        fs::create_dir_all(version.join("bin"))?;
        symlink("../lib/modules/greet/cli", version.join("bin/greet"))?;
        keep_something(&ground)?;
        let said = ground.confined(way, "greet").await?;
        let expected = version.join("lib/modules/greet/cli");
        assert_eq!(
            said.stdout,
            format!("from {}\n", expected.display()),
            "{way:?}: {said:?}"
        );
        let looked = looks("versions/node/v20/lib");
        let looked = ground.confined(way, &looked).await?;
        assert_eq!(looked.stdout, "bare\n", "{way:?}: {looked:?}");
    }
    Ok(())
}
