//! Where an idea stands on its way, in the word that every surface shows.

use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::IdeaState;
use ropewalk_schemas::specification::{SpecState, Specification};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Where an idea stands: by what was built of it, else by what was written, else by its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub enum Whereabouts {
    /// It was given up.
    Abandoned,
    /// A build of it was landed.
    Landed,
    /// Its newest build counts.
    Built(BuildState),
    /// Its newest specification counts.
    Specified(SpecState),
    /// It is talked about.
    Discussed(IdeaState),
}

impl Whereabouts {
    /// Returns where an idea in `state` stands of which these are the newest.
    pub fn of(state: IdeaState, build: Option<&Build>, spec: Option<&Specification>) -> Self {
        match (state, build, spec) {
            (IdeaState::Abandoned, _, _) => Self::Abandoned,
            (IdeaState::Landed, _, _) => Self::Landed,
            (_, Some(build), Some(spec)) if is_behind(build, spec) => Self::Specified(spec.state),
            (_, Some(build), _) => Self::Built(build.state),
            (_, None, Some(spec)) => Self::Specified(spec.state),
            (state, None, None) => Self::Discussed(state),
        }
    }

    /// Returns it in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Landed => "landed",
            Self::Built(state) => state.as_str(),
            Self::Specified(state) => state.as_str(),
            Self::Discussed(state) => state.as_str(),
        }
    }
}

impl Serialize for Whereabouts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Says whether a build stands behind the wish for more: not while it goes on or waits to land.
fn is_behind(build: &Build, spec: &Specification) -> bool {
    let is_wish = matches!(spec.state, SpecState::Draft | SpecState::Generated);
    is_wish && matches!(build.state, BuildState::Failed | BuildState::Stopped)
}
