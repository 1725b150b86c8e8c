//! `export` and `import`: a project in a file, and elsewhere again.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::phone::{LinkCode, Phone};
use tar::{Archive, Builder, EntryType, Header};

use crate::approvals::specified;
use crate::world::World;

const SECRET: &str = "the-token-that-lets-ada-in";

/// A project with a specification, a phone that is about to be linked and a token in its configuration.
fn project() -> World {
    let world = World::scripted();
    let settings = world.repository().join("ropewalk.toml");
    let text = std::fs::read_to_string(settings).unwrap();
    let hash = ContentHash::of(SECRET.as_bytes());
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    let user = user.unwrap().unwrap().name;
    let people = format!(
        "[people.ada]\nuser = \"{user}\"\ntoken_sha256 = \"{hash}\"\nrights = [\"approve\", \"stop\", \"land\", \"spend\"]\n"
    );
    world.write("ropewalk.toml", &format!("{text}\n{people}"));
    specified(&world);
    world.commit(|changes| {
        changes.insert(&Phone {
            person: UserSlug::parse("ada").unwrap(),
            code: Some(LinkCode {
                hash: ContentHash::of(b"a code"),
                until: chrono::DateTime::UNIX_EPOCH,
            }),
            ..Phone::of(UserSlug::parse("ada").unwrap())
        });
    });
    world
}

/// Counts the parts of programs that a project knows of.
fn parts_that_run(world: &World, place: &str) -> usize {
    let parts = world.json(&format!("{place} agent list --all"));
    parts.as_array().unwrap().len()
}

/// Reads every entry of an archive.
fn entries(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = std::fs::File::open(path).unwrap();
    let mut archive = Archive::new(GzDecoder::new(file));
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        found.insert(entry.path().unwrap().display().to_string(), content);
    }
    found
}

/// A name, a kind and a content.
type ArchiveEntry<'a> = (&'a str, EntryType, &'a [u8]);

