//! Reads and writes spec.md.

mod section;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use self::section::{Body, TITLES};
use super::escape::{Place, escaped, unescaped};
use super::front::{self, Line};
use super::{DocumentError, Fault, refuse_unreadable, shown, yaml};
use crate::ids::{ContentHash, Slug, SpecId, UserSlug};
use crate::specification::{Complexity, Document, SpecState, Specification};

/// How the title is written.
const TITLE: &str = "# Specification: ";

/// The front matter of spec.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpecHeader {
    /// The specification.
    pub id: SpecId,
    /// The idea.
    pub idea: Slug,
    /// The revision.
    pub revision: u32,
    /// How far it has come.
    pub status: SpecState,
    /// How large the plan is.
    pub complexity: Complexity,
    /// The hash that an approval binds to.
    #[serde(default)]
    pub hash: Option<ContentHash>,
    /// Who approved it.
    #[serde(default)]
    pub approved_by: Option<UserSlug>,
    /// When it was approved.
    #[serde(default)]
    pub approved_at: Option<DateTime<Utc>>,
}

impl From<&Specification> for SpecHeader {
    fn from(spec: &Specification) -> Self {
        let approval = spec.approval_of_newest();
        Self {
            id: spec.id,
            idea: spec.idea.clone(),
            revision: spec.revision,
            status: spec.state,
            complexity: spec.complexity,
            hash: spec.hash.clone(),
            approved_by: approval.map(|approval| approval.by.clone()),
            approved_at: approval.map(|approval| approval.at),
        }
    }
}

impl SpecHeader {
    /// The header of a revision that is approved, whatever came of `spec` since.
    pub fn approved(spec: &Specification, revision: u32, hash: &ContentHash) -> Self {
        let approval = spec.approval.as_ref();
        let approval = approval.filter(|approval| approval.hash == *hash);
        Self {
            revision,
            status: SpecState::Approved,
            hash: Some(hash.clone()),
            approved_by: approval.map(|approval| approval.by.clone()),
            approved_at: approval.map(|approval| approval.at),
            ..Self::from(spec)
        }
    }
}

/// Writes spec.md; [`parse`] gives back the same header and document.
pub fn render(header: &SpecHeader, document: &Document) -> String {
    let mut text = format!("---\n{}---\n\n{TITLE}", front_matter(header));
    text.push_str(&escaped(&document.title, Place::Line));
    text.push('\n');
    for section in section::of(document) {
        text.extend(["\n## ", section.title, "\n\n", &section.body]);
    }
    text
}

/// Writes another header above spec.md, and leaves the rest as it is written.
pub fn reheaded(text: &str, header: &SpecHeader) -> Result<String, DocumentError> {
    let front = front::split(text)?.front;
    let mut written = text.to_owned();
    written.replace_range(front, &front_matter(header));
    Ok(written)
}

fn front_matter(header: &SpecHeader) -> String {
    let mut text = String::new();
    let mut key = |name: &str, value: String| {
        text.extend([name, ": ", &value, "\n"]);
    };
    key("id", yaml::scalar(&header.id.to_string()));
    key("idea", yaml::scalar(header.idea.as_str()));
    key("revision", header.revision.to_string());
    key("status", header.status.to_string());
    key("complexity", header.complexity.as_str().to_owned());
    if let Some(hash) = &header.hash {
        key("hash", yaml::scalar(hash.as_str()));
    }
    if let Some(by) = &header.approved_by {
        key("approved_by", yaml::scalar(by.as_str()));
    }
    if let Some(at) = &header.approved_at {
        key("approved_at", yaml::scalar(&at.to_rfc3339()));
    }
    text
}

/// Reads spec.md.
pub fn parse(text: &str) -> Result<(SpecHeader, Document), DocumentError> {
    let header = header(text)?;
    let split = front::split(text)?;
    let mut document = Document::default();
    let rest = read_title(&split.body, &mut document)?;
    let mut seen = Vec::new();
    for section in sections(rest)? {
        if seen.contains(&section.title) {
            return Err(Fault::RepeatedSection(section.title.to_owned()).at(section.line));
        }
        section::read(&section, &mut document)?;
        seen.push(section.title);
    }
    Ok((header, document))
}

/// Reads what stands above spec.md, whatever stands below.
pub fn header(text: &str) -> Result<SpecHeader, DocumentError> {
    refuse_unreadable(text)?;
    let front = front::split(text)?.front;
    let front = text.get(front).unwrap_or_default();
    yaml::read(front).map_err(|error| Fault::FrontMatter(error.reason).at(error.line + 1))
}

/// Reads the title and returns the lines below it.
fn read_title<'a, 'b>(
    body: &'b [Line<'a>],
    document: &mut Document,
) -> Result<&'b [Line<'a>], DocumentError> {
    let at = body.iter().position(|line| !line.text.trim().is_empty());
    let first = body.first().map_or(1, |line| line.number);
    let missing = |line| Fault::NoTitle("# Specification: TITLE").at(line);
    let at = at.ok_or_else(|| missing(first))?;
    let (head, rest) = body.split_at(at + 1);
    let line = head.last().ok_or_else(|| missing(first))?;
    let title = line
        .text
        .strip_prefix(TITLE.trim_end())
        .ok_or_else(|| missing(line.number))?;
    document.title = unescaped(title.trim(), Place::Line);
    Ok(rest)
}

