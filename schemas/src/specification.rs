//! Defines specifications: states, approval, price and content (seed pipeline §4, design §6).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::counted;
use crate::ids::{
    ContentHash, CorrelationId, QuestionId, RequirementId, Slug, SpecId, TaskId, UserSlug,
};
use crate::repo_path::RepoPath;
use crate::state::states;
use crate::task::{GotchaReference, TaskBlock};

states! {
    /// Says how far a specification has come.
    SpecState ("specification") {
        /// Asked for; the agent works on it.
        Draft = "draft" => [Generated, Approved, Rejected],
        /// Ready to be read and approved.
        Generated = "generated" => [Draft, Approved, Rejected],
        /// A person approved one revision; a change of it asks for another.
        Approved = "approved" => [Draft],
        /// Refused, by a person or because it could not be made.
        Rejected = "rejected" => [Draft],
    }
}

/// Says how large a plan is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Complexity {
    /// At most 8 tasks.
    Simple,
    /// At most 15 tasks.
    Medium,
    /// At most 30 tasks.
    Complex,
}

impl Complexity {
    /// Each of them, the smallest first.
    pub const ALL: [Self; 3] = [Self::Simple, Self::Medium, Self::Complex];

    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Medium => "medium",
            Self::Complex => "complex",
        }
    }

    /// Reads the written form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// A specification over all its revisions; holds the newest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Specification {
    /// Names it.
    pub id: SpecId,
    /// The idea.
    pub idea: Slug,
    /// Whose idea it is.
    pub user: UserSlug,
    /// How far it has come.
    pub state: SpecState,
    /// The newest revision that was not put away, 0 before the first.
    pub revision: u32,
    /// The newest revision that was put away after an approved one, so that no other gets its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_away: Option<u32>,
    /// The hash of the newest revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// How much to plan.
    pub complexity: Complexity,
    /// The newest approval; a wish for another revision, and a revision that follows, leave it as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What building it is expected to cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What was asked to be changed, newest last.
    #[serde(default)]
    pub feedback: Vec<String>,
    /// How many of those, the oldest, a revision was made for, or people put away.
    #[serde(default, skip_serializing_if = "is_none")]
    pub fulfilled: u32,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked for it.
    pub requested_by: UserSlug,
    /// The chain of events it belongs to.
    pub correlation_id: CorrelationId,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// Says whether there are none.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Specification {
    /// Lists what was asked to be changed since the newest revision was made.
    pub fn requests(&self) -> &[String] {
        let fulfilled = usize::try_from(self.fulfilled).unwrap_or(usize::MAX);
        self.feedback.get(fulfilled..).unwrap_or_default()
    }

    /// Returns it as one of which nothing is asked any more.
    pub fn with_all_fulfilled(self) -> Self {
        Self {
            fulfilled: u32::try_from(self.feedback.len()).unwrap_or(u32::MAX),
            ..self
        }
    }

    /// Returns the approval of the newest revision, once given.
    pub fn approval_of_newest(&self) -> Option<&Approval> {
        let approval = self.approval.as_ref();
        approval.filter(|approval| approval.revision == self.revision)
    }

    /// Returns the number of the next revision.
    pub fn next_revision(&self) -> u32 {
        self.revision.max(self.put_away.unwrap_or_default()) + 1
    }

    /// Returns it as a rejection leaves it: where a revision is approved, that stands, and what came since, the wish for another or
    /// that other itself, is put away alone.
    pub fn once_rejected(&self) -> Self {
        let Some(approval) = &self.approval else {
            return Self {
                state: SpecState::Rejected,
                ..self.clone()
            };
        };
        let stands = self.approval_of_newest().is_some();
        Self {
            state: SpecState::Approved,
            revision: approval.revision,
            put_away: if stands {
                self.put_away
            } else {
                Some(self.revision)
            },
            hash: Some(approval.hash.clone()),
            price: if stands {
                self.price.clone()
            } else {
                approval.price.clone()
            },
            ..self.clone()
        }
    }
}

/// One revision: what an approval binds to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// The specification.
    pub spec: SpecId,
    /// The revision, from 1.
    pub number: u32,
    /// The hash of document and task graph.
    pub hash: ContentHash,
    /// The text.
    pub document: Document,
    /// The task graph.
    #[serde(default)]
    pub tasks: Vec<TaskBlock>,
    /// The tasks that had landed when it was made and are asked for as before: nothing is done about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<TaskId>,
    /// Warnings of the validation, for people; what trying its checks showed stands first.
    #[serde(default)]
    pub validation: Vec<String>,
    /// How its checks went before anybody approved it; none where nobody tried them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRunCount>,
    /// The questions whose answers it was made with.
    #[serde(default)]
    pub answers: Vec<QuestionId>,
    /// When it was made.
    pub at: DateTime<Utc>,
}

