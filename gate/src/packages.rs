//! Decides what makes a checkout ready: the line of the project's file, and packages, which are installed by command lines
//! of this program, from the manifests that lie beside the files of a task, and by nobody who is not allowed.

mod cache;

use std::collections::BTreeSet;

use ropewalk_config::settings::PackageManager;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::repo_path::below;

/// Where pip puts packages; whoever runs a command beside them names it in `PYTHONPATH`.
const PYTHON_PACKAGES: &str = ".venv/packages";

/// One command that makes a checkout ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Install {
    /// The line of the project's file, at the root.
    Setup(String),
    /// A run of a package manager.
    Packages {
        /// Who installs.
        manager: PackageManager,
        /// The directory of the manifest, from the root of the checkout; empty for the root.
        directory: String,
        /// Whether a lock file beside the manifest fixes every version.
        locked: bool,
        /// Whether it shares what earlier installs of the project fetched.
        shared: bool,
    },
}

impl Install {
    /// Names it in the evidence.
    pub fn name(&self) -> String {
        let Self::Packages {
            manager, directory, ..
        } = self
        else {
            return "setup".to_owned();
        };
        let manager = manager.as_str();
        match directory.as_str() {
            "" => format!("install {manager}"),
            directory => format!("install {manager} in `{directory}`"),
        }
    }

    /// Says whether it installs packages, and reaches the hosts that they come from.
    pub const fn is_of_packages(&self) -> bool {
        matches!(self, Self::Packages { .. })
    }

    /// Returns the directory that it runs in, from the root of the checkout; empty for the root.
    pub fn directory(&self) -> &str {
        match self {
            Self::Setup(_) => "",
            Self::Packages { directory, .. } => directory,
        }
    }

    /// Returns the line to run in its directory; a package manager runs no scripts of packages, asks nothing, and leaves no
    /// lock file that was not there.
    pub fn command(&self) -> &str {
        let (manager, locked) = match self {
            Self::Setup(line) => return line,
            Self::Packages {
                manager, locked, ..
            } => (*manager, *locked),
        };
        match (manager, locked) {
            (PackageManager::Npm, true) => "npm ci --ignore-scripts --no-audit --no-fund",
            (PackageManager::Npm, false) => {
                "npm install --ignore-scripts --no-audit --no-fund --no-package-lock"
            }
            (PackageManager::Pip, _) => {
                // Isolated, for else it would run a `pip.py` that lies beside the manifest.
                "python3 -I -m pip install --no-input --disable-pip-version-check --only-binary :all: \
                 --target .venv/packages --requirement requirements.txt"
            }
        }
    }

    /// Returns the variable that names the cache of its package manager, and the name of that cache, where it shares one.
    pub const fn cache(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Packages {
                manager,
                shared: true,
                ..
            } => Some(match manager {
                PackageManager::Npm => ("npm_config_cache", "npm"),
                PackageManager::Pip => ("PIP_CACHE_DIR", "pip"),
            }),
            _ => None,
        }
    }

    /// Returns the place, from the root of the checkout, that Python must be told of to find the packages.
    pub fn python_path(&self) -> Option<String> {
        match self {
            Self::Packages {
                manager: PackageManager::Pip,
                directory,
                ..
            } => Some(below(directory, PYTHON_PACKAGES)),
            _ => None,
        }
    }
}

const fn manifest(manager: PackageManager) -> &'static str {
    match manager {
        PackageManager::Npm => "package.json",
        PackageManager::Pip => "requirements.txt",
    }
}

const fn locks(manager: PackageManager) -> &'static [&'static str] {
    match manager {
        PackageManager::Npm => &["package-lock.json", "npm-shrinkwrap.json"],
        PackageManager::Pip => &[],
    }
}

/// The settings of a package manager that a repository may hold.
const fn settings(manager: PackageManager) -> Option<&'static str> {
    match manager {
        PackageManager::Npm => Some(".npmrc"),
        PackageManager::Pip => None,
    }
}

/// Lists the paths that decide what is installed for `files`, and how.
pub fn looked_at(managers: &[PackageManager], files: &[&RepoPath]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for directory in files.iter().flat_map(|file| file.directories()) {
        for manager in managers {
            let names = std::iter::once(manifest(*manager)).chain(locks(*manager).iter().copied());
            let names = names.chain(settings(*manager));
            paths.extend(names.map(|name| below(directory, name)));
        }
    }
    paths
}

