//! Sorts the files of a candidate: what it may change, what it may not, and what does not count.

use ropewalk_schemas::RepoPath;
use ropewalk_workspace::{ChangeKind, ChangedFile};

/// Lock files with the manifest that they follow.
const LOCK_FILES: &[(&str, &str)] = &[
    ("Cargo.lock", "Cargo.toml"),
    ("package-lock.json", "package.json"),
    ("npm-shrinkwrap.json", "package.json"),
    ("yarn.lock", "package.json"),
    ("pnpm-lock.yaml", "package.json"),
    ("bun.lock", "package.json"),
    ("poetry.lock", "pyproject.toml"),
    ("uv.lock", "pyproject.toml"),
    ("pdm.lock", "pyproject.toml"),
    ("Pipfile.lock", "Pipfile"),
    ("go.sum", "go.mod"),
    ("composer.lock", "composer.json"),
    ("Gemfile.lock", "Gemfile"),
];

/// Directories that tools fill, where a project forgot to ignore them.
const PRODUCTS: &[&str] = &[
    "node_modules",
    "target",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".venv",
];

/// The changed files of a candidate, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// May be changed.
    pub inside: Vec<ChangedFile>,
    /// May not be changed.
    pub outside: Vec<ChangedFile>,
    /// Made by tools on the way: neither committed nor held against anybody.
    pub products: Vec<ChangedFile>,
}

/// Sorts `changed` by the files that the task declared or was granted.
pub fn sort(changed: &[ChangedFile], allowed: &[RepoPath]) -> Scope {
    let keys: Vec<String> = allowed.iter().map(RepoPath::key).collect();
    let mut scope = Scope::default();
    for file in changed {
        let shelf = if is_allowed(&file.path, &keys) || follows_manifest(&file.path, allowed) {
            &mut scope.inside
        } else if is_product(file) {
            &mut scope.products
        } else {
            &mut scope.outside
        };
        shelf.push(file.clone());
    }
    scope
}

fn is_allowed(path: &str, keys: &[String]) -> bool {
    RepoPath::parse(path).is_ok_and(|path| keys.contains(&path.key()))
}

/// A lock file belongs to every manifest at or below its directory, as a workspace has one for all members.
fn follows_manifest(path: &str, allowed: &[RepoPath]) -> bool {
    let (directory, name) = split(path);
    let manifests: Vec<&str> = LOCK_FILES
        .iter()
        .filter(|(lock, _)| *lock == name)
        .map(|(_, manifest)| *manifest)
        .collect();
    allowed.iter().any(|file| {
        let (place, name) = split(file.as_str());
        let below = directory.is_empty()
            || place == directory
            || place
                .strip_prefix(directory)
                .is_some_and(|rest| rest.starts_with('/'));
        manifests.contains(&name) && below
    })
}

/// What a tool left behind without being asked: new files of its cache, or a lock file it refreshed.
fn is_product(file: &ChangedFile) -> bool {
    let (directory, name) = split(&file.path);
    let lock = LOCK_FILES.iter().any(|(lock, _)| *lock == name);
    let cached = directory.split('/').any(|part| PRODUCTS.contains(&part));
    let kept = file.kind != ChangeKind::Deleted && lock;
    kept || (file.kind == ChangeKind::Added && cached)
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The longest target that a link can have.
const LONGEST_TARGET_BYTES: usize = 4096;

/// Returns what a file holds as the target of a link, if it could be one.
pub(crate) fn as_link(content: &[u8]) -> Option<&str> {
    let target = std::str::from_utf8(content).ok()?;
    let short = !target.is_empty() && target.len() <= LONGEST_TARGET_BYTES;
    (short && !target.contains(['\n', '\0'])).then_some(target)
}

/// Says that a link at `path` leads out of the repository, or into what git keeps of it.
pub(crate) fn leads_out(path: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut place: Vec<&str> = path.split('/').collect();
    place.pop();
    for part in target.split('/') {
        match part {
            ".." if place.pop().is_none() => return true,
            "" | "." | ".." => {}
            name => place.push(name),
        }
        if place
            .first()
            .is_some_and(|first| first.eq_ignore_ascii_case(".git"))
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_out_when_a_step_of_it_leaves_the_repository() {
        for (path, target, out) in [
            ("a", "b", false),
            ("x/y/a", "../../b", false),
            ("x/y/a", "../../../b", true),
            ("a", "x/../../b", true),
            ("a", "/etc/passwd", true),
            ("a", "./x//b/", false),
            ("x/a", "../.git/config", true),
            ("a", ".github/x", false),
        ] {
            assert_eq!(leads_out(path, target), out, "{path} -> {target}");
        }
        assert_eq!(as_link(b"../b"), Some("../b"));
        assert_eq!((as_link(b"two\nlines"), as_link(b"")), (None, None));
    }

    fn sorted(changed: &[(&str, ChangeKind)], allowed: &[&str]) -> [Vec<String>; 3] {
        let changed: Vec<ChangedFile> = changed
            .iter()
            .map(|(path, kind)| ChangedFile {
                path: (*path).to_owned(),
                kind: *kind,
            })
            .collect();
        let allowed: Vec<RepoPath> = allowed
            .iter()
            .map(|path| RepoPath::parse(path).unwrap())
            .collect();
        let scope = sort(&changed, &allowed);
        [scope.inside, scope.outside, scope.products]
            .map(|files| files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn only_declared_and_granted_files_are_inside() {
        use ChangeKind::{Added, Deleted, Modified};
        let changed = [
            ("src/lib.rs", Modified),
            ("SRC/LIB.rs", Added),
            ("src/other.rs", Added),
            ("README.md", Deleted),
        ];
        let [inside, outside, products] = sorted(&changed, &["src/lib.rs"]);
        assert_eq!(inside, ["src/lib.rs", "SRC/LIB.rs"]);
        assert_eq!(outside, ["src/other.rs", "README.md"]);
        assert!(products.is_empty());
    }

    #[test]
    fn lock_files_belong_to_their_manifests_and_products_do_not_count() {
        use ChangeKind::{Added, Deleted, Modified};
        let rows = [
            ("Cargo.lock", Added, "Cargo.toml", "inside"),
            ("Cargo.lock", Modified, "app/Cargo.toml", "inside"),
            ("app/Cargo.lock", Modified, "Cargo.toml", "product"),
            ("app/Cargo.lock", Added, "apple/Cargo.toml", "product"),
            ("Cargo.lock", Added, "src/lib.rs", "product"),
            ("Cargo.lock", Deleted, "src/lib.rs", "outside"),
            ("target/debug/x", Added, "src/lib.rs", "product"),
            ("target/kept.rs", Modified, "src/lib.rs", "outside"),
            ("a/__pycache__/b.pyc", Added, "a/b.py", "product"),
        ];
        for (path, kind, allowed, expected) in rows {
            let [inside, outside, _] = sorted(&[(path, kind)], &[allowed]);
            let found = match (inside.is_empty(), outside.is_empty()) {
                (false, _) => "inside",
                (_, false) => "outside",
                _ => "product",
            };
            assert_eq!(found, expected, "{path} with {allowed}");
        }
    }
}
