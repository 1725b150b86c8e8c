//! Holds the stack profiles of `stacks/*.toml`: how a stack is told and tested, which files a feature needs, in which phase,
//! checked how (seed pipeline §4.3). To add a stack: write its file, and name it in `FILES`.

mod found;

use std::collections::BTreeMap;
use std::sync::Arc;

use ropewalk_schemas::task::Validation;
use ropewalk_schemas::{GlobPattern, RepoPath, RepoPathError, Slug};
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

pub use found::{FoundCheck, FoundStack, ManifestCondition, StackCheck, StackTool};

/// The shipped files.
const FILES: [(&str, &str); 9] = [
    ("stacks/c.toml", include_str!("../stacks/c.toml")),
    ("stacks/go.toml", include_str!("../stacks/go.toml")),
    ("stacks/java.toml", include_str!("../stacks/java.toml")),
    (
        "stacks/javascript.toml",
        include_str!("../stacks/javascript.toml"),
    ),
    ("stacks/python.toml", include_str!("../stacks/python.toml")),
    ("stacks/rust.toml", include_str!("../stacks/rust.toml")),
    ("stacks/static.toml", include_str!("../stacks/static.toml")),
    (
        "stacks/typescript.toml",
        include_str!("../stacks/typescript.toml"),
    ),
    ("stacks/web-ts.toml", include_str!("../stacks/web-ts.toml")),
];

/// The placeholders of paths, purposes and commands.
const PLACEHOLDERS: [&str; 5] = ["{slug}", "{snake}", "{name}", "{number}", "{path}"];

/// What a feature may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// A manifest, where there is none.
    Project,
    /// Stored data.
    Data,
    /// Entities with types.
    Entities,
    /// An API.
    Api,
    /// Something that people see.
    Ui,
}

/// How a kind of project is laid out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackProfile {
    /// Names it.
    pub name: String,
    /// Names it for people.
    pub title: String,
    /// The files at the root that tell this stack; all must be there.
    #[serde(default)]
    pub detect: Vec<RepoPath>,
    /// Files of which one must be there beside those; none for no such condition.
    #[serde(default)]
    pub any: Vec<RepoPath>,
    /// Globs of files of which one must lie below; none for no such condition.
    #[serde(default)]
    pub holds: Vec<GlobPattern>,
    /// Globs of files of which one tells it where nothing else tells a stack that has tests; none for no such sign.
    #[serde(default)]
    pub bare: Vec<GlobPattern>,
    /// Its programs.
    #[serde(default)]
    pub tools: Vec<StackTool>,
    /// How it may be tested; the first that applies counts.
    #[serde(default)]
    pub checks: Vec<StackCheck>,
    /// The phases, in order.
    pub phases: Vec<String>,
    /// Where the parts of a feature lie; none where projects of the stack differ too much for advice. A part is no task of its own: a
    /// slice takes those that its concern needs, each with its tests.
    #[serde(default)]
    pub kinds: Vec<FileKind>,
    /// The files that many features change.
    #[serde(default)]
    pub shared: Vec<SharedFile>,
}

/// A file that a feature needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileKind {
    /// What the feature must have for it.
    pub feature: Feature,
    /// The same in words.
    pub when: String,
    /// The phase in which it is made.
    pub phase: String,
    /// The path, with placeholders.
    pub path: String,
    /// What it is for, with placeholders.
    pub purpose: String,
    /// How it is checked, with placeholders.
    pub validation: Validation,
}

/// A file that changes whenever certain others are made, in the slice that makes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedFile {
    /// The file.
    pub path: RepoPath,
    /// The glob of the files that make the change necessary.
    pub after: GlobPattern,
    /// What is changed.
    pub purpose: String,
}

/// What the placeholders of a file kind stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureName<'a> {
    /// The feature in a path.
    pub slug: &'a Slug,
    /// The feature in a sentence.
    pub name: &'a str,
    /// The number of the next migration.
    pub number: u32,
}

/// A file kind with its placeholders filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFile {
    /// The file.
    pub path: RepoPath,
    /// The phase in which it is made.
    pub phase: String,
    /// What it is for.
    pub purpose: String,
    /// How it is checked.
    pub validation: Validation,
}

impl FileKind {
    /// Fills in the placeholders.
    pub fn plan(&self, feature: &FeatureName<'_>) -> Result<PlannedFile, RepoPathError> {
        let path = RepoPath::parse(&filled(&self.path, feature, ""))?;
        let with = |text: &str| filled(text, feature, path.as_str());
        Ok(PlannedFile {
            phase: self.phase.clone(),
            purpose: with(&self.purpose),
            validation: Validation {
                command: with(&self.validation.command),
                expected: self.validation.expected.clone(),
            },
            path,
        })
    }
}

fn filled(text: &str, feature: &FeatureName<'_>, path: &str) -> String {
    let slug = feature.slug.as_str();
    // The name is free text and comes last, so that what it holds is not searched for placeholders.
    text.replace("{slug}", slug)
        .replace("{snake}", &slug.replace('-', "_"))
        .replace("{number}", &format!("{:03}", feature.number))
        .replace("{path}", path)
        .replace("{name}", feature.name)
}

impl StackProfile {
    /// Lists the files that tell this stack.
    fn marks(&self) -> impl Iterator<Item = &RepoPath> {
        self.detect.iter().chain(&self.any)
    }

