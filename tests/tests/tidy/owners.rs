//! One heavy dependency, one owner, so that it can be exchanged in one place.

use anyhow::Result;
use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::manifest::{Kind, Manifest};

/// A dependency and the only directory whose code may use it.
const OWNERS: &[(&str, &str)] = &[
    ("globset", "schemas"),
    ("tracing-subscriber", "runtime"),
    ("opentelemetry-otlp", "runtime"),
    ("config", "config"),
    ("sqlx", "store"),
    ("async-nats", "bus"),
    ("petgraph", "coordination"),
    ("process-wrap", "workspace"),
    ("landlock", "workspace"),
    ("seccompiler", "workspace"),
    ("gix-index", "workspace"),
    ("rmcp", "engine"),
    ("agent-client-protocol", "engine"),
    ("cron", "orchestrator"),
    ("axum", "server"),
    ("askama", "server"),
    ("teloxide", "telegram"),
    ("clap", "cli"),
    ("anyhow", "cli"),
];

/// Benchmarks hold what the owners build on these against the thing itself.
const MEASURER: &str = "benches";
const MEASURED: &[&str] = &["sqlx", "async-nats", "petgraph", "anyhow"];

/// Common far beyond this workspace: cargo-deny would stumble over other people's crates.
const NOT_FOR_DENY: &[&str] = &["anyhow", "globset"];

/// The dependencies of a manifest that belong to somebody else. Tests may use any.
pub(crate) fn violations(directory: &str, manifest: &Manifest) -> Vec<String> {
    manifest
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != Kind::Development)
        .filter_map(|dependency| {
            let (name, owner) = OWNERS.iter().find(|(name, _)| *name == dependency.name)?;
            let measures = directory == MEASURER && MEASURED.contains(name);
            (*owner != directory && !measures)
                .then(|| format!("`{name}` belongs to `{owner}`, `{directory}` must not use it"))
        })
        .collect()
}

/// Where the bans of `deny.toml` tell other owners than this table.
pub(crate) fn disagreements(deny: &str) -> Result<Vec<String>> {
    let document: DocumentMut = deny.parse()?;
    let bans = bans(&document);
    Ok(OWNERS
        .iter()
        .filter(|(name, _)| !NOT_FOR_DENY.contains(name))
        .filter_map(|(name, owner)| {
            let mut packages = vec![package_of(owner)];
            if MEASURED.contains(name) {
                packages.push(package_of(MEASURER));
            }
            let wrappers = bans
                .iter()
                .find(|(ban, _)| ban == name)
                .map(|(_, list)| list);
            let told = wrappers.is_some_and(|list| {
                let ours = list.iter().filter(|each| each.starts_with("ropewalk"));
                ours.eq(&packages)
            });
            let packages = packages.join("`, `");
            (!told).then(|| format!("deny.toml must ban `{name}` with the wrapper `{packages}`"))
        })
        .collect())
}

fn package_of(directory: &str) -> String {
    match directory {
        "cli" => "ropewalk".to_owned(),
        _ => format!("ropewalk-{directory}"),
    }
}

/// The banned crates, each with those that may use it all the same.
fn bans(document: &DocumentMut) -> Vec<(String, Vec<String>)> {
    let entries = document
        .get("bans")
        .and_then(|bans| bans.get("deny"))
        .and_then(Item::as_array);
    entries
        .into_iter()
        .flatten()
        .filter_map(Value::as_inline_table)
        .filter_map(|ban| Some((text(ban, "crate")?, texts(ban, "wrappers"))))
        .collect()
}

fn text(table: &dyn TableLike, key: &str) -> Option<String> {
    table.get(key).and_then(Item::as_str).map(str::to_owned)
}

fn texts(table: &dyn TableLike, key: &str) -> Vec<String> {
    let values = table.get(key).and_then(Item::as_array);
    let texts = values.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_user_of_a_heavy_dependency_is_found() {
        let cases = [
            ("store", "dependencies", true),
            ("bus", "dependencies", false),
            ("bus", "build-dependencies", false),
            ("bus", "dev-dependencies", true),
            ("benches", "dependencies", true),
        ];
        for (directory, table, expected) in cases {
            let text = format!("[{table}]\nsqlx.workspace = true\n");
            let found = violations(directory, &Manifest::parse(&text).unwrap());
            assert_eq!(found.is_empty(), expected, "{directory} {table}: {found:?}");
        }
    }

    #[test]
    fn a_ban_with_another_owner_is_found() {
        let cases = [
            (
                r#"{ crate = "sqlx", wrappers = ["ropewalk-store", "ropewalk-benches"] }"#,
                false,
            ),
            (
                r#"{ crate = "sqlx", wrappers = ["ropewalk-store", "elsewhere", "ropewalk-benches"] }"#,
                false,
            ),
            (r#"{ crate = "sqlx", wrappers = ["ropewalk-store"] }"#, true),
            (r#"{ crate = "sqlx", wrappers = ["ropewalk-bus"] }"#, true),
            (
                r#"{ crate = "sqlx", wrappers = ["ropewalk-store", "ropewalk-bus"] }"#,
                true,
            ),
            (r#"{ crate = "serde" }"#, true),
        ];
        for (ban, expected) in cases {
            let found = disagreements(&format!("[bans]\ndeny = [{ban}]\n")).unwrap();
            let about_sqlx = found.iter().any(|line| line.contains("`sqlx`"));
            assert_eq!(about_sqlx, expected, "{ban}: {found:?}");
        }
    }
}
