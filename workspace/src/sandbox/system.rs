//! Finds what every confined command may read on this machine: the system, and where its tools are at home.

mod private_files;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, FileType, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::interpreter;
use super::plan::{Mount, is_seen};
use crate::Environment;
use private_files::OWN;

pub use private_files::SearchGap;

/// Where a system keeps its programs and what they read.
const SYSTEM: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/home/linuxbrew/.linuxbrew",
];
/// What tools ask the kernel about the machine.
const MACHINE: &str = "/sys/devices/system";
/// Below a home, where tools are; never what they know of their user.
const TOOLS: [&str; 41] = [
    ".rustup",
    ".pyenv",
    ".nvm",
    ".fnm",
    ".n",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    ".npm-global",
    ".yarn/bin",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    "go/bin",
    "go/pkg",
    ".sdkman/candidates",
    ".asdf",
    ".rbenv",
    ".rvm",
    ".gem/ruby",
    ".jenv",
    ".ghcup",
    ".cabal/bin",
    ".stack/programs",
    ".opam",
    ".elan",
    ".juliaup",
    ".dotnet",
    ".swiftly",
    ".nix-profile",
    ".linuxbrew",
    ".m2/repository",
    "miniconda3",
    "miniforge3",
    "anaconda3",
    ".ghc",
];
/// What cargo keeps beside its credentials.
const CARGO: [&str; 4] = ["bin", "registry", "git", "env"];
/// How cargo is set up, which may hold the token of a registry.
const CARGO_SETTINGS: [&str; 2] = ["config", "config.toml"];
/// What a setting that holds a secret is called.
const TOKEN: &str = "token";
/// Where a manager of versions keeps the programs that stand for those of one.
const SHIMS: &str = "shims";
/// Where it keeps the versions themselves; one that has neither is none.
const VERSIONS: [&str; 2] = ["versions", "installs"];
/// What else of a manager its programs need. What somebody else laid beside it is not shown.
const MANAGER: [&str; 8] = [
    "bin", "lib", "libexec", "plugins", "pyenv.d", "rbenv.d", "share", "version",
];
/// What the programs of a version need beside them.
const BESIDE: [&str; 3] = ["lib", "libexec", "share"];
/// How deep it is looked for what others may not read.
const DEPTH: usize = 3;

/// What every command sees, and what could not be looked at for that.
#[derive(Debug)]
pub(super) struct System {
    pub(super) mounts: Vec<Mount>,
    pub(super) unsearched: Option<SearchGap>,
}

impl System {
    /// Finds it as this machine is now; `hidden` is not seen, but for tools that lie in it.
    pub(super) fn find(environment: &Environment, hidden: &[PathBuf]) -> Self {
        let (private, unsearched) = private_files::hidden(OWN.map(Path::new));
        Self {
            mounts: mounts(environment, hidden, private),
            unsearched,
        }
    }
}