/// How the checks of a plan went on the commit that it begins at. What an earlier revision built is not tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DryRunCount {
    /// The tasks whose checks were to be tried.
    pub tasks: u32,
    /// Those whose check failed, as it should where nothing is done yet.
    pub failed: u32,
    /// Those of which the check did not come to check anything, since what it looks at is still to be made.
    #[serde(default)]
    pub could_not_run: u32,
    /// Those of which the check ran, and found no test that it is to run.
    #[serde(default)]
    pub selected_no_test: u32,
    /// Those of which the check held but for the number of its tests.
    #[serde(default)]
    pub too_few_tests: u32,
    /// Those whose check passed, as it should where nothing is to change.
    pub passed: u32,
}

impl DryRunCount {
    /// Counts the tasks whose check shows nothing; a warning says why of each.
    pub const fn open(self) -> u32 {
        let early = self.could_not_run + self.selected_no_test + self.too_few_tests;
        let shown = self.failed + early + self.passed;
        self.tasks.saturating_sub(shown)
    }

    /// Says it in a line.
    pub fn in_words(self) -> String {
        if self.tasks == 0 {
            return "no check was tried: all of it was built before".to_owned();
        }
        let open = self.open();
        let parts = [
            (
                self.failed,
                "failed as it is, before the work, as it should",
            ),
            (
                self.could_not_run,
                "could not run yet, since what it looks at is still to be made",
            ),
            (
                self.selected_no_test,
                "selected no test yet, since that is still to be written",
            ),
            (
                self.too_few_tests,
                "held but for its number of tests, since more are still to be written",
            ),
            (self.passed, "passed as it is, and has to go on to"),
            (open, "shows nothing, as a warning says"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        format!("of {}: {}", counted(self.tasks, "check"), told.join("; "))
    }
}

/// Who approved what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The person.
    pub by: UserSlug,
    /// When.
    pub at: DateTime<Utc>,
    /// The hash that was shown.
    pub hash: ContentHash,
    /// The revision.
    pub revision: u32,
    /// The price that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// What a build is expected to cost, from the history of this project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Tokens, lower bound.
    pub tokens_low: u64,
    /// Tokens, upper bound.
    pub tokens_high: u64,
    /// Millionths of a dollar, lower bound; none when a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd_low: Option<u64>,
    /// Millionths of a dollar, upper bound; none when a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd_high: Option<u64>,
    /// What the estimate rests on.
    pub basis: String,
}

impl Price {
    /// Says in one line what a build is expected to cost; what is unknown is said, and not counted as nothing.
    pub fn in_words(price: Option<&Self>) -> String {
        let Some(price) = price else {
            return "unknown".to_owned();
        };
        let money = match (price.micro_usd_low, price.micro_usd_high) {
            (Some(low), Some(high)) => format!("{} to {}", dollars(low), dollars(high)),
            _ => "unknown price".to_owned(),
        };
        let (low, high) = (price.tokens_low, price.tokens_high);
        format!("{low} to {high} tokens, {money} ({})", price.basis)
    }
}

fn dollars(micro: u64) -> String {
    format!("${}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000)
}

/// What spec.md holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// The title; that of the idea where it is left out.
    #[serde(default)]
    pub title: String,
    /// The documents that were read.
    #[serde(default)]
    pub context_read: Vec<String>,
    /// The optional documents that were absent.
    #[serde(default)]
    pub missing_inputs: Vec<String>,
    /// What is to be reached.
    #[serde(default)]
    pub objective: String,
    /// How success is seen.
    #[serde(default)]
    pub success_criteria: Vec<String>,
    /// What is left out.
    #[serde(default)]
    pub out_of_scope: Vec<String>,
    /// The functional requirements.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// The non-functional requirements.
    #[serde(default)]
    pub quality: Vec<Requirement>,
    /// Files to create.
    #[serde(default)]
    pub new_files: Vec<FilePlan>,
    /// Files to change.
    #[serde(default)]
    pub modified_files: Vec<FilePlan>,
    /// Files to leave alone.
    #[serde(default)]
    pub avoid_files: Vec<FilePlan>,
    /// What tasks call of each other.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// The data model, a line each.
    #[serde(default)]
    pub data: Vec<String>,
    /// What it depends on.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// Packages that the project does not have yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_packages: Vec<NewPackage>,
    /// Lessons that apply.
    #[serde(default)]
    pub gotchas: Vec<GotchaReference>,
    /// How the whole is validated.
    #[serde(default)]
    pub validation: Vec<String>,
    /// What may go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
}

impl Document {
    /// Returns every requirement, the functional ones first.
    pub fn all_requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().chain(&self.quality)
    }
}

