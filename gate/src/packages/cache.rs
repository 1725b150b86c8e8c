//! Says which installs share what earlier ones of the project fetched: those that can run nothing that the repository holds.
//!
//! Whoever makes a package manager run a program could put another package into the cache under a name that a gate asks
//! for later, so that a check would pass beside it. Such an install is not refused: it fetches everything anew.

use serde_json::{Map, Value};

/// The sets of packages that a manifest of npm asks for.
const GROUPS: [&str; 4] = [
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
];
/// What a manifest of npm asks for in a way that is not looked through.
const ELSEWHERE: [&str; 2] = ["overrides", "workspaces"];
/// What pip takes for a file and not for the name of a package.
const ARCHIVES: [&str; 6] = [".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz"];

/// Says whether npm fetches all that a lock file fixes from a registry, or finds it in the repository.
pub(super) fn is_fixed_by(lock: &[u8]) -> bool {
    let Ok(Value::Object(lock)) = serde_json::from_slice(lock) else {
        return false;
    };
    let Some(Value::Object(packages)) = lock.get("packages") else {
        return false;
    };
    packages.values().all(|package| {
        let is_link = package.get("link").is_some_and(|link| link == true);
        match package.get("resolved") {
            None => true,
            Some(Value::String(place)) => {
                is_link || place.starts_with("https://") || place.starts_with("http://")
            }
            Some(_) => false,
        }
    })
}

/// Says whether a manifest of npm asks for packages of a registry alone.
pub(super) fn asks_registries(manifest: &[u8]) -> bool {
    let Ok(Value::Object(manifest)) = serde_json::from_slice::<Value>(manifest) else {
        return false;
    };
    !ELSEWHERE.iter().any(|name| manifest.contains_key(*name))
        && GROUPS.iter().all(|group| match manifest.get(*group) {
            None => true,
            Some(Value::Object(packages)) => are_of_registries(packages),
            Some(_) => false,
        })
}

fn are_of_registries(packages: &Map<String, Value>) -> bool {
    packages.values().all(|version| {
        let version = version.as_str();
        version.is_some_and(|version| version.starts_with("npm:") || !version.contains([':', '/']))
    })
}

/// Says whether a list of requirements of pip names packages of an index alone, without an option.
pub(super) fn names_packages(requirements: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(requirements) else {
        return false;
    };
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    text.lines()
        .map(without_comment)
        .all(|line| line.is_empty() || is_requirement(line))
}

fn without_comment(line: &str) -> &str {
    let line = line.split(" #").next().unwrap_or(line).trim();
    if line.starts_with('#') { "" } else { line }
}

fn is_requirement(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut options = words.clone().filter(|word| word.starts_with('-'));
    let named: String = words.take_while(|word| !word.starts_with('-')).collect();
    let is_plain = named.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !named.contains(['/', '\\', '@', '$', ':'])
        && !ARCHIVES
            .iter()
            .any(|end| named.to_ascii_lowercase().ends_with(end));
    is_plain && options.all(|option| option.starts_with("--hash="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_of_registries_and_links_is_fixed() {
        let lock =
            |packages: &str| format!(r#"{{ "lockfileVersion": 3, "packages": {{ {packages} }} }}"#);
        let rows = [
            (
                lock(r#""": {}, "a": { "resolved": "https://registry.example/a.tgz" }"#),
                true,
            ),
            (
                lock(r#""a": { "resolved": "packages/a", "link": true }"#),
                true,
            ),
            (
                lock(r#""a": { "resolved": "git+ssh://git@example.com/a.git#1" }"#),
                false,
            ),
            (lock(r#""a": { "resolved": "file:a.tgz" }"#), false),
            (lock(r#""a": { "resolved": 1 }"#), false),
            (
                r#"{ "lockfileVersion": 1, "dependencies": {} }"#.to_owned(),
                false,
            ),
            ("{".to_owned(), false),
        ];
        for (lock, expected) in rows {
            assert_eq!(is_fixed_by(lock.as_bytes()), expected, "{lock}");
        }
    }

    #[test]
    fn a_manifest_that_asks_for_more_than_versions_is_left_alone() {
        let rows = [
            (r#"{ "name": "habits" }"#, true),
            (
                r#"{ "dependencies": { "a": "^1.2", "b": "npm:@scope/b@2" } }"#,
                true,
            ),
            (r#"{ "dependencies": { "a": "somebody/a" } }"#, false),
            (
                r#"{ "devDependencies": { "a": "git+https://example.com/a.git" } }"#,
                false,
            ),
            (r#"{ "optionalDependencies": { "a": "file:../a" } }"#, false),
            (r#"{ "dependencies": { "a": 1 } }"#, false),
            (r#"{ "dependencies": [] }"#, false),
            (r#"{ "workspaces": ["packages/*"] }"#, false),
            (r#"{ "overrides": { "a": { "b": "somebody/b" } } }"#, false),
            ("[]", false),
        ];
        for (manifest, expected) in rows {
            assert_eq!(asks_registries(manifest.as_bytes()), expected, "{manifest}");
        }
    }

    #[test]
    fn requirements_with_options_places_or_files_are_left_alone() {
        let rows = [
            ("", true),
            (
                "# pinned\nleft==1.0  # why\nright[extra] >= 2, < 3 ; python_version < \"3.9\"\n",
                true,
            ),
            ("left==1.0 \\\n    --hash=sha256:0123\n", true),
            ("left==1.0 --hash=sha256:0123 --no-binary :all:\n", false),
            ("--no-binary :all:\nleft\n", false),
            ("-e .\n", false),
            ("-r other.txt\n", false),
            ("./left\n", false),
            ("vendor/left\n", false),
            ("left-1.0-py3-none-any.whl\n", false),
            ("left-1.0.tar.gz\n", false),
            ("left @ https://example.com/left.zip\n", false),
            ("git+https://example.com/left\n", false),
            ("left==${VERSION}\n", false),
            ("file:left\n", false),
        ];
        for (requirements, expected) in rows {
            assert_eq!(
                names_packages(requirements.as_bytes()),
                expected,
                "{requirements}"
            );
        }
        assert!(!names_packages(b"\xff"));
    }
}