    fn fault(&self) -> Option<String> {
        let mut phases = self.kinds.iter().map(|kind| &kind.phase);
        if let Some(phase) = phases.find(|phase| !self.phases.contains(phase)) {
            return Some(format!("phase `{phase}` is not in `phases`"));
        }
        let texts = self
            .kinds
            .iter()
            .flat_map(|kind| [&kind.path, &kind.purpose, &kind.validation.command]);
        texts.into_iter().find_map(|text| {
            let rest = PLACEHOLDERS
                .iter()
                .fold(text.clone(), |text, known| text.replace(known, ""));
            rest.contains(['{', '}'])
                .then(|| format!("`{text}` holds an unknown placeholder"))
        })
    }
}

/// Every stack profile by name; cheap to clone.
#[derive(Debug, Clone)]
pub struct StackProfiles {
    profiles: Arc<BTreeMap<String, StackProfile>>,
}

impl StackProfiles {
    /// Loads the shipped profiles.
    pub fn shipped() -> Result<Self, ConfigError> {
        let mut profiles = BTreeMap::new();
        for (file, text) in FILES {
            let broken = |reason: String| ConfigError::Shipped {
                file: file.to_owned(),
                reason,
            };
            let profile: StackProfile =
                toml_edit::de::from_str(text).map_err(|error| broken(error.to_string()))?;
            if let Some(fault) = profile.fault() {
                return Err(broken(fault));
            }
            profiles.insert(profile.name.clone(), profile);
        }
        let profiles = Arc::new(profiles);
        Ok(Self { profiles })
    }

    /// Returns the profile called `name`.
    pub fn get(&self, name: &str) -> Option<&StackProfile> {
        self.profiles.get(name)
    }

    /// Lists the profiles by name.
    pub fn iter(&self) -> impl Iterator<Item = &StackProfile> {
        self.profiles.values()
    }

    /// Returns the profile of what lies in the root; of several the one that asks for most.
    pub fn detect(&self, files: &[RepoPath]) -> Option<&StackProfile> {
        let paths: Vec<&str> = files.iter().map(RepoPath::as_str).collect();
        let found = self.find(&paths, &BTreeMap::new());
        let in_root = found.iter().filter(|found| found.directory.is_empty());
        in_root
            .map(|found| found.profile)
            .max_by_key(|profile| (profile.detect.len(), !profile.kinds.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(texts: &[&str]) -> Vec<RepoPath> {
        texts
            .iter()
            .map(|text| RepoPath::parse(text).unwrap())
            .collect()
    }

    #[test]
    fn a_stack_is_told_by_its_files() {
        let profiles = StackProfiles::shipped().unwrap();
        for (files, expected) in [
            (vec!["Cargo.toml", "src/lib.rs"], Some("rust")),
            (vec!["package.json", "tsconfig.json"], Some("typescript")),
            (
                vec!["package.json", "tsconfig.json", "server/api.ts"],
                Some("web-ts"),
            ),
            (vec!["package.json"], Some("javascript")),
            (vec!["setup.py", "Makefile"], Some("python")),
            (vec!["notes.txt"], None),
            (
                vec!["package.json", "tsconfig.json", "Cargo.toml"],
                Some("typescript"),
            ),
            (vec![], None),
        ] {
            let found = profiles.detect(&paths(&files));
            assert_eq!(
                found.map(|profile| profile.name.as_str()),
                expected,
                "{files:?}"
            );
        }
    }

    #[test]
    fn a_stored_entity_with_an_api_gets_the_files_of_the_seed() {
        let profiles = StackProfiles::shipped().unwrap();
        let slug = Slug::parse("daily-habits").unwrap();
        let feature = FeatureName {
            slug: &slug,
            name: "daily {slug} habits",
            number: 7,
        };
        let profile = profiles.get("web-ts").unwrap();
        let planned: Vec<_> = profile
            .kinds
            .iter()
            .filter(|kind| !matches!(kind.feature, Feature::Project | Feature::Ui))
            .map(|kind| kind.plan(&feature).unwrap())
            .collect();
        let files: Vec<_> = planned.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            files,
            [
                "database/migrations/007_daily-habits.sql",
                "types/daily-habits.ts",
                "database/queries/daily-habits.ts",
                "server/routes/daily-habits.ts",
            ]
        );
        assert_eq!(
            planned.first().map(|file| file.validation.command.as_str()),
            Some("sqlite3 :memory: < database/migrations/007_daily-habits.sql")
        );
        assert_eq!(
            planned.get(1).map(|file| file.purpose.as_str()),
            Some("Types for daily {slug} habits")
        );
    }

    #[test]
    fn tests_are_no_part_that_lies_apart_from_its_code() {
        let profiles = StackProfiles::shipped().unwrap();
        for profile in profiles.iter() {
            let mut kinds = profile.kinds.iter();
            let apart = kinds.find(|kind| kind.phase == "tests");
            assert_eq!(apart, None, "{}", profile.name);
        }
    }

    #[test]
    fn a_profile_with_an_unknown_phase_or_placeholder_is_refused() {
        let profiles = StackProfiles::shipped().unwrap();
        let mut profile = profiles.get("rust").unwrap().clone();
        profile.phases.retain(|phase| phase != "ui");
        assert_eq!(
            profile.fault().as_deref(),
            Some("phase `ui` is not in `phases`")
        );
        let mut profile = profiles.get("rust").unwrap().clone();
        profile.kinds[0].path = "src/{slog}.rs".to_owned();
        assert!(profile.fault().unwrap_or_default().contains("{slog}"));
    }
}