/// Writes an archive of these entries, whatever their names are.
fn archive(path: &Path, entries: &[ArchiveEntry<'_>]) {
    let file = std::fs::File::create(path).unwrap();
    let mut archive = Builder::new(GzEncoder::new(file, Compression::fast()));
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        if *kind == EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

/// Says with `verb` what would be imported, which makes nothing.
fn only_looks(world: &World, verb: &str) {
    let preview = world.json(verb);
    assert_eq!(
        (&preview["project"], &preview["new_repository"]),
        (&"walks".into(), &true.into())
    );
    assert!(!world.root().join("elsewhere").exists());
}

fn what_is_there_already_stays_as_it_is(world: &World) {
    let said = world.refused("import ../walks.ropewalk ../elsewhere", 1);
    assert!(said.contains("has its state in"), "{said}");
    let settings = || std::fs::read(world.root().join("elsewhere/ropewalk.toml")).unwrap();
    let before = settings();
    let said = world.refused("import ../walks.ropewalk ../elsewhere --name other", 1);
    assert!(said.contains("`walks` has its state in"), "{said}");
    assert!(
        said.contains("into a folder that is not there yet"),
        "{said}"
    );
    assert_eq!(settings(), before);
}

#[test]
fn a_project_goes_into_a_file_and_arrives_elsewhere_stopped_and_without_what_lets_anybody_in() {
    let world = project();
    let said = world.run("export ../walks.ropewalk");
    assert!(said.contains("people.ada.token_sha256"), "{said}");
    let packed = entries(&world.root().join("walks.ropewalk"));
    let secrets = [
        ContentHash::of(SECRET.as_bytes()).to_string(),
        ContentHash::of(b"a code").to_string(),
    ];
    for (name, content) in &packed {
        for secret in &secrets {
            let told = contains(content, secret.as_bytes());
            assert!(!told, "`{name}` holds what lets somebody in");
        }
    }
    let shown = [
        "idea list",
        "idea show walks",
        "spec list",
        "event list --limit 500",
    ];
    let before = shown.map(|line| world.json(line));
    only_looks(&world, "import ../walks.ropewalk ../elsewhere --dry-run");
    world.run("import ../walks.ropewalk ../elsewhere");
    let there = "-C ../elsewhere";
    let untrusted = world.refused(&format!("{there} idea list"), 1);
    assert!(untrusted.contains("ropewalk trust"), "{untrusted}");
    let hash = world
        .ropewalk(["-C", "../elsewhere", "trust"])
        .output()
        .unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let hash = hash.lines().find_map(|line| line.strip_prefix("hash "));
    world.run(&format!("{there} trust --hash {}", hash.unwrap()));
    let after = shown.map(|line| world.json(&format!("{there} {line}")));
    let folder = |value: &serde_json::Value| value["folder"].as_str().map(PathBuf::from);
    assert_eq!(after[0], before[0]);
    let parts = ["", there].map(|place| parts_that_run(&world, place));
    assert!(parts[0] > 0 && parts[1] == 0, "{parts:?}");
    assert_eq!(after[1]["state"], before[1]["state"]);
    let documents = [folder(&before[1]).unwrap(), folder(&after[1]).unwrap()];
    let [old, new] = documents.map(|place| std::fs::read(place.join("planning/brief.md")).unwrap());
    assert_eq!(new, old);
    assert_eq!(after[2], before[2]);
    // All that happened, and that it was stopped.
    let (old, new) = (before[3].as_array().unwrap(), after[3].as_array().unwrap());
    assert_eq!(new.len(), old.len() + 1);
    let types: Vec<&str> = new
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert!(types.contains(&"halt.begun"), "{types:?}");
    let note = world
        .ropewalk(["-C", "../elsewhere", "idea", "list"])
        .output()
        .unwrap();
    let note = String::from_utf8(note.stderr).unwrap();
    assert!(note.contains("imported from an archive"), "{note}");
    let commit = world.git(&["rev-parse", "main"]);
    assert_eq!(
        world.git(&["-C", "../elsewhere", "rev-parse", "HEAD"]),
        commit
    );
    let state = world.home().join(".local/state/ropewalk/walks");
    let people = std::fs::read_to_string(world.root().join("elsewhere/ropewalk.toml")).unwrap();
    assert!(people.contains("[people.ada]") && !people.contains("token_sha256"));
    assert!(state.join("ropewalk.db").is_file() && !state.join("repository.bundle").exists());
    what_is_there_already_stays_as_it_is(&world);
    let said = world.refused("export ../walks.ropewalk", 1);
    assert!(said.contains("there already"), "{said}");
    let said = world.refused("export /nope/x", 1);
    assert!(said.contains("cannot use `/nope`: No such"), "{said}");
    world.run("import ../walks.ropewalk ../third --name walks-2");
    assert!(
        world
            .home()
            .join(".local/state/ropewalk/walks-2/ropewalk.db")
            .is_file()
    );
}

/// Returns what a packed file holds, unless it is broken.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let read = GzDecoder::new(packed).read_to_end(&mut content);
    read.ok().map(|_| content)
}

/// Changes a bit at `from` or soon after it. In long runs of the same bytes some bits may be either, and all that is
/// held stays the same: such a one is passed by.
fn changed(whole: &[u8], from: usize) -> Vec<u8> {
    let content = unpacked(whole);
    let flipped = (from..whole.len()).map(|at| {
        let mut changed = whole.to_vec();
        changed[at] ^= 0x10;
        changed
    });
    let mut flipped = flipped.filter(|changed| unpacked(changed) != content);
    flipped.next().unwrap()
}

/// Lists the files of the world with their sizes.
fn files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = world.files();
    files.retain(|path, _| path.is_file());
    files
}

