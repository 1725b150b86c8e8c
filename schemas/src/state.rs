//! Defines states whose transitions are checked.

/// Says that a record may not go from one state to another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {what} cannot go from `{from}` to `{to}`")]
pub struct IllegalTransition {
    /// The kind of record, for example `build`.
    pub what: &'static str,
    /// The state it is in.
    pub from: &'static str,
    /// The state asked for.
    pub to: &'static str,
}

/// Says that no record of a kind is ever in a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} is ever `{text}`; write one of {known}")]
pub struct UnknownState {
    /// The kind of record, for example `build`.
    pub what: &'static str,
    /// What was written.
    pub text: String,
    /// The states that there are, with commas between them.
    pub known: String,
}

/// Declares a state enum: each state with its written form and the states that may follow it.
macro_rules! states {
    (
        $(#[$meta:meta])*
        $name:ident ($what:literal) {
            $( $(#[$doc:meta])* $variant:ident = $text:literal => [$($next:ident),* $(,)?] ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $( $(#[$doc])* #[serde(rename = $text)] $variant ),+
        }

        impl $name {
            /// Lists every state in the order of a life.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// Returns the written form.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }

            /// Returns the state written as `text`.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $( $text => Some(Self::$variant), )+ _ => None }
            }

            /// Returns the states that may follow this one.
            pub const fn successors(self) -> &'static [Self] {
                match self { $( Self::$variant => &[$( Self::$next ),*] ),+ }
            }

            /// Returns whether no state follows this one.
            pub const fn is_final(self) -> bool {
                self.successors().is_empty()
            }

            /// Goes to `next`, if that may follow.
            pub fn to(self, next: Self) -> Result<Self, $crate::IllegalTransition> {
                if self.successors().contains(&next) {
                    Ok(next)
                } else {
                    Err($crate::IllegalTransition { what: $what, from: self.as_str(), to: next.as_str() })
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownState;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text).ok_or_else(|| $crate::UnknownState {
                    what: $what,
                    text: $crate::clip::line(text, 40),
                    known: [$( $text ),+].join(", "),
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use states;

#[cfg(test)]
mod tests {
    use crate::IllegalTransition;
    use crate::build::BuildState;

    #[test]
    fn what_is_no_state_is_told_beside_those_that_are() {
        assert_eq!("running".parse(), Ok(BuildState::Running));
        let unknown = "Running".parse::<BuildState>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("no build is ever `Running`; write one of queued, "),
            "{unknown}"
        );
    }

    #[test]
    fn a_state_goes_only_where_its_row_says() {
        assert_eq!(
            BuildState::Queued.to(BuildState::Priming),
            Ok(BuildState::Priming)
        );
        assert_eq!(
            BuildState::Succeeded.to(BuildState::Paused),
            Err(IllegalTransition {
                what: "build",
                from: "succeeded",
                to: "paused"
            })
        );
    }

    #[test]
    fn every_state_reads_back_from_its_written_form() {
        for state in BuildState::ALL {
            assert_eq!(BuildState::parse(state.as_str()), Some(*state));
        }
        assert_eq!(BuildState::parse("asleep"), None);
    }
}