/// Cuts the lines at the headings.
fn sections<'a, 'b>(lines: &'b [Line<'a>]) -> Result<Vec<Body<'a, 'b>>, DocumentError> {
    let mut found: Vec<Body<'a, 'b>> = Vec::new();
    let mut start = 0;
    for (index, line) in lines.iter().enumerate() {
        let heading = line.text.strip_prefix("## ").map(str::trim);
        match (heading, found.last_mut()) {
            (Some(_), last) => {
                if let Some(last) = last {
                    last.lines = lines.get(start..index).unwrap_or_default();
                }
            }
            (None, None) if !line.text.trim().is_empty() => {
                return Err(Fault::UnknownSection(shown(line.text)).at(line.number));
            }
            (None, _) => continue,
        }
        let Some(heading) = heading else { continue };
        let title = TITLES
            .iter()
            .find(|title| title.eq_ignore_ascii_case(heading))
            .ok_or_else(|| Fault::UnknownSection(shown(heading)).at(line.number))?;
        start = index + 1;
        found.push(Body {
            title,
            line: line.number,
            lines: &[],
        });
    }
    if let Some(last) = found.last_mut() {
        last.lines = lines.get(start..).unwrap_or_default();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{KnowledgeId, RequirementId};
    use crate::repo_path::RepoPath;
    use crate::specification::{FilePlan, Requirement};
    use crate::task::GotchaReference;

    fn header() -> SpecHeader {
        SpecHeader {
            id: SpecId(uuid::Uuid::from_u128(1)),
            idea: Slug::parse("habits").unwrap(),
            revision: 2,
            status: SpecState::Generated,
            complexity: Complexity::Simple,
            hash: Some(ContentHash::of(b"x")),
            approved_by: Some(UserSlug::parse("007").unwrap()),
            approved_at: DateTime::from_timestamp_millis(1_700_000_000_123),
        }
    }

    fn document() -> Document {
        let item = |text: &str| vec![text.to_owned()];
        Document {
            title: "Habit streaks".to_owned(),
            context_read: vec!["README.md".to_owned(), "planning/brief.md".to_owned()],
            objective: "Record habits.\n\n## Not a heading\nand show streaks.".to_owned(),
            success_criteria: item("three days\nare a streak"),
            out_of_scope: item(""),
            requirements: vec![Requirement {
                id: RequirementId::parse("FR-1").unwrap(),
                text: "Records a | b".to_owned(),
                priority: "must".to_owned(),
                acceptance: "recording twice\ncounts once".to_owned(),
                source: String::new(),
                replaces: None,
            }],
            new_files: vec![FilePlan {
                path: RepoPath::parse("src/`odd`|name.rs").unwrap(),
                purpose: "all of it".to_owned(),
                owner: Some("build/habits".to_owned()),
            }],
            gotchas: vec![
                GotchaReference {
                    id: Some(KnowledgeId(uuid::Uuid::from_u128(7))),
                    text: "mind leap years".to_owned(),
                },
                GotchaReference {
                    id: None,
                    text: "[x] is no id".to_owned(),
                },
            ],
            ..Document::default()
        }
    }

    #[test]
    fn a_document_reads_back_as_it_was_written() {
        let text = render(&header(), &document());
        assert_eq!(parse(&text), Ok((header(), document())), "{text}");
        assert_eq!(render(&header(), &document()), text);
    }

    #[test]
    fn another_header_leaves_the_rest_as_it_is_written() {
        let text = format!("{}\nBy hand.\n", render(&header(), &document()));
        let approved = SpecHeader {
            status: SpecState::Approved,
            ..header()
        };
        let written = reheaded(&text, &approved).unwrap();
        assert_eq!(
            written,
            text.replace("status: generated", "status: approved")
        );
    }

    #[test]
    fn windows_line_breaks_and_a_byte_order_mark_change_nothing() {
        let text = render(&header(), &document());
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(parse(&windows), Ok((header(), document())));
    }

    #[test]
    fn a_malformed_document_names_line_and_cure() {
        let good = render(&header(), &document());
        let cases = [
            (String::new(), 1, "no front matter"),
            ("---\nid: x\n".to_owned(), 1, "no front matter"),
            (
                good.replace("revision: 2", "revision: two"),
                4,
                "front matter cannot be read",
            ),
            (
                good.replace("# Specification: ", "# Plan: "),
                12,
                "no title",
            ),
            (
                good.replace("## Objective", "## Aim"),
                19,
                "section `Aim` is not known",
            ),
            (
                good.replace("## Objective", "## Context Read"),
                19,
                "occurs twice",
            ),
            (
                good.replace("- three", "three"),
                28,
                "`three days` stands in a list",
            ),
            (
                good.replace("- FR-1 (", "- FR 1 ("),
                37,
                "`FR 1` is not a valid requirement id",
            ),
            (good.replace("- FR-1 (", "- ("), 37, "is no requirement"),
            (
                good.replace("| `src/", "| | `src/"),
                45,
                "is not a row with 3 cells",
            ),
            (good.replace("src/", "../"), 45, "leaves the repository"),
            (format!("{good}\0"), 0, "not UTF-8 text"),
        ];
        for (text, line, expected) in cases {
            let error = parse(&text).unwrap_err();
            let shown = error.to_string();
            assert!(
                shown.contains(expected) && !shown.contains('\n'),
                "{shown}\n{text}"
            );
            assert!(
                line == 0 || error.line == line,
                "{shown}, not line {line}\n{text}"
            );
        }
    }
}
