//! Defines what people are there for, and what they may do.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What somebody is asked about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What is built, and for whom.
    Product,
    /// How it is built.
    Technical,
    /// What it runs on, and what it costs.
    Operations,
}

/// What not everybody may do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// To say yes to what is shown: a specification, a change of protected files, a risk.
    Approve,
    /// To bring work into a branch that people use.
    Land,
    /// To spend more than a budget.
    Spend,
    /// To pause, stop and give up what runs, or a task of it, and to let it go on.
    Stop,
}

impl Role {
    /// Lists every role.
    pub const ALL: [Self; 3] = [Self::Product, Self::Technical, Self::Operations];

    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Technical => "technical",
            Self::Operations => "operations",
        }
    }
}

impl Right {
    /// Lists every right.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Land, Self::Spend, Self::Stop];

    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Land => "land",
            Self::Spend => "spend",
            Self::Stop => "stop",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
