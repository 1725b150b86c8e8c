//! Decides how packages are installed: by command lines of this program, from the manifests that lie beside the files of
//! a task, and by nobody who is not allowed.

use std::collections::BTreeSet;

use ropewalk_config::settings::PackageManager;
use ropewalk_schemas::RepoPath;

/// Where pip puts packages; whoever runs a command beside them names it in `PYTHONPATH`.
const PYTHON_PACKAGES: &str = ".venv/packages";

/// One run of a package manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Install {
    /// Who installs.
    pub manager: PackageManager,
    /// The directory of the manifest, from the root of the checkout; empty for the root.
    pub directory: String,
    /// Whether a lock file beside the manifest fixes every version.
    pub locked: bool,
}

impl Install {
    /// Names it in the evidence.
    pub fn name(&self) -> String {
        let manager = match self.manager {
            PackageManager::Npm => "npm",
            PackageManager::Pip => "pip",
        };
        match self.directory.as_str() {
            "" => format!("install {manager}"),
            directory => format!("install {manager} in `{directory}`"),
        }
    }

    /// Returns the line to run in its directory: no scripts of packages, no question, and no lock file that was not there.
    pub const fn command(&self) -> &'static str {
        match (self.manager, self.locked) {
            (PackageManager::Npm, true) => "npm ci --ignore-scripts --no-audit --no-fund",
            (PackageManager::Npm, false) => {
                "npm install --ignore-scripts --no-audit --no-fund --no-package-lock"
            }
            (PackageManager::Pip, _) => {
                "python3 -m pip install --no-input --disable-pip-version-check --only-binary :all: \
                 --target .venv/packages --requirement requirements.txt"
            }
        }
    }

    /// Returns the place, from the root of the checkout, that Python must be told of to find the packages.
    pub fn python_path(&self) -> Option<String> {
        (self.manager == PackageManager::Pip).then(|| below(&self.directory, PYTHON_PACKAGES))
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

/// Lists the paths that decide what is installed for `files`.
pub fn looked_at(managers: &[PackageManager], files: &[&RepoPath]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for directory in files.iter().flat_map(|file| upward(file)) {
        for manager in managers {
            let names = std::iter::once(manifest(*manager)).chain(locks(*manager).iter().copied());
            paths.extend(names.map(|name| below(directory, name)));
        }
    }
    paths
}

/// Lists the installs for `files`: for each manager that is allowed, the nearest manifest at or above each of them.
pub fn installs(
    managers: &[PackageManager],
    files: &[&RepoPath],
    is_there: impl Fn(&str) -> bool,
) -> Vec<Install> {
    let mut found = Vec::new();
    for manager in managers {
        for file in files {
            let with_manifest = |directory: &&str| is_there(&below(directory, manifest(*manager)));
            let Some(directory) = upward(file).find(with_manifest) else {
                continue;
            };
            let install = Install {
                manager: *manager,
                directory: directory.to_owned(),
                locked: locks(*manager)
                    .iter()
                    .any(|lock| is_there(&below(directory, lock))),
            };
            if !found.contains(&install) {
                found.push(install);
            }
        }
    }
    found
}

/// Lists the directories of a file, the nearest first; the last one is the root.
fn upward(file: &RepoPath) -> impl Iterator<Item = &str> {
    let mut rest = Some(file.as_str());
    std::iter::from_fn(move || {
        let (directory, _) = rest?.rsplit_once('/').unwrap_or_default();
        rest = (!directory.is_empty()).then_some(directory);
        Some(directory)
    })
}

fn below(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
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
        let is_there = |path: &str| {
            assert!(looked_at.contains(path), "{path}");
            there.contains(&path)
        };
        installs(managers, &files, is_there)
            .iter()
            .map(|install| {
                let words = install.command().split(' ').take(4).collect::<Vec<_>>();
                format!("{}: {}", install.name(), words.join(" "))
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
        let ci = "npm ci --ignore-scripts --no-audit";
        let npm = "npm install --ignore-scripts --no-audit";
        let pip = "install pip: python3 -m pip install".to_owned();
        let rows = [
            (&[][..], &["a.js"][..], node, vec![]),
            (&[Pip], &["a.js"], node, vec![]),
            (&[Npm], &["a.js"], &["requirements.txt"], vec![]),
            (&[Npm], &["a.js"], node, vec![format!("install npm: {ci}")]),
            (
                &[Npm],
                &["web/src/a.js", "web/b.js"],
                web,
                vec![format!("install npm in `web`: {npm}")],
            ),
            (
                &[Npm],
                &["web/a.js", "b.js"],
                web,
                vec![
                    format!("install npm in `web`: {npm}"),
                    format!("install npm: {npm}"),
                ],
            ),
            (
                &[Npm, Pip],
                &["web/a.js"],
                both,
                vec![format!("install npm in `web`: {ci}"), pip],
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
        let install = |directory: &str| Install {
            manager: Pip,
            directory: directory.to_owned(),
            locked: false,
        };
        let path = |directory| install(directory).python_path().unwrap();
        assert_eq!(path(""), ".venv/packages");
        assert_eq!(path("tools"), "tools/.venv/packages");
        assert!(install("").command().contains(" --target .venv/packages "));
    }
}
