//! Defines what is handed in to be remembered.

use chrono::{DateTime, Utc};
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{ComponentName, KnowledgeId, Slug};

/// Is something that may be worth remembering.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What it is.
    pub kind: KnowledgeKind,
    /// What it says, at most 2,000 characters.
    pub content: String,
    /// The files it applies to; none means all.
    pub globs: Vec<String>,
    /// The action it applies to; none means all.
    pub action: Option<Action>,
    /// What it is about.
    pub topics: Vec<String>,
    /// 0 to 1.
    pub confidence: f64,
    /// The execution it was seen in; seeing it again in the same one does not count twice.
    pub execution: String,
    /// The idea it was seen in.
    pub idea: Option<Slug>,
    /// Where it comes from, for example `attempt/<id>`.
    pub evidence: Vec<String>,
    /// Who hands it in.
    pub discovered_by: ComponentName,
    /// Whether a person says so: such an item is confirmed, and never refused for what it says.
    pub from_person: bool,
}

impl Draft {
    /// Makes the item that this draft becomes when nothing like it is known.
    pub(crate) fn into_item(self, id: KnowledgeId, now: DateTime<Utc>) -> KnowledgeItem {
        let mut topics: Vec<String> = self
            .topics
            .iter()
            .map(|topic| topic.trim().to_lowercase())
            .filter(|topic| !topic.is_empty())
            .collect();
        topics.sort();
        topics.dedup();
        KnowledgeItem {
            id,
            kind: self.kind,
            content: self.content.trim().to_owned(),
            globs: self.globs,
            action: self.action,
            topics,
            confidence: self.confidence.clamp(0.0, 1.0),
            executions: std::iter::once(self.execution).collect(),
            ideas: self.idea.into_iter().collect(),
            evidence: self.evidence,
            discovered_by: self.discovered_by,
            state: if self.from_person {
                KnowledgeState::Confirmed
            } else {
                KnowledgeState::Candidate
            },
            superseded_by: None,
            injections: 0,
            created_at: now,
            updated_at: now,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A gotcha as a build hands it in.
    pub(crate) fn draft(content: &str) -> Draft {
        Draft {
            kind: KnowledgeKind::Gotcha,
            content: content.to_owned(),
            globs: vec!["*.sql".to_owned()],
            action: Some(Action::Create),
            topics: vec![" SQL ".to_owned()],
            confidence: 0.7,
            execution: "build-1".to_owned(),
            idea: Slug::from_text("habits"),
            evidence: vec!["attempt/1".to_owned()],
            discovered_by: ComponentName::parse("build").unwrap(),
            from_person: false,
        }
    }

    /// The item of a draft, with an id by number.
    pub(crate) fn item(number: u128) -> KnowledgeItem {
        draft("SQLite has no DATETIME type; store dates as TEXT").into_item(
            KnowledgeId::from(uuid::Uuid::from_u128(number)),
            DateTime::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_draft_becomes_a_tidy_candidate_and_what_a_person_says_is_confirmed() {
        let made = item(1);
        assert_eq!(made.topics, ["sql"]);
        assert_eq!(made.state, KnowledgeState::Candidate);
        assert_eq!(made.occurrences(), 1);
        let mut said = draft("x");
        said.from_person = true;
        said.confidence = 7.0;
        let said = said.into_item(made.id, DateTime::UNIX_EPOCH);
        assert_eq!(said.state, KnowledgeState::Confirmed);
        assert!((said.confidence - 1.0).abs() < f64::EPSILON);
    }
}
