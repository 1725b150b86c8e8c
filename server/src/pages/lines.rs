//! Lines that people comment on: of a specification's documents, and of what a finished build changed. What is said
//! goes together, as one revision.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::comments::{self, Comment};
use ropewalk_desk::views::lines::{FileLines, Line, LineKind, LinesView, Side};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{CommitId, ContentHash};

use super::form::{Fields, unreadable};
use super::frame::{Frame, go, page};
use super::{build, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Path};

/// The most lines on a page.
const MOST_LINES: usize = 6_000;

#[derive(Template)]
#[template(path = "lines.html")]
struct LinesPage {
    frame: Frame,
    title: String,
    /// The pages above, each with how it is called.
    above: Vec<(String, String)>,
    /// Where comments go, below the page above.
    action: String,
    /// What the lines were shown of.
    of: String,
    files: Vec<FileLines>,
    /// Why nothing can be said, if so.
    refusal: Option<String>,
}

impl LinesPage {
    fn new(frame: Frame, lines: LinesView) -> Self {
        let LinesView { of, mut files } = lines;
        let mut left = MOST_LINES;
        for file in &mut files {
            file.cut |= file.lines.len() > left;
            file.lines.truncate(left);
            left -= file.lines.len();
        }
        Self {
            frame,
            title: String::new(),
            above: Vec::new(),
            action: String::new(),
            of,
            files,
            refusal: None,
        }
    }
}

/// Returns the class of a line.
const fn class(line: &Line) -> &'static str {
    match line.kind {
        LineKind::Same => "same",
        LineKind::Added => "added",
        LineKind::Removed => "removed",
        LineKind::Place => "place",
    }
}

/// Returns the sign before a line, as a difference has it.
const fn sign(line: &Line) -> &'static str {
    match line.kind {
        LineKind::Same => " ",
        LineKind::Added => "+",
        LineKind::Removed => "-",
        LineKind::Place => "",
    }
}

/// Returns where a line is pointed at, as forms say it.
fn place(line: &Line) -> Option<(&'static str, u32)> {
    let (side, number) = line.place()?;
    let side = match side {
        Side::Old => "old",
        Side::New => "new",
    };
    Some((side, number))
}

/// Shows the documents of the newest revision of a specification, line by line.
pub(super) async fn specification(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let found = specification_of(&shared, &id).await?;
    let lines = comments::lines_of_specification(&shared.services.store, &found).await?;
    let refusal = (found.state == SpecState::Draft)
        .then(|| "another revision is being written already".to_owned());
    page(&LinesPage {
        title: format!("Revision {}, line by line", found.revision),
        above: vec![
            (format!("/ideas/{}", found.idea), found.idea.to_string()),
            (format!("/specifications/{id}"), "specification".to_owned()),
        ],
        action: format!("/specifications/{id}/comments"),
        refusal,
        ..LinesPage::new(frame, lines)
    })
}

/// Shows what a build changed, line by line.
pub(super) async fn difference(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let found = build::found(&shared, &id).await?;
    let lines = comments::lines_of_build(&found, shared.changed(&found).await?);
    let refusal = comments::admits(&found).err();
    let spec = found.spec.to_string();
    let spec = shared.services.store.get::<Specification>(&spec).await?;
    let is_draft = spec.is_some_and(|spec| spec.state == SpecState::Draft);
    let refusal = match refusal {
        Some(refusal) => Some(refusal.to_string()),
        None => is_draft.then(|| "another revision is being written already".to_owned()),
    };
    page(&LinesPage {
        title: format!("What the build of {} changed", found.idea),
        above: vec![
            ("/builds".to_owned(), "Builds".to_owned()),
            (format!("/builds/{id}"), found.idea.to_string()),
        ],
        action: format!("/builds/{id}/comments"),
        refusal,
        ..LinesPage::new(frame, lines)
    })
}

/// Asks for another revision by comments on the lines of a specification.
pub(super) async fn on_specification(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let spec = specification_of(&shared, &id).await?.id;
    let hash = ContentHash::parse(fields.text("of")).map_err(|error| unreadable(&error))?;
    let said = said(&fields)?;
    comments::on_specification(&shared.context(), spec, &hash, &person, &said).await?;
    Ok(go(&format!("/specifications/{id}#said")))
}

/// Asks for another revision by comments on the lines of what a build changed.
pub(super) async fn on_build(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let found = build::found(&shared, &id).await?;
    let head = CommitId::parse(fields.text("of")).map_err(|error| unreadable(&error))?;
    let said = said(&fields)?;
    let files = shared.changed(&found).await?;
    let context = shared.context();
    let spec = comments::on_build(&context, &found, &head, &files, &person, &said).await?;
    Ok(go(&format!("/specifications/{spec}#said")))
}

/// Reads the comments of a form: `file.N`, `side.N`, `line.N` and `text.N`; one without words is none.
fn said(fields: &Fields) -> Result<Vec<Comment>, Problem> {
    let mut found = Vec::new();
    for number in 0.. {
        let field = |name: &str| fields.text(&format!("{name}.{number}"));
        if field("file").is_empty() {
            break;
        }
        let text = field("text").trim();
        if text.is_empty() {
            continue;
        }
        let line = field("line").parse();
        found.push(Comment {
            file: field("file").to_owned(),
            side: match field("side") {
                "old" => Side::Old,
                _ => Side::New,
            },
            line: line.map_err(|_| {
                Problem::usage((
                    "the number of the line is missing",
                    "open the page again, and press on a line",
                ))
            })?,
            text: text.to_owned(),
        });
    }
    Ok(found)
}

async fn specification_of(shared: &ServerState, id: &str) -> Result<Specification, Problem> {
    let list = "the page of its idea shows them";
    shown::find::<Specification>(shared, id, "specification", list).await
}
