//! What a repository can be configured to run: each of these runs by itself where the user's own git works, and none where
//! ours does (fault 50).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::world::{World, commit, make_executable};

/// A way by which a repository makes git run something.
struct Vector {
    name: &'static str,
    /// What its configuration says; `TRAP` stands for the program that is to be run, `HOOKS` for the directory of hooks.
    settings: &'static [(&'static str, &'static str)],
    /// What its attributes say.
    attributes: &'static str,
    /// What its user does, and falls into it.
    fires: &'static str,
}

const VECTORS: [Vector; 12] = [
    Vector {
        name: "hooks",
        settings: &[("core.hooksPath", "HOOKS")],
        attributes: "",
        fires: "git commit -q --allow-empty -m x",
    },
    Vector {
        name: "fsmonitor",
        settings: &[("core.fsmonitor", "TRAP")],
        attributes: "",
        fires: "git status",
    },
    Vector {
        name: "ssh",
        settings: &[("core.sshCommand", "TRAP")],
        attributes: "",
        fires: "git ls-remote ssh://nowhere.test/x",
    },
    Vector {
        name: "editor",
        settings: &[("core.editor", "TRAP")],
        attributes: "",
        fires: "git commit --allow-empty",
    },
    Vector {
        name: "alternate refs",
        settings: &[("core.alternateRefsCommand", "TRAP")],
        attributes: "",
        fires: "git clone -q . ../alternate && git clone -q . ../source \
                && git -C ../source -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x \
                && (cd ../alternate/.git/objects && pwd) > .git/objects/info/alternates && git fetch -q ../source",
    },
    Vector {
        name: "clean",
        settings: &[("filter.trap.clean", "TRAP")],
        attributes: "* filter=trap\n",
        fires: "git add -A",
    },
    Vector {
        name: "smudge",
        settings: &[("filter.trap.smudge", "TRAP")],
        attributes: "* filter=trap\n",
        fires: "rm README.md && git checkout -- README.md",
    },
    Vector {
        name: "filter process",
        settings: &[("filter.trap.process", "TRAP")],
        attributes: "* filter=trap\n",
        fires: "git add -A",
    },
    Vector {
        name: "textconv",
        settings: &[("diff.trap.textconv", "TRAP")],
        attributes: "* diff=trap\n",
        fires: "git diff",
    },
    Vector {
        name: "external diff",
        settings: &[("diff.external", "TRAP")],
        attributes: "",
        fires: "git diff",
    },
    Vector {
        name: "merge driver",
        settings: &[("merge.trap.driver", "TRAP %O %A %B")],
        attributes: "* merge=trap\n",
        fires: "git checkout -q README.md && git checkout -q -b side && echo side > README.md && git commit -q -a -m side \
                && git checkout -q main && echo main > README.md && git commit -q -a -m main && git merge side",
    },
    Vector {
        name: "signing",
        settings: &[("gpg.program", "TRAP"), ("commit.gpgSign", "true")],
        attributes: "",
        fires: "git commit -q --allow-empty -m x",
    },
];

/// Lays a vector into the repository; returns the file that is there once it has run something.
fn lay(world: &World, vector: &Vector) -> anyhow::Result<PathBuf> {
    let base = world.directory.path();
    let fired = base.join("fired");
    let trap = base.join("trap.sh");
    let script = format!(
        "#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n",
        fired.display()
    );
    fs::write(&trap, script)?;
    make_executable(&trap)?;
    let hooks = base.join("hooks");
    fs::create_dir(&hooks)?;
    for hook in ["pre-commit", "reference-transaction", "post-checkout"] {
        fs::copy(&trap, hooks.join(hook))?;
    }
    for (key, value) in vector.settings {
        let value = value.replace("TRAP", &trap.display().to_string());
        let value = value.replace("HOOKS", &hooks.display().to_string());
        world.git(&["config", key, &value])?;
    }
    fs::write(world.user.join(".git/info/attributes"), vector.attributes)?;
    Ok(fired)
}

/// Does what a build does with a repository.
async fn work_with(world: &World) -> anyhow::Result<()> {
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    ensure!(clone.user_is_dirty().await?);
    let next = commit(&clone, &head, "README.md", "four\n").await?;
    clone.diff_of(head.as_str(), next.as_str(), &[]).await?;
    clone.publish("build/x", &next, None).await?;
    clone.fetch().await?;
    Ok(())
}

/// Works as the user does; what fails there once something ran is no matter.
fn fall(user: &Path, line: &str) -> anyhow::Result<String> {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(user)
        .stdin(Stdio::null())
        .env_remove("GIT_EDITOR")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "Ada")))
        .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "ada@example.org")))
        .output()?;
    Ok(format!("{output:?}"))
}

#[tokio::test]
async fn each_of_twelve_vectors_runs_by_the_git_of_its_user_and_not_by_ours() -> anyhow::Result<()>
{
    for vector in &VECTORS {
        let name = vector.name;
        let world = World::new()?;
        let fired = lay(&world, vector)?;
        world.write("README.md", "dirty\n")?;
        work_with(&world).await.context(name)?;
        ensure!(!fired.exists(), "{name}: {}", fs::read_to_string(&fired)?);
        let said = fall(&world.user, vector.fires)?;
        ensure!(fired.exists(), "{name} runs nothing by itself: {said}");
    }
    Ok(())
}