/// A requirement and how it is accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// Names it.
    pub id: RequirementId,
    /// What is required.
    pub text: String,
    /// `must`, `should` or `could`.
    #[serde(default = "must")]
    pub priority: String,
    /// How it is accepted.
    pub acceptance: String,
    /// The document it comes from.
    #[serde(default = "brief")]
    pub source: String,
    /// Only in a changed plan: the id of another requirement, one of the revision before, whose place this one takes, whether that is
    /// still there or not. One that only changes keeps its `id` and leaves this out, and so does one that is new beside the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<RequirementId>,
}

/// The urgency of a requirement that tells none.
fn must() -> String {
    "must".to_owned()
}

/// The document that a specification is made of, in the folder of its idea.
pub const BRIEF: &str = "planning/brief.md";

/// Where a requirement comes from that does not say.
fn brief() -> String {
    BRIEF.to_owned()
}

/// A signature that one task makes and others use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenInterface", into = "WrittenInterface")]
pub struct Interface {
    /// The signature, as code.
    pub signature: String,
    /// The task that makes it; none where it is there already.
    pub made_by: Option<TaskId>,
    /// The tasks that use it.
    pub used_by: Vec<TaskId>,
}

impl Interface {
    /// Returns a signature of which nothing more is said.
    pub fn plain(signature: impl Into<String>) -> Self {
        Self {
            signature: signature.into(),
            ..Self::default()
        }
    }
}

/// An interface as it is written: a text alone, or a signature with its tasks.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an interface is a text, or a `signature` with `made_by` and `used_by`"
)]
enum WrittenInterface {
    /// A signature of which nothing more is said.
    Plain(String),
    /// A signature with its tasks.
    Tasks {
        /// The signature, as code.
        signature: String,
        /// The id of the task that makes it; left out where it is there already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made_by: Option<TaskId>,
        /// The ids of the tasks that use it.
        #[serde(default)]
        used_by: Vec<TaskId>,
    },
}

impl From<WrittenInterface> for Interface {
    fn from(written: WrittenInterface) -> Self {
        match written {
            WrittenInterface::Plain(signature) => Self::plain(signature),
            WrittenInterface::Tasks {
                signature,
                made_by,
                used_by,
            } => Self {
                signature,
                made_by,
                used_by,
            },
        }
    }
}

impl From<Interface> for WrittenInterface {
    fn from(interface: Interface) -> Self {
        let Interface {
            signature,
            made_by,
            used_by,
        } = interface;
        // A text alone keeps the hash of what was approved before there was more to say.
        if made_by.is_none() && used_by.is_empty() {
            return Self::Plain(signature);
        }
        Self::Tasks {
            signature,
            made_by,
            used_by,
        }
    }
}

/// A package that has to be installed anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewPackage {
    /// The package manager, such as `npm` or `pip`.
    pub manager: String,
    /// Its name there.
    pub name: String,
    /// What it is needed for.
    pub purpose: String,
}

/// A file and what happens to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilePlan {
    /// The file.
    pub path: RepoPath,
    /// What it is for.
    pub purpose: String,
    /// The build that owns it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_price_is_unknown_and_not_zero() {
        let mut known = Price {
            tokens_low: 1000,
            tokens_high: 2000,
            micro_usd_low: Some(1_230_000),
            micro_usd_high: Some(2_005_000),
            basis: "3 builds".to_owned(),
        };
        assert_eq!(
            Price::in_words(Some(&known)),
            "1000 to 2000 tokens, $1.23 to $2.00 (3 builds)"
        );
        known.micro_usd_low = None;
        assert_eq!(
            Price::in_words(Some(&known)),
            "1000 to 2000 tokens, unknown price (3 builds)"
        );
        assert_eq!(Price::in_words(None), "unknown");
    }
}
