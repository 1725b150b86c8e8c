//! Defines the typed reply of the model: what it says and what it heard.

use ropewalk_schemas::idea::IdeaKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model_question::ModelQuestion;

/// The most artifacts of one reply.
const ARTIFACTS: usize = 16;
/// The most decisions, and the most risks, of one reply.
const LINES: usize = 32;
/// The most bytes of one text.
const TEXT_BYTES: usize = 16 * 1024;

/// What the model submits to end its turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// What to say to the person, Markdown, when you wrote no words before the call; else leave it out.
    #[serde(default)]
    pub text: String,
    /// Parts of the idea that became clear, in the person's own words; leave out what is not said.
    #[serde(default)]
    pub artifacts: Vec<HeardArtifact>,
    /// What the person decided; kind `validation` for an assumption with evidence.
    #[serde(default)]
    pub decisions: Vec<HeardDecision>,
    /// Risks of the idea.
    #[serde(default)]
    pub risks: Vec<HeardRisk>,
    /// Decisions and risks of the session that hold no more, each as it stands there: a changed decision is withdrawn and
    /// made anew.
    #[serde(default)]
    pub withdrawn: Vec<String>,
    /// What sort of idea it is, once that is clear: `fix` or `feature` of what is in the repository, a `tool` for the person and
    /// people like them, a `product` that others use, a `venture` that has to find customers.
    #[serde(default)]
    pub kind: Option<IdeaKind>,
    /// How clear the whole idea is, 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// A question, if one has to be put formally.
    #[serde(default)]
    pub question: Option<ModelQuestion>,
}

/// A part of the idea that became clear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardArtifact {
    /// `target-user`, `problem`, `solution-concept`, `mvp-features`, `differentiator`, `brief`, or another kind.
    pub kind: String,
    /// One line.
    pub summary: String,
    /// The whole text, Markdown.
    #[serde(default)]
    pub content: String,
    /// 0 to 1; from 0.6 on it is saved to the idea folder.
    pub confidence: f64,
}

/// A decision of the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardDecision {
    /// The kind, for example `validation` or `scope`.
    pub kind: String,
    /// What was decided.
    pub summary: String,
}

/// A risk of the idea.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardRisk {
    /// The risk.
    pub summary: String,
    /// Where it was learned.
    #[serde(default)]
    pub source: Option<String>,
}

/// Reads a reply; the errors are for the model.
pub fn read(value: &Value) -> Result<Reply, Vec<String>> {
    let reply: Reply = serde_path_to_error::deserialize(value)
        .map_err(|error| vec![format!("`{}`: {}", error.path(), error.inner())])?;
    let errors = problems(&reply);
    if errors.is_empty() {
        Ok(reply)
    } else {
        Err(errors)
    }
}

fn problems(reply: &Reply) -> Vec<String> {
    let mut errors = Vec::new();
    let mut bounded = |name: &str, count: usize, most: usize| {
        if count > most {
            errors.push(format!("`{name}` has {count} entries; {most} is the most"));
        }
    };
    bounded("artifacts", reply.artifacts.len(), ARTIFACTS);
    bounded("decisions", reply.decisions.len(), LINES);
    bounded("risks", reply.risks.len(), LINES);
    bounded("withdrawn", reply.withdrawn.len(), LINES);
    if reply.text.len() > TEXT_BYTES {
        errors.push(format!("`text` has more than {TEXT_BYTES} bytes"));
    }
    if reply
        .confidence
        .is_some_and(|confidence| !(0.0..=1.0).contains(&confidence))
    {
        errors.push("`confidence` is not between 0 and 1".to_owned());
    }
    for (index, artifact) in reply.artifacts.iter().enumerate() {
        errors
            .extend(artifact_problems(artifact).map(|what| format!("`artifacts[{index}]` {what}")));
    }
    let long = |text: &str| text.len() > TEXT_BYTES;
    let lines = reply.decisions.iter().map(|decision| &decision.summary);
    if lines
        .chain(reply.risks.iter().map(|risk| &risk.summary))
        .any(|text| long(text))
    {
        errors.push(format!(
            "a decision or risk has more than {TEXT_BYTES} bytes"
        ));
    }
    if let Some(question) = &reply.question {
        errors.extend(question.problem().map(|what| format!("`question` {what}")));
    }
    errors
}

fn artifact_problems(artifact: &HeardArtifact) -> Option<String> {
    let kind = &artifact.kind;
    let named = !kind.is_empty()
        && kind.len() <= 48
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b' '));
    if !named {
        Some("has a `kind` that is not 1 to 48 of `a-z 0-9 -`".to_owned())
    } else if !(0.0..=1.0).contains(&artifact.confidence) {
        Some("has a `confidence` that is not between 0 and 1".to_owned())
    } else if artifact.content.len() > TEXT_BYTES || artifact.summary.len() > TEXT_BYTES {
        Some(format!("has a text of more than {TEXT_BYTES} bytes"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use ropewalk_engine::schema_of;

    #[test]
    fn a_reply_may_hold_as_little_as_its_text() {
        let reply = read(&json!({ "text": "Hello" })).unwrap();
        assert_eq!(
            reply,
            Reply {
                text: "Hello".to_owned(),
                ..Reply::default()
            }
        );
    }

    #[test]
    fn what_is_wrong_with_a_reply_is_named() {
        let artifact = |kind: &str, confidence: f64| json!({ "text": "x", "artifacts": [{ "kind": kind, "summary": "s", "confidence": confidence }] });
        let question = |default: &str| {
            json!({ "text": "x", "question": { "type": "clarifying", "text": "Which?",
                "options": [{ "label": "A" }], "default": default } })
        };
        let cases = [
            (json!({ "text": 1 }), "`text`"),
            (json!({ "text": "x", "confidence": 7 }), "`confidence`"),
            (artifact("problem", 1.5), "`artifacts[0]`"),
            (artifact("../etc", 0.5), "`artifacts[0]`"),
            (question("B"), "`default`"),
            (
                json!({ "text": "x", "question": { "type": "rude", "text": "?" } }),
                "`question.type`",
            ),
        ];
        for (value, named) in cases {
            let errors = read(&value).unwrap_err().join("; ");
            assert!(errors.contains(named), "{errors}");
        }
        assert!(read(&question("A")).is_ok());
    }

    #[test]
    fn the_schema_needs_no_definitions_elsewhere() {
        let schema = schema_of::<Reply>();
        assert_eq!(schema["type"], "object");
        assert!(!schema.to_string().contains("$ref"), "{schema}");
    }
}