/// Returns what every command sees: without `private` files, and without what is `hidden`, but for tools that lie in it.
fn mounts(environment: &Environment, hidden: &[PathBuf], private: Vec<Mount>) -> Vec<Mount> {
    let path = environment.get("PATH").map(OsString::as_os_str);
    let path = path.unwrap_or_default();
    let mut found: Vec<Mount> = SYSTEM.iter().filter_map(as_is).collect();
    found.extend(settings());
    found.extend(private);
    for place in hidden.iter().filter(|place| place.is_dir()) {
        // Now, so that what is on the `PATH` there is shown all the same.
        if is_seen(&found, place) {
            found.push(Mount::Closed(place.clone()));
        }
    }
    found.extend(there(MACHINE).map(Mount::Read));
    found.push(Mount::Scratch(super::OWN_TMP.into()));
    let variable = |name| environment.get(name).map(PathBuf::from);
    let home = variable("HOME").and_then(|home| home.canonicalize().ok());
    let home = home.filter(|home| home.parent().is_some());
    let mut tools = Vec::new();
    if let Some(home) = &home {
        found.push(Mount::Scratch(home.clone()));
        tools.extend(TOOLS.iter().map(|tool| home.join(tool)));
        tools.extend(of_cargo(&home.join(".cargo")));
    }
    if let Some(cargo) = variable("CARGO_HOME") {
        tools.extend(of_cargo(&cargo));
    }
    tools.extend(variable("RUSTUP_HOME"));
    for programs in std::env::split_paths(path) {
        if let Some(around) = interpreter::environment_around(&programs) {
            tools.extend(interpreter::needed_by(&around, home.as_deref()));
            tools.push(around);
        }
        tools.extend(manager_around(&programs));
        tools.extend(version_around(&programs));
        tools.push(programs);
    }
    let mut seen = BTreeSet::new();
    for tool in tools.iter().filter(|tool| tool.is_absolute()) {
        // Both where it is named and where it lies: a home may be a link.
        let real = tool
            .canonicalize()
            .ok()
            .filter(|real| seen.insert(real.clone()));
        let tool = real.filter(|real| !is_seen(&found, real) && !holds_home(real, home.as_deref()));
        found.extend(tool.map(Mount::Read));
    }
    found
}

/// Lists what cargo needs of its home; settings that may hold a token are not shown, nor those that cannot be read.
fn of_cargo(home: &Path) -> Vec<PathBuf> {
    let holds_no_token = |settings: &PathBuf| {
        let text = fs::read_to_string(settings);
        text.is_ok_and(|text| !text.to_ascii_lowercase().contains(TOKEN))
    };
    let settings = CARGO_SETTINGS.iter().map(|name| home.join(name));
    let parts = CARGO.iter().map(|part| home.join(part));
    parts.chain(settings.filter(holds_no_token)).collect()
}

/// Lists what belongs to the manager of versions whose stand-ins `programs` holds; nothing where it is none.
fn manager_around(programs: &Path) -> Vec<PathBuf> {
    let root = programs
        .parent()
        .filter(|_| programs.ends_with(SHIMS) && programs.is_dir());
    let root = root.filter(|root| VERSIONS.iter().any(|part| root.join(part).is_dir()));
    let parts = VERSIONS.iter().chain(&MANAGER);
    root.map(|root| parts.map(|part| root.join(part)).collect())
        .unwrap_or_default()
}

/// Lists what lies beside `programs` where a manager of versions keeps those of one: many are links to there.
fn version_around(programs: &Path) -> Vec<PathBuf> {
    let root = programs.parent().filter(|_| programs.ends_with("bin"));
    let is_managed = |root: &&Path| {
        let mut above = root.ancestors().skip(1);
        above.any(|above| VERSIONS.iter().any(|part| above.ends_with(part)))
    };
    root.filter(is_managed)
        .map(|root| BESIDE.iter().map(|part| root.join(part)).collect())
        .unwrap_or_default()
}

/// Says that with `place` a whole home would be shown, or all there is.
fn holds_home(place: &Path, home: Option<&Path>) -> bool {
    place.parent().is_none() || home.is_some_and(|home| home.starts_with(place))
}

fn there(place: impl AsRef<Path>) -> Option<PathBuf> {
    place.as_ref().canonicalize().ok()
}

/// Shows a directory of the system, or the link that stands for it.
fn as_is(place: &&str) -> Option<Mount> {
    let at = PathBuf::from(place);
    match fs::read_link(&at) {
        Ok(to) => Some(Mount::Link { at, to }),
        Err(_) => at.is_dir().then_some(Mount::Read(at)),
    }
}

/// Shows `/etc` but for what others may not read there: whoever runs this may be root.
fn settings() -> Vec<Mount> {
    let root = PathBuf::from("/etc");
    if !root.is_dir() {
        return Vec::new();
    }
    let mut found = vec![Mount::Read(root.clone())];
    closed_below(&root, DEPTH, &mut found);
    found
}

