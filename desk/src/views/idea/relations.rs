//! How the work on one idea stands to that on others: what it builds on, and who waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_coordination::waits;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::{BuildId, Slug};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::views::wait::build_of;
use crate::views::{AT_ONCE, records};

/// How one idea stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelationKind {
    /// Its build holds the work of the other one, which is merged before it.
    BuildsOn,
    /// The build of the other one holds its work, and is merged after it.
    IsBuiltOnBy,
    /// Its build waits for what that of the other one holds.
    WaitsFor,
    /// The build of the other one waits for what its build holds.
    HoldsUp,
}

/// Another idea to which one stands so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct IdeaRelation {
    /// How.
    pub kind: RelationKind,
    /// The other idea.
    pub idea: Slug,
}

impl RelationKind {
    /// Returns it in words, before the name of the other idea.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::BuildsOn => "builds on",
            Self::IsBuiltOnBy => "is built on by",
            Self::WaitsFor => "waits for",
            Self::HoldsUp => "holds up",
        }
    }
}

/// Finds how the idea of `builds` stands to others, each relation once; what is merged stands in nobody's way any more.
pub(super) async fn of(store: &Store, builds: &[Build]) -> Result<Vec<IdeaRelation>, ReadError> {
    let open = |build: &&Build| build.merged.is_none() && build.state != BuildState::Stopped;
    let own: BTreeSet<BuildId> = builds.iter().filter(open).map(|build| build.id).collect();
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let mut related: BTreeSet<(RelationKind, BuildId)> = BTreeSet::new();
    let follows = builds.iter().filter(open).flat_map(|build| &build.follows);
    related.extend(follows.map(|first| (RelationKind::BuildsOn, first.build)));
    let states = BuildState::ALL.iter();
    let states = states.filter(|state| !state.has_ended() || **state == BuildState::Succeeded);
    let others = Query::new().one_of("state", states.map(|state| state.as_str()));
    let others: Vec<Build> = records(store.list(others).await?);
    for other in others.iter().filter(open) {
        let is_after = other.follows.iter().any(|first| own.contains(&first.build));
        related.extend(is_after.then_some((RelationKind::IsBuiltOnBy, other.id)));
    }
    let (waits, _) = waits::held(store).await?;
    for wait in &waits.parties {
        let Some(holder) = wait.holder.as_ref().map(build_of) else {
            continue;
        };
        let waiter = build_of(&wait.waiter);
        match (own.contains(&waiter), own.contains(&holder)) {
            (true, false) => related.insert((RelationKind::WaitsFor, holder)),
            (false, true) => related.insert((RelationKind::HoldsUp, waiter)),
            // Within one idea, or among others.
            _ => false,
        };
    }
    named(store, related, builds).await
}

/// Says which ideas the related builds are of; the idea itself is no relation of its own.
async fn named(
    store: &Store,
    related: BTreeSet<(RelationKind, BuildId)>,
    builds: &[Build],
) -> Result<Vec<IdeaRelation>, ReadError> {
    let keys: BTreeSet<BuildId> = related.iter().map(|(_, build)| *build).collect();
    let keys: Vec<BuildId> = keys.into_iter().collect();
    let mut ideas: BTreeMap<BuildId, (Slug, bool)> = BTreeMap::new();
    for part in keys.chunks(AT_ONCE) {
        let found = Query::new().one_of("key", part.iter().copied());
        let found = records(store.list::<Build>(found).await?).into_iter();
        ideas.extend(found.map(|build| (build.id, (build.idea, build.merged.is_some()))));
    }
    let own = builds.first().map(|build| &build.idea);
    let relations: BTreeSet<IdeaRelation> = related
        .into_iter()
        .filter_map(|(kind, build)| {
            let (idea, is_merged) = ideas.get(&build)?;
            let counts = Some(idea) != own && !is_merged;
            counts.then(|| IdeaRelation {
                kind,
                idea: idea.clone(),
            })
        })
        .collect();
    Ok(relations.into_iter().collect())
}
