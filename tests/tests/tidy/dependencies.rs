//! A dependency is declared when its first line of code needs it, and goes with the last.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::manifest::{Kind, Manifest};
use crate::sources;
use crate::workspace::Member;

/// The dependencies whose identifier no source file names.
pub(crate) fn unused(member: &Member) -> Result<Vec<String>> {
    let mut shipped = BTreeSet::new();
    let mut building = BTreeSet::new();
    let mut testing = BTreeSet::new();
    for (path, text) in &member.files {
        let identifiers = sources::identifiers(path, text)?;
        if path == "build.rs" {
            building.extend(identifiers);
        } else {
            if path.starts_with("src/") {
                shipped.extend(identifiers.iter().cloned());
            }
            testing.extend(identifiers);
        }
    }
    Ok(member
        .manifest
        .dependencies
        .iter()
        .filter(|dependency| {
            let identifiers = match dependency.kind {
                Kind::Normal => &shipped,
                Kind::Build => &building,
                Kind::Development => &testing,
            };
            !identifiers.contains(&dependency.name.replace('-', "_"))
        })
        .map(|dependency| {
            format!(
                "`{}` declares `{}` and never uses it",
                member.directory, dependency.name
            )
        })
        .collect())
}

/// The dependencies that are declared for all members and that none takes.
pub(crate) fn taken_by_nobody(shared: &[String], members: &[Member]) -> Vec<String> {
    let taken: BTreeSet<&str> = members
        .iter()
        .flat_map(|member| &member.manifest.dependencies)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let unused = shared.iter().filter(|name| !taken.contains(name.as_str()));
    unused
        .map(|name| format!("`Cargo.toml` declares `{name}`, which no member takes"))
        .collect()
}

/// A member that sets its own lints, or none, instead of taking those of the workspace.
pub(crate) fn own_lints(directory: &str, manifest: &Manifest) -> Vec<String> {
    let missing = (!manifest.takes_workspace_lints)
        .then(|| format!("`{directory}/Cargo.toml` must say `[lints] workspace = true`"));
    missing.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(manifest: &str, files: &[(&str, &str)]) -> Member {
        Member {
            directory: "bus".to_owned(),
            manifest: Manifest::parse(manifest).unwrap(),
            files: files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn an_unused_dependency_is_found() {
        let cases = [
            ("src/lib.rs", "use serde_json::Value;", true),
            ("src/lib.rs", "fn f() { call!(serde_json::json!(1)) }", true),
            (
                "src/lib.rs",
                "// serde_json\nconst NAME: &str = \"serde_json\";",
                false,
            ),
            ("tests/one.rs", "use serde_json::Value;", false),
        ];
        for (path, text, expected) in cases {
            let member = member(
                "[dependencies]\nserde-json.workspace = true\n",
                &[(path, text)],
            );
            let found = unused(&member).unwrap();
            assert_eq!(found.is_empty(), expected, "{path}: {text}: {found:?}");
        }
    }

    #[test]
    fn a_dependency_that_no_member_takes_is_found() {
        let members = [member(
            "[dev-dependencies]\nserde_json.workspace = true\n",
            &[],
        )];
        let shared = ["serde_json", "config"].map(str::to_owned);
        let found = taken_by_nobody(&shared, &members);
        assert_eq!(
            found,
            ["`Cargo.toml` declares `config`, which no member takes"]
        );
    }

    #[test]
    fn a_member_with_lints_of_its_own_is_found() {
        let taken = Manifest::parse("[lints]\nworkspace = true\n").unwrap();
        let own = Manifest::parse("[lints.rust]\nunused = \"allow\"\n").unwrap();
        assert_eq!(own_lints("bus", &taken), Vec::<String>::new());
        assert_eq!(own_lints("bus", &own).len(), 1);
    }
}