/// Says that what `mount` is to cover is still there.
pub(super) fn lasts(mount: &Mount) -> bool {
    let is = |place: &Path, is_kind: fn(&FileType) -> bool| {
        let found = fs::symlink_metadata(place);
        found.is_ok_and(|found| is_kind(&found.file_type()))
    };
    match mount {
        Mount::Hide(place) => is(place, FileType::is_file),
        Mount::Closed(place) => is(place, FileType::is_dir),
        _ => true,
    }
}

fn closed_below(directory: &Path, depth: usize, found: &mut Vec<Mount>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // Links are not followed: where they lead is shown or hidden by itself.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let place = entry.path();
        match (metadata.is_dir(), is_open(&metadata)) {
            (true, true) if depth > 1 => closed_below(&place, depth - 1, found),
            (true, false) => found.push(Mount::Closed(place)),
            (false, false) if metadata.is_file() => found.push(Mount::Hide(place)),
            _ => {}
        }
    }
}

/// Says that others than owner and group may read it.
fn is_open(metadata: &Metadata) -> bool {
    let wanted = if metadata.is_dir() { 0o005 } else { 0o004 };
    metadata.permissions().mode() & wanted == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::plan;

    #[test]
    fn tools_are_shown_and_what_their_user_keeps_is_not() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().canonicalize().unwrap().join("ada");
        for directory in [".cargo/bin", ".cargo/registry", ".rustup", ".ssh", "tools"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        fs::write(home.join(".cargo/credentials.toml"), "token").unwrap();
        fs::write(
            home.join(".cargo/config.toml"),
            "[registries.own]\ntoken = \"x\"",
        )
        .unwrap();
        fs::write(home.join(".cargo/config"), "[build]\njobs = 2").unwrap();
        fs::create_dir_all(home.join(".local/share/uv/credentials")).unwrap();
        fs::create_dir_all(home.join(".local/share/uv/python")).unwrap();
        let path = [
            home.join(".cargo/bin"),
            home.join("tools"),
            home.clone(),
            "/".into(),
        ];
        let environment = Environment::from_pairs([
            ("HOME", home.clone().into_os_string()),
            ("PATH", std::env::join_paths(path).unwrap()),
        ]);
        let found = System::find(&environment, &[]).mounts;
        let shown: Vec<_> = found
            .iter()
            .filter(|mount| mount.place().starts_with(&home))
            .collect();
        let read = |place: &str| Mount::Read(home.join(place));
        assert_eq!(
            shown,
            [
                &Mount::Scratch(home.clone()),
                &read(".rustup"),
                &read(".local/share/uv/python"),
                &read(".cargo/bin"),
                &read(".cargo/registry"),
                &read(".cargo/config"),
                &read("tools"),
            ]
        );
        assert!(found.iter().all(|mount| mount.place() != Path::new("/")));
    }

    #[test]
    fn a_manager_of_versions_is_shown_wherever_it_lives_and_nothing_else_that_lies_there() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (home, own) = (base.join("ada"), base.join("pyenv"));
        for root in [&home, &own] {
            for part in ["shims", "bin", "libexec", "versions/3.13/bin", ".ssh"] {
                fs::create_dir_all(root.join(part)).unwrap();
            }
            fs::write(root.join("version"), "3.13").unwrap();
            fs::write(root.join("credentials"), "token").unwrap();
        }
        // No manager: there are no versions.
        let other = base.join("other/shims");
        fs::create_dir_all(other.with_file_name("bin")).unwrap();
        fs::create_dir_all(&other).unwrap();
        let path = [own.join("shims"), other.clone()];
        let environment = Environment::from_pairs([
            ("HOME", home.clone().into_os_string()),
            ("PATH", std::env::join_paths(path).unwrap()),
        ]);
        let shown = |root: &Path| -> BTreeSet<PathBuf> {
            let found = System::find(&environment, &[]).mounts;
            let read = found.into_iter().filter_map(|mount| match mount {
                Mount::Read(place) => Some(place),
                _ => None,
            });
            read.filter(|place| place.starts_with(root)).collect()
        };
        let parts = |root: &Path, parts: &[&str]| -> BTreeSet<PathBuf> {
            parts.iter().map(|part| root.join(part)).collect()
        };
        let managed = ["bin", "libexec", "shims", "version", "versions"];
        assert_eq!(shown(&own), parts(&own, &managed));
        assert_eq!(shown(&base.join("other")), BTreeSet::from([other]));
        assert_eq!(shown(&home), BTreeSet::new());
    }

    #[test]
    fn beside_the_programs_of_a_version_lies_what_they_need_and_elsewhere_nothing_is_looked_for() {
        for (programs, root) in [
            (
                "/srv/nvm/versions/node/v20/bin",
                Some("/srv/nvm/versions/node/v20"),
            ),
            (
                "/srv/asdf/installs/ruby/3/bin",
                Some("/srv/asdf/installs/ruby/3"),
            ),
            ("/srv/versions/bin", None),
            ("/srv/versions/3/shims", None),
            ("/srv/ada/bin", None),
        ] {
            let beside = |root: &str| BESIDE.map(|part| Path::new(root).join(part)).to_vec();
            let expected = root.map(beside).unwrap_or_default();
            assert_eq!(version_around(Path::new(programs)), expected, "{programs}");
        }
    }

    #[test]
    fn however_much_others_may_not_read_among_settings_what_lies_beside_it_is_shown() {
        let base = tempfile::tempdir().unwrap();
        let place = |name: &str| base.path().join(name);
        for name in ["ssl/own", "ssl/certs", "ssl"] {
            fs::create_dir_all(place(name)).unwrap();
            fs::set_permissions(place(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let keys = (0..20).map(|number| (format!("ssl/own/{number}"), 0o600));
        for (name, mode) in keys.chain([("ssl/certs/ca.pem".to_owned(), 0o644)]) {
            fs::write(place(&name), "").unwrap();
            fs::set_permissions(place(&name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut found = Vec::new();
        closed_below(base.path(), DEPTH, &mut found);
        assert_eq!(found.len(), 20);
        let is_single = |mount: &Mount| matches!(mount, Mount::Hide(_));
        assert!(found.iter().all(is_single), "{found:?}");
    }

    #[test]
    fn a_hidden_place_is_closed_but_for_what_the_path_names_in_it() {
        let environment = Environment::from_pairs([("PATH", "/usr/bin")]);
        let found = System::find(&environment, &["/usr".into()]).mounts;
        let top = |place: &str| plan::top(&found, Path::new(place)).cloned();
        assert_eq!(top("/usr/share/x"), Some(Mount::Closed("/usr".into())));
        assert_eq!(top("/usr/bin/x"), Some(Mount::Read("/usr/bin".into())));
    }

    #[test]
    fn what_others_may_not_read_is_hidden() {
        let base = tempfile::tempdir().unwrap();
        let place = |name: &str| base.path().join(name);
        fs::create_dir_all(place("ssl/private")).unwrap();
        fs::write(place("shadow"), "").unwrap();
        fs::write(place("passwd"), "").unwrap();
        for (name, mode) in [
            ("ssl", 0o755),
            ("ssl/private", 0o710),
            ("shadow", 0o640),
            ("passwd", 0o644),
        ] {
            fs::set_permissions(place(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut found = Vec::new();
        closed_below(base.path(), DEPTH, &mut found);
        found.sort_by(|one, other| one.place().cmp(other.place()));
        assert_eq!(
            found,
            [
                Mount::Hide(place("shadow")),
                Mount::Closed(place("ssl/private")),
            ]
        );
    }
}
