//! What the rules need to know of a manifest.

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item, TableLike};

/// The part of a `Cargo.toml` that the rules look at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) dependencies: Vec<Dependency>,
    /// Files named by a `path` of a target, beside those that cargo finds by itself.
    pub(crate) target_paths: Vec<String>,
    pub(crate) takes_workspace_lints: bool,
}

/// One entry of a dependency table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Which table a dependency stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Development,
}

const TABLES: [(&str, Kind); 3] = [
    ("dependencies", Kind::Normal),
    ("build-dependencies", Kind::Build),
    ("dev-dependencies", Kind::Development),
];

impl Manifest {
    /// Parses the text of a package's manifest.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let document: DocumentMut = text.parse()?;
        let mut manifest = Self::default();
        manifest.read_dependencies(document.as_table());
        if let Some(platforms) = document.get("target").and_then(Item::as_table_like) {
            for (_, platform) in platforms.iter() {
                if let Some(table) = platform.as_table_like() {
                    manifest.read_dependencies(table);
                }
            }
        }
        for target in ["lib", "bin", "test", "bench", "example"] {
            manifest.read_target(document.get(target));
        }
        manifest.takes_workspace_lints =
            entry(document.get("lints"), "workspace").and_then(Item::as_bool) == Some(true);
        Ok(manifest)
    }

    fn read_dependencies(&mut self, table: &dyn TableLike) {
        for (key, kind) in TABLES {
            let Some(entries) = table.get(key).and_then(Item::as_table_like) else {
                continue;
            };
            self.dependencies
                .extend(entries.iter().map(|(name, _)| Dependency {
                    name: name.to_owned(),
                    kind,
                }));
        }
    }

    fn read_target(&mut self, target: Option<&Item>) {
        let single = target.and_then(Item::as_table_like).into_iter();
        let several = target.and_then(Item::as_array_of_tables).into_iter();
        let tables = single.chain(several.flatten().map(|table| table as &dyn TableLike));
        let paths = tables.filter_map(|table| table.get("path").and_then(Item::as_str));
        self.target_paths.extend(paths.map(str::to_owned));
    }
}

/// The directories of the workspace's members, in the order of the root manifest.
pub(crate) fn members(text: &str) -> Result<Vec<String>> {
    let document: DocumentMut = text.parse()?;
    let members = entry(document.get("workspace"), "members")
        .and_then(Item::as_array)
        .context("the root manifest has no `workspace.members`")?;
    Ok(members
        .iter()
        .filter_map(|member| member.as_str().map(str::to_owned))
        .collect())
}

/// The dependencies that the root manifest declares for its members.
pub(crate) fn shared(text: &str) -> Result<Vec<String>> {
    let document: DocumentMut = text.parse()?;
    let shared = entry(document.get("workspace"), "dependencies")
        .and_then(Item::as_table_like)
        .context("the root manifest has no `workspace.dependencies`")?;
    Ok(shared.iter().map(|(name, _)| name.to_owned()).collect())
}

fn entry<'a>(table: Option<&'a Item>, key: &str) -> Option<&'a Item> {
    table?.as_table_like()?.get(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_every_table_and_platform_are_found() {
        let text = r#"
            [dependencies]
            serde.workspace = true
            [dev-dependencies]
            insta = "1"
            [target.'cfg(unix)'.dependencies]
            nix = { version = "1" }
            [dependencies.tokio]
            workspace = true
            [[test]]
            name = "acceptance"
            path = "acceptance/main.rs"
            [lints]
            workspace = true
        "#;
        let manifest = Manifest::parse(text).unwrap();
        let named: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|dependency| (dependency.name.as_str(), dependency.kind))
            .collect();
        let expected = [
            ("serde", Kind::Normal),
            ("tokio", Kind::Normal),
            ("insta", Kind::Development),
            ("nix", Kind::Normal),
        ];
        assert_eq!(named, expected);
        assert_eq!(manifest.target_paths, ["acceptance/main.rs"]);
        assert!(manifest.takes_workspace_lints);
    }
}
