//! Defines what the model submits about a build.

use ropewalk_schemas::review::DivergenceClass;
use ropewalk_schemas::task::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most entries of one list.
const ENTRIES: usize = 20;
/// The most bytes of one text.
const TEXT_BYTES: usize = 4 * 1024;

/// What the model found in a build.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Approaches that worked and would work again.
    #[serde(default)]
    pub patterns: Vec<Lesson>,
    /// Mistakes that were made and mended, told so that somebody who was not there avoids them.
    #[serde(default)]
    pub gotchas: Vec<Lesson>,
    /// Differences between plan and change that a list of files does not show.
    #[serde(default)]
    pub divergences: Vec<Difference>,
    /// Remarks for people.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Something worth remembering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lesson {
    /// What it says, complete without the build it comes from.
    pub content: String,
    /// The files it applies to, as globs; none means all.
    #[serde(default)]
    pub globs: Vec<String>,
    /// The action it applies to; none means all.
    #[serde(default)]
    pub action: Option<Action>,
    /// What it is about, lower case.
    #[serde(default)]
    pub topics: Vec<String>,
    /// How sure it is, 0 to 1.
    #[serde(default = "usual")]
    pub confidence: f64,
}

/// A difference between plan and change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its class.
    pub class: DivergenceClass,
    /// The file.
    #[serde(default)]
    pub file: Option<String>,
    /// The task.
    #[serde(default)]
    pub task: Option<String>,
    /// The requirement, where it is about one, such as `FR-1`.
    #[serde(default)]
    pub requirement: Option<String>,
    /// What was planned.
    #[serde(default)]
    pub planned: String,
    /// What was done.
    #[serde(default)]
    pub actual: String,
}

const fn usual() -> f64 {
    0.7
}

/// Reads findings; the errors are for the model.
pub fn read(value: &Value) -> Result<Findings, Vec<String>> {
    let findings: Findings = serde_path_to_error::deserialize(value)
        .map_err(|error| vec![format!("`{}`: {}", error.path(), error.inner())])?;
    let errors = problems(&findings);
    if errors.is_empty() {
        Ok(findings)
    } else {
        Err(errors)
    }
}

fn problems(findings: &Findings) -> Vec<String> {
    let mut errors = Vec::new();
    let counts = [
        ("patterns", findings.patterns.len()),
        ("gotchas", findings.gotchas.len()),
        ("divergences", findings.divergences.len()),
        ("notes", findings.notes.len()),
    ];
    for (name, count) in counts {
        if count > ENTRIES {
            errors.push(format!(
                "`{name}` has {count} entries; {ENTRIES} is the most"
            ));
        }
    }
    let lessons = [
        ("patterns", &findings.patterns),
        ("gotchas", &findings.gotchas),
    ];
    for (name, list) in lessons {
        for (index, lesson) in list.iter().enumerate() {
            errors.extend(problem(lesson).map(|what| format!("`{name}[{index}]` {what}")));
        }
    }
    let differences = &findings.divergences;
    let texts = differences
        .iter()
        .flat_map(|one| [&one.planned, &one.actual]);
    if texts
        .chain(&findings.notes)
        .any(|text| text.len() > TEXT_BYTES)
    {
        errors.push(format!("a text has more than {TEXT_BYTES} bytes"));
    }
    errors
}

fn problem(lesson: &Lesson) -> Option<&'static str> {
    if lesson.content.trim().is_empty() {
        Some("has no `content`")
    } else if lesson.content.chars().count() > 2_000 {
        Some("has a `content` of more than 2000 characters")
    } else if !(0.0..=1.0).contains(&lesson.confidence) {
        Some("has a `confidence` that is not between 0 and 1")
    } else if lesson.globs.len() > ENTRIES || lesson.topics.len() > ENTRIES {
        Some("has too many `globs` or `topics`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn findings_may_be_empty() {
        assert_eq!(read(&json!({})), Ok(Findings::default()));
    }

    #[test]
    fn what_is_wrong_with_findings_is_named() {
        let cases = [
            (json!({ "patterns": [{ "content": " " }] }), "`patterns[0]`"),
            (
                json!({ "gotchas": [{ "content": "x", "confidence": 2 }] }),
                "`gotchas[0]`",
            ),
            (
                json!({ "divergences": [{ "class": "odd" }] }),
                "`divergences[0].class`",
            ),
            (json!({ "notes": vec!["x"; 21] }), "`notes`"),
            (json!({ "notes": ["x".repeat(5000)] }), "bytes"),
        ];
        for (value, named) in cases {
            let errors = read(&value).unwrap_err().join("; ");
            assert!(errors.contains(named), "{errors}");
        }
    }
}