/// Lists the installs for `files`: for each manager that is allowed, the nearest manifest at or above each of them; `read`
/// returns what stands at a path.
pub fn installs<'a>(
    managers: &[PackageManager],
    files: &[&RepoPath],
    read: impl Fn(&str) -> Option<&'a [u8]>,
) -> Vec<Install> {
    let mut found = Vec::new();
    for manager in managers {
        for file in files {
            let mut around = file.directories();
            let of_directory = |directory: &str| read(&below(directory, manifest(*manager)));
            let nearest = around.find_map(|directory| Some((directory, of_directory(directory)?)));
            let Some((directory, manifest)) = nearest else {
                continue;
            };
            let names = locks(*manager).iter();
            let lock = names
                .map(|name| below(directory, name))
                .find_map(|path| read(&path));
            let is_set = |directory: &str| {
                let name = settings(*manager);
                name.is_some_and(|name| read(&below(directory, name)).is_some())
            };
            let install = Install::Packages {
                manager: *manager,
                directory: directory.to_owned(),
                locked: lock.is_some(),
                shared: is_shared(*manager, manifest, lock)
                    && !is_set(directory)
                    && !around.any(is_set),
            };
            if !found.contains(&install) {
                found.push(install);
            }
        }
    }
    found
}

/// Says whether an install runs nothing that the repository holds, as far as manifest and lock file tell.
fn is_shared(manager: PackageManager, manifest: &[u8], lock: Option<&[u8]>) -> bool {
    match (manager, lock) {
        (PackageManager::Npm, Some(lock)) => cache::is_fixed_by(lock),
        (PackageManager::Npm, None) => cache::asks_registries(manifest),
        (PackageManager::Pip, _) => cache::names_packages(manifest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PackageManager::{Npm, Pip};

    fn told(managers: &[PackageManager], files: &[&str], there: &[&str]) -> Vec<String> {
        let files: Vec<RepoPath> = files
            .iter()
            .map(|file| RepoPath::parse(file).unwrap())
            .collect();
        let files: Vec<&RepoPath> = files.iter().collect();
        let looked_at = looked_at(managers, &files);
        let read = |path: &str| -> Option<&[u8]> {
            assert!(looked_at.contains(path), "{path}");
            let is_there = there.contains(&path);
            is_there.then_some(if path.contains("lock") || path.contains("shrinkwrap") {
                br#"{ "packages": {} }"#
            } else {
                b"{}"
            })
        };
        installs(managers, &files, read)
            .iter()
            .map(|install| {
                let words = install.command().split(' ').take(4).collect::<Vec<_>>();
                let shares = if install.cache().is_some() {
                    ", shares"
                } else {
                    ""
                };
                format!("{}: {}{shares}", install.name(), words.join(" "))
            })
            .collect()
    }

    #[test]
    fn only_who_is_allowed_installs_and_only_from_the_nearest_manifest() {
        let node = &["package.json", "package-lock.json"][..];
        let web = &["package.json", "web/package.json"][..];
        let both = &[
            "web/package.json",
            "web/npm-shrinkwrap.json",
            "requirements.txt",
        ][..];
        let set = &["web/package.json", ".npmrc"][..];
        let beside = &["package.json", "web/.npmrc"][..];
        let ci = "npm ci --ignore-scripts --no-audit";
        let npm = "npm install --ignore-scripts --no-audit";
        // `{}` names no package.
        let pip = "install pip: python3 -I -m pip".to_owned();
        let rows = [
            (&[][..], &["a.js"][..], node, vec![]),
            (&[Pip], &["a.js"], node, vec![]),
            (&[Npm], &["a.js"], &["requirements.txt"], vec![]),
            (
                &[Npm],
                &["a.js"],
                node,
                vec![format!("install npm: {ci}, shares")],
            ),
            (
                &[Npm],
                &["web/src/a.js", "web/b.js"],
                web,
                vec![format!("install npm in `web`: {npm}, shares")],
            ),
            (
                &[Npm],
                &["web/a.js", "b.js"],
                web,
                vec![
                    format!("install npm in `web`: {npm}, shares"),
                    format!("install npm: {npm}, shares"),
                ],
            ),
            (
                &[Npm],
                &["web/a.js"],
                set,
                vec![format!("install npm in `web`: {npm}")],
            ),
            (
                &[Npm],
                &["web/a.js"],
                beside,
                vec![format!("install npm: {npm}, shares")],
            ),
            (
                &[Npm, Pip],
                &["web/a.js"],
                both,
                vec![format!("install npm in `web`: {ci}, shares"), pip],
            ),
        ];
        for (managers, files, there, expected) in rows {
            assert_eq!(
                told(managers, files, there),
                expected,
                "{managers:?} {files:?}"
            );
        }
    }

    #[test]
    fn packages_of_python_are_named_where_they_lie() {
        let install = |directory: &str| Install::Packages {
            manager: Pip,
            directory: directory.to_owned(),
            locked: false,
            shared: true,
        };
        let path = |directory| install(directory).python_path().unwrap();
        assert_eq!(path(""), ".venv/packages");
        assert_eq!(path("tools"), "tools/.venv/packages");
        assert!(install("").command().contains(" --target .venv/packages "));
    }
}
