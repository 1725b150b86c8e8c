//! Knows the specification by which an idea is built: an idea has one at most, and what is to change is a revision of that.

use std::fmt;

use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{BuildId, Slug, SpecId};
use ropewalk_store::{Query, ReadError, Store, Versioned};

/// The specification by which an idea is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdeaPlan {
    /// The specification, a revision of which was approved.
    pub spec: SpecId,
    /// What came of it.
    pub progress: PlanProgress,
}

/// How far the newest build of a plan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanProgress {
    /// There is none yet.
    Approved,
    /// It is there.
    Built {
        /// The build.
        build: BuildId,
        /// Its state.
        state: BuildState,
        /// Whether it moves again on the word of a person alone.
        rests: bool,
    },
    /// It has landed.
    Landed,
}

impl PlanProgress {
    fn of(newest: Option<&Build>) -> Self {
        match newest {
            None => Self::Approved,
            Some(build) if build.merged.is_some() => Self::Landed,
            Some(build) => Self::Built {
                build: build.id,
                state: build.state,
                rests: build.rests(),
            },
        }
    }

    /// Returns the build, where it moves again on the word of a person alone.
    pub fn at_rest(self) -> Option<BuildId> {
        match self {
            Self::Built { build, rests, .. } => rests.then_some(build),
            Self::Approved | Self::Landed => None,
        }
    }
}

/// Says it behind the name of the specification.
impl fmt::Display for PlanProgress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approved => formatter.write_str("whose build is about to begin"),
            Self::Built { state, .. } => write!(formatter, "whose build is {state}"),
            Self::Landed => formatter.write_str("whose build has landed"),
        }
    }
}

/// Finds the specification by which an idea is built; of several, as rows of before may hold them, the one that was approved last.
pub(crate) async fn of_idea(store: &Store, idea: &Slug) -> Result<Option<IdeaPlan>, ReadError> {
    let of_idea = || Query::new().equal("idea", idea.as_str());
    let specs = store.list::<Specification>(of_idea()).await?;
    let builds = of_idea().order_by("created_at").descending();
    let builds = store.list::<Build>(builds).await?;
    let approved = specs.iter().filter_map(|spec| {
        let approval = spec.approval.as_ref()?;
        Some((approval.at, spec.id))
    });
    let approved = approved.max_by_key(|(at, _)| *at).map(|(_, spec)| spec);
    let spec = approved.or_else(|| {
        let landed = builds.iter().find(|build| build.merged.is_some())?;
        Some(landed.spec)
    });
    Ok(spec.map(|spec| {
        let newest = builds.iter().find(|build| build.spec == spec);
        IdeaPlan {
            spec,
            progress: PlanProgress::of(newest.map(|build| &build.record)),
        }
    }))
}

/// Loads the specification of an idea that counts: the one by which it is built, else the newest that was not put away, else the
/// newest.
pub async fn counting(store: &Store, idea: &Slug) -> Result<Option<Specification>, ReadError> {
    let built = match of_idea(store, idea).await? {
        Some(plan) => store.get::<Specification>(&plan.spec.to_string()).await?,
        None => None,
    };
    if let Some(built) = built {
        return Ok(Some(built.into_inner()));
    }
    let newest = Query::new()
        .equal("idea", idea.as_str())
        .order_by("created_at")
        .descending();
    let mut specs = store.list::<Specification>(newest).await?;
    let is_wanted = |spec: &Versioned<Specification>| spec.state != SpecState::Rejected;
    let place = specs.iter().position(is_wanted).unwrap_or_default();
    Ok((!specs.is_empty()).then(|| specs.swap_remove(place).into_inner()))
}

/// Finds the plan by which the idea of `spec` is built in its place; none where that was approved itself.
pub(super) async fn in_place_of(
    store: &Store,
    spec: &Specification,
) -> Result<Option<IdeaPlan>, ReadError> {
    if spec.approval.is_some() {
        return Ok(None);
    }
    let plan = of_idea(store, &spec.idea).await?;
    Ok(plan.filter(|plan| plan.spec != spec.id))
}
