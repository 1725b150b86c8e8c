//! Moves one checkout between commits whose difference is known, and compares it with one that git made anew.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::ensure;
use ropewalk_schemas::CommitId;
use ropewalk_workspace::{CleanCheckout, CleanPool, LocalClone};

use crate::world::{World, picture, write};

/// What a commit does to the one before.
type Mutation = fn(&Path) -> anyhow::Result<()>;

/// Every way in which one tree can become another.
const DEEDS: [(&str, Mutation); 12] = [
    ("a file is written", |root| {
        write(root, "src/main.rs", "two")
    }),
    ("a file comes", |root| {
        write(root, "deep/down/here.rs", "new")
    }),
    ("a directory ends with its last file", |root| {
        Ok(fs::remove_file(root.join("deep/down/here.rs"))?)
    }),
    ("a file becomes a directory", |root| {
        fs::remove_file(root.join("README.md"))?;
        write(root, "README.md/one", "1")?;
        write(root, "README.md/two", "2")
    }),
    ("a directory becomes a file", |root| {
        fs::remove_dir_all(root.join("README.md"))?;
        write(root, "README.md", "again")
    }),
    ("a file can be run", |root| {
        let permissions = fs::Permissions::from_mode(0o755);
        Ok(fs::set_permissions(root.join("src/main.rs"), permissions)?)
    }),
    ("a file becomes a link", |root| {
        fs::remove_file(root.join("README.md"))?;
        Ok(symlink("src", root.join("README.md"))?)
    }),
    ("a link becomes a directory", |root| {
        fs::remove_file(root.join("README.md"))?;
        write(root, "README.md/main.rs", "below a link")
    }),
    ("names that mean something to git", |root| {
        for name in ["*", ":(top)x", "[a]", "\"quoted\"", "a\nb", " ", "-x", "#"] {
            write(root, name, name)?;
        }
        Ok(())
    }),
    ("one such name goes", |root| {
        Ok(fs::remove_file(root.join("*"))?)
    }),
    ("attributes come with what they change", |root| {
        write(root, "early/.gitattributes", "*.txt eol=crlf\n")?;
        write(root, "early/!.txt", "one\ntwo\n")
    }),
    ("a file is renamed", |root| {
        Ok(fs::rename(
            root.join("src/main.rs"),
            root.join("src/moved.rs"),
        )?)
    }),
];

/// Commits the deeds one after the other in the user's repository; the first is the commit before all of them.
fn history(world: &World) -> anyhow::Result<Vec<CommitId>> {
    let mut commits = vec![world.git(&["rev-parse", "HEAD"])?.trim().parse()?];
    for (name, deed) in DEEDS {
        deed(&world.user)?;
        world.git(&["add", "-A"])?;
        world.git(&["commit", "-q", "-m", name])?;
        commits.push(world.git(&["rev-parse", "HEAD"])?.trim().parse()?);
    }
    Ok(commits)
}

/// A file as it lies in a directory.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    name: String,
    content: String,
    target: Option<PathBuf>,
    runs: bool,
}

fn whole(root: &Path) -> anyhow::Result<Vec<FileState>> {
    let mut found = Vec::new();
    for (name, content) in picture(root)? {
        let path = root.join(&name);
        let runs = path.symlink_metadata()?.permissions().mode() & 0o100 != 0;
        found.push(FileState {
            name,
            content,
            target: fs::read_link(path).ok(),
            runs,
        });
    }
    Ok(found)
}

/// Moves the checkout from one commit to the other after it was found out what differs.
async fn step(
    clone: &LocalClone,
    checkout: &mut CleanCheckout,
    [from, to]: [&CommitId; 2],
) -> anyhow::Result<()> {
    checkout.move_to(from).await?;
    clone.changed_files(from.as_str(), to.as_str()).await?;
    checkout.move_to(to).await?;
    ensure!(checkout.changed_files().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_known_step_leaves_what_git_makes_anew() -> anyhow::Result<()> {
    let world = World::new()?;
    world.write("untouched", "always the same file")?;
    world.git(&["add", "-A"])?;
    world.git(&["commit", "-q", "-m", "a file that stays"])?;
    let commits = history(&world)?;
    let clone = world.clone().await?;
    let mut checkout = CleanPool::for_gates(clone.clone(), 2)
        .acquire(&commits[0])
        .await?;
    let untouched = |checkout: &CleanCheckout| -> anyhow::Result<[i64; 2]> {
        let metadata = checkout.root().join("untouched").metadata()?;
        Ok([metadata.ctime(), metadata.ctime_nsec()])
    };
    let first = untouched(&checkout)?;
    for (pair, (name, _)) in commits.windows(2).zip(DEEDS) {
        for [from, to] in [[&pair[0], &pair[1]], [&pair[1], &pair[0]]] {
            step(&clone, &mut checkout, [from, to]).await?;
            let anew = world.directory.path().join("anew");
            fs::create_dir(&anew)?;
            let work_tree = format!("--work-tree={}", anew.display());
            world.git(&[&work_tree, "checkout", "-q", "-f", to.as_str(), "--", "."])?;
            assert_eq!(whole(checkout.root())?, whole(&anew)?, "{name}: {to}");
            fs::remove_dir_all(&anew)?;
            // A step that fails is made good by a whole new tree, which must not hide it.
            assert_eq!(untouched(&checkout)?, first, "{name}: {to}");
        }
    }
    Ok(())
}