#[test]
fn of_a_torn_changed_newer_or_forged_archive_nothing_is_imported() {
    let world = project();
    world.run("export ../walks.ropewalk");
    let whole = std::fs::read(world.root().join("walks.ropewalk")).unwrap();
    let manifest = entries(&world.root().join("walks.ropewalk"))["manifest.json"].clone();
    let newer = String::from_utf8(manifest.clone()).unwrap();
    let newer = newer.replace("\"form\": 1", "\"form\": 2");
    let bad = world.root().join("bad.ropewalk");
    let refused = |wanted: &str| {
        let before = files(&world);
        let said = world.refused("import ../bad.ropewalk ../elsewhere", 1);
        assert!(said.contains(wanted), "not `{wanted}`: {said}");
        assert_eq!(files(&world), before, "{said}");
        assert!(!world.root().join("elsewhere").exists(), "{said}");
    };
    for part in 0..8 {
        std::fs::write(&bad, &whole[..whole.len() * part / 8]).unwrap();
        refused(match part {
            0 => "bad.ropewalk",
            _ => "ends too early",
        });
    }
    std::fs::write(&bad, &whole[..whole.len() - 1]).unwrap();
    refused("ends too early");
    for part in [1, 2, 3] {
        std::fs::write(&bad, changed(&whole, whole.len() * part / 4)).unwrap();
        refused("bad.ropewalk");
    }
    // The checksum itself.
    let mut sum = whole.clone();
    sum[whole.len() - 6] ^= 0x10;
    std::fs::write(&bad, sum).unwrap();
    refused("is damaged");
    let mut file = std::fs::File::create(&bad).unwrap();
    file.write_all(b"a letter, and no archive").unwrap();
    refused("no archive of a project");
    let plain = EntryType::Regular;
    let first = ("manifest.json", plain, manifest.as_slice());
    let cases: [(&[ArchiveEntry<'_>], &str); 7] = [
        (
            &[("manifest.json", plain, newer.as_bytes())],
            "update this one",
        ),
        (
            &[first, ("state/users/../../../x", plain, b"x")],
            "leads out of it",
        ),
        (&[first, ("/tmp/x", plain, b"x")], "leads out of it"),
        (
            &[first, ("state/users/x", EntryType::Symlink, b"")],
            "no plain file",
        ),
        (
            &[first, ("state/instance.lock", plain, b"x")],
            "which no archive has",
        ),
        (
            &[first, ("end", plain, b""), ("ropewalk.toml", plain, b"")],
            "after its end",
        ),
        (
            &[("ropewalk.toml", plain, b""), first],
            "no archive of a project",
        ),
    ];
    for (entries, wanted) in cases {
        archive(&bad, entries);
        refused(wanted);
    }
    let much = vec![b'x'; 64 * 1024 * 1024];
    archive(
        &bad,
        &[first, ("state/users/x", plain, &much), ("end", plain, b"")],
    );
    refused("more than it says");
}

#[test]
fn an_archive_goes_into_no_other_repository_and_no_folder_without_one() {
    let world = project();
    world.run("export ../walks.ropewalk");
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let said = world.refused("import ../walks.ropewalk ../other", 1);
    assert!(said.contains("not a git repository"), "{said}");
    world.git(&["init", "--quiet", "../other"]);
    world.git(&[
        "-C",
        "../other",
        "commit",
        "--quiet",
        "--allow-empty",
        "--message=other",
    ]);
    let said = world.refused("import ../walks.ropewalk ../other", 1);
    assert!(said.contains("another repository"), "{said}");
    assert!(!other.join("ropewalk.toml").exists());
    assert!(!world.home().join(".local/state/ropewalk/walks").exists());
    // A clone takes it.
    world.git(&["clone", "--quiet", ".", "../clone"]);
    world.run("import ../walks.ropewalk ../clone");
    let kept = std::fs::read_to_string(world.root().join("clone/ropewalk.toml")).unwrap();
    assert!(
        kept.contains("name = \"walks\"") && !kept.contains("../state"),
        "{kept}"
    );
}
