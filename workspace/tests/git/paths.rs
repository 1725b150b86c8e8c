//! Tries to leave a slot by its paths.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use ropewalk_schemas::RepoPath;
use ropewalk_workspace::path::{Entry, EntryKind};
use ropewalk_workspace::{PathError, SlotFiles};

fn path(text: &str) -> anyhow::Result<RepoPath> {
    Ok(RepoPath::parse(text)?)
}

#[test]
fn files_are_written_read_listed_and_removed() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let files = SlotFiles::open(root.path())?;
    let main = path("src/deep/main.rs")?;
    assert_eq!(files.read_file(&main, 100)?, None);
    assert_eq!(files.list(Some(&path("src")?))?, None);
    files.write_file(&main, b"first")?;
    fs::set_permissions(
        root.path().join("src/deep/main.rs"),
        fs::Permissions::from_mode(0o775),
    )?;
    files.write_file(&main, b"second")?;
    assert_eq!(
        files.read_file(&main, 100)?.as_deref(),
        Some(&b"second"[..])
    );
    assert_eq!(
        fs::metadata(root.path().join("src/deep/main.rs"))?
            .permissions()
            .mode()
            & 0o777,
        0o775
    );
    let entry = Entry {
        name: "main.rs".to_owned(),
        kind: EntryKind::File,
        size_bytes: 6,
    };
    assert_eq!(files.list(Some(&path("src/deep")?))?, Some(vec![entry]));
    assert_eq!(files.kind(&path("src")?)?, Some(EntryKind::Directory));
    assert!(files.remove_file(&main)? && !files.remove_file(&main)?);
    Ok(())
}

#[test]
fn whoever_reads_meanwhile_has_the_whole_file_as_it_was_or_as_it_is() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let files = SlotFiles::open(root.path())?;
    let file = path("deep/long.txt")?;
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    files.write_file(&file, &contents[0])?;
    let writer = std::thread::spawn({
        let (files, file, contents) = (files.clone(), file.clone(), contents.clone());
        move || -> Result<(), PathError> {
            for content in contents.iter().cycle().take(100) {
                files.write_file(&file, content)?;
            }
            Ok(())
        }
    });
    let mut readings = 0;
    while !writer.is_finished() || readings == 0 {
        let found = files.read_file(&file, 1 << 20)?;
        let found = found.ok_or_else(|| anyhow::anyhow!("it is gone"))?;
        assert!(contents.contains(&found), "{} bytes", found.len());
        readings += 1;
    }
    writer
        .join()
        .map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    let left = files.list(Some(&path("deep")?))?.unwrap_or_default();
    assert_eq!(left.len(), 1, "{left:?}");
    Ok(())
}

#[test]
fn a_link_is_followed_to_its_file_as_far_as_it_stays_inside() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let files = SlotFiles::open(root.path())?;
    files.write_file(&path("src/real.rs")?, b"")?;
    let links = [
        ("src/one", "real.rs"),
        ("two", "src/one"),
        ("dir", "./src/../src"),
        ("out", "../real.rs"),
        ("absolute", "/etc/passwd"),
        ("ring", "ring"),
        ("new", "src/not-yet.rs"),
    ];
    for (link, target) in links {
        symlink(target, root.path().join(link))?;
    }
    let inside = ["src/one", "two", "dir/real.rs"];
    for (text, expected) in inside
        .map(|text| (text, Some("src/real.rs")))
        .into_iter()
        .chain([
            ("new", Some("src/not-yet.rs")),
            ("src/real.rs", None),
            ("src/absent.rs", None),
            ("out", None),
            ("absolute", None),
            ("ring", None),
        ])
    {
        let found = files.behind_links(&path(text)?);
        assert_eq!(found.as_ref().map(RepoPath::as_str), expected, "{text}");
    }
    Ok(())
}

#[test]
fn links_are_refused_in_every_part() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("slot");
    fs::create_dir(&root)?;
    fs::write(directory.path().join("secret"), "secret")?;
    symlink(directory.path(), root.join("up"))?;
    symlink("../secret", root.join("leaf"))?;
    symlink("nowhere", root.join("dangling"))?;
    let files = SlotFiles::open(&root)?;
    for text in ["up/secret", "leaf", "dangling", "up/slot/x"] {
        let path = path(text)?;
        assert!(
            matches!(files.read_file(&path, 100), Err(PathError::Link(_))),
            "read {text}"
        );
        assert!(
            matches!(files.write_file(&path, b"x"), Err(PathError::Link(_))),
            "write {text}"
        );
    }
    assert!(matches!(
        files.list(Some(&path("up")?)),
        Err(PathError::Link(_))
    ));
    assert!(matches!(
        files.remove_file(&path("up/secret")?),
        Err(PathError::Link(_))
    ));
    assert_eq!(
        fs::read_to_string(directory.path().join("secret"))?,
        "secret"
    );
    assert!(
        files.remove_file(&path("leaf")?)?,
        "a link itself can be removed"
    );
    Ok(())
}

#[test]
fn a_root_that_is_a_link_is_refused() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    symlink("/", directory.path().join("slot"))?;
    assert!(SlotFiles::open(&directory.path().join("slot")).is_err());
    Ok(())
}

#[test]
fn special_and_endless_files_do_not_hang() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    nix::unistd::mkfifo(&root.path().join("pipe"), Mode::S_IRWXU)?;
    let sparse = fs::File::create(root.path().join("sparse"))?;
    sparse.set_len(1 << 40)?;
    let files = SlotFiles::open(root.path())?;
    assert!(matches!(
        files.read_file(&path("pipe")?, 100),
        Err(PathError::Special(_))
    ));
    assert!(matches!(
        files.write_file(&path("pipe")?, b""),
        Err(PathError::Special(_))
    ));
    assert!(matches!(
        files.read_file(&path("sparse")?, 100),
        Err(PathError::TooLong { .. })
    ));
    assert!(matches!(
        files.read_file(&path("pipe/x")?, 100),
        Err(PathError::NotADirectory(_))
    ));
    Ok(())
}

#[test]
fn a_swapped_directory_never_leads_outside() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("slot");
    let outside = directory.path().join("outside");
    for made in [&root, &outside] {
        fs::create_dir(made)?;
    }
    fs::write(outside.join("file"), "secret")?;
    let files = SlotFiles::open(&root)?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let swapper = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::create_dir(root.join("d")).ok();
                fs::write(root.join("d/file"), "mine").ok();
                fs::remove_dir_all(root.join("d")).ok();
                symlink(&outside, root.join("d")).ok();
                fs::remove_file(root.join("d")).ok();
            }
        });
        // Who opens the whole path at once is led outside sooner or later.
        let began = Instant::now();
        while fs::read(root.join("d/file")).ok().as_deref() != Some(b"secret") {
            assert!(
                began.elapsed() < Duration::from_mins(1),
                "nothing is swapped"
            );
        }
        let target = path("d/file")?;
        for _ in 0..2000 {
            if let Ok(Some(content)) = files.read_file(&target, 100) {
                assert_ne!(content, b"secret");
            }
            files.write_file(&target, b"overwritten").ok();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(swapper.join().is_ok());
        Ok(())
    })?;
    assert_eq!(fs::read_to_string(outside.join("file"))?, "secret");
    assert_eq!(fs::read_dir(&outside)?.count(), 1);
    Ok(())
}
