//! Says what somebody named who named a specification where a build is meant.

use std::fmt;

use ropewalk_schemas::build::Build;
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{BuildId, ContentHash, SpecId};
use ropewalk_store::{Query, ReadError, Store};

/// A specification that was named in place of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisnamedBuild {
    /// How it was named.
    pub named: String,
    /// The specification.
    pub spec: SpecId,
    /// Its state.
    pub state: SpecState,
    /// The hash of its newest revision.
    pub hash: Option<ContentHash>,
    /// Its newest build.
    pub build: Option<BuildId>,
}

impl MisnamedBuild {
    /// Returns whether it only has to be approved.
    pub fn to_approve(&self) -> Option<&ContentHash> {
        let is_shown = self.build.is_none() && self.state == SpecState::Generated;
        self.hash.as_ref().filter(|_| is_shown)
    }
}

impl fmt::Display for MisnamedBuild {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { named, state, .. } = self;
        if let Some(build) = self.build {
            return write!(
                formatter,
                "`{named}` is the specification of build `{build}`"
            );
        }
        if self.to_approve().is_some() {
            let what = "is a specification that is generated, not approved";
            return write!(formatter, "`{named}` {what}");
        }
        write!(
            formatter,
            "`{named}` is a specification that is {state}, and has no build"
        )
    }
}

impl std::error::Error for MisnamedBuild {}

/// Says what became of `spec`, which somebody named as `named` where a build is meant.
pub async fn misnamed(
    store: &Store,
    spec: &Specification,
    named: String,
) -> Result<MisnamedBuild, ReadError> {
    let of_spec = Query::new().equal("spec", spec.id.to_string());
    let newest = of_spec.order_by("created_at").descending().limit(1);
    let built = store.list::<Build>(newest).await?.pop();
    Ok(MisnamedBuild {
        named,
        spec: spec.id,
        state: spec.state,
        hash: spec.hash.clone(),
        build: built.map(|build| build.id),
    })
}
