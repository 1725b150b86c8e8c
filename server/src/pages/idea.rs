//! An idea: its conversation with what was understood, its brief, and what became of it.

pub(super) mod file;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use ropewalk_desk::attachments::kept;
use ropewalk_desk::ideas::{self, Opening};
use ropewalk_desk::views::idea::answer::PartialAnswer;
use ropewalk_desk::views::idea::{self, IdeaView};
use ropewalk_schemas::Slug;
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::{Author, Idea, IdeaKind, IdeaState, Message, Phase, Session};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::{SpecState, Specification};

use super::form::Fields;
use super::frame::{Frame, go, page};
use super::{markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Path};

#[derive(Template)]
#[template(path = "idea.html")]
struct IdeaPage {
    frame: Frame,
    view: IdeaView,
    said: Vec<MessageView>,
    /// Whether somebody waits for an answer.
    is_awaited: bool,
    /// What a model is saying of it.
    speaking: PartialAnswer,
    pieces: Vec<Piece>,
    /// What its brief says.
    brief: Option<String>,
}

/// A message as it is shown.
struct MessageView {
    message: Message,
    html: String,
    files: Vec<FileLink>,
}

/// A file that came along.
struct FileLink {
    name: String,
    is_picture: bool,
}

/// Something that was understood.
struct Piece {
    kind: String,
    summary: String,
    html: String,
    confidence: f64,
}

impl IdeaPage {
    fn phase(&self) -> Option<Phase> {
        self.view.conversation.as_ref().map(|session| session.phase)
    }

    /// Returns how sure the conversation is, in percent.
    fn confidence(&self) -> Option<u32> {
        let session = self.view.conversation.as_ref();
        session.map(|session| percent(session.signals.confidence))
    }

    fn is_open(&self) -> bool {
        self.view.idea.state != IdeaState::Abandoned
    }

    /// Returns whether "that is all" says anything new.
    fn can_finish(&self) -> bool {
        self.is_open() && self.phase().is_some_and(|phase| phase != Phase::Complete)
    }

    /// Returns whether nothing stands against asking for a specification.
    fn can_specify(&self) -> bool {
        // What is built already is changed by a revision.
        let stands = |spec: &Specification| {
            let on_its_way = matches!(spec.state, SpecState::Draft | SpecState::Generated);
            on_its_way || spec.approval.is_some()
        };
        self.is_open()
            && self.view.idea.state != IdeaState::Landed
            && self.phase() == Some(Phase::Complete)
            && !self.view.specifications.iter().any(stands)
    }

    fn can_abandon(&self) -> bool {
        self.is_open() && self.view.idea.state != IdeaState::Landed
    }
}

fn percent(share: f64) -> u32 {
    // A share lies between 0 and 1.
    format!("{:.0}", share.clamp(0.0, 1.0) * 100.0)
        .parse()
        .unwrap_or_default()
}

/// Shows an idea.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(slug): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let name = named(&slug)?;
    let folder = |idea: &_| (shared.folder)(idea);
    let view = idea::show(&shared.services.store, &name, folder).await?;
    let view = view.ok_or_else(|| unknown(&slug))?;
    let said = view.messages.iter().map(|message| MessageView {
        html: markdown::html(&message.text),
        files: files(&shared, &view.idea, message),
        message: message.clone(),
    });
    let session = view.conversation.as_ref();
    let pieces = session.map_or_else(Vec::new, pieces);
    let awaited: Vec<&Message> = awaited(&view.messages).collect();
    let is_awaited = !awaited.is_empty();
    let heard = |message: &&Message| shared.partial_answers.answer_to(message.id);
    let speaking = awaited.iter().find_map(heard);
    page(&IdeaPage {
        said: said.collect(),
        is_awaited,
        speaking: speaking.unwrap_or_default(),
        pieces,
        brief: view.brief.as_deref().map(markdown::html),
        frame,
        view,
    })
}

fn files(shared: &ServerState, idea: &Idea, message: &Message) -> Vec<FileLink> {
    let files = message.attachments.iter();
    let links = files.filter_map(|file| {
        let (_, name) = file.path.rsplit_once('/')?;
        Some(FileLink {
            name: name.to_owned(),
            is_picture: kept::is_picture(&shared.state, idea, file),
        })
    });
    links.collect()
}

/// Returns what people said that has no answer.
fn awaited(messages: &[Message]) -> impl Iterator<Item = &Message> {
    let is_answered = |id| messages.iter().any(|other| other.answers == Some(id));
    messages
        .iter()
        .filter(move |message| message.author == Author::Person && !is_answered(message.id))
}

fn pieces(session: &Session) -> Vec<Piece> {
    let artifacts = session.signals.artifacts.iter();
    artifacts
        .map(|artifact| Piece {
            kind: artifact.kind.replace('-', " "),
            summary: artifact.summary.clone(),
            html: markdown::html(&artifact.content),
            confidence: artifact.confidence,
        })
        .collect()
}

/// Begins an idea.
pub(super) async fn begin(
    State(shared): State<ServerState>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let opening = Opening {
        user: person.name,
        title: fields.filled("title"),
        text: fields.text("text").to_owned(),
        slug: None,
        kind: match fields.text("kind") {
            "venture" => Some(IdeaKind::Venture),
            "product" => Some(IdeaKind::Product),
            "tool" => Some(IdeaKind::Tool),
            "feature" => Some(IdeaKind::Feature),
            "fix" => Some(IdeaKind::Fix),
            _ => None,
        },
        whole: fields.filled("whole").is_some(),
    };
    let started = ideas::start(&shared.context(), opening).await?;
    Ok(go(&format!("/ideas/{}", started.idea)))
}

/// Says something to an idea.
pub(super) async fn say(
    State(shared): State<ServerState>,
    Path(slug): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let (store, name) = (&shared.services.store, named(&slug)?);
    let found = store.get::<Idea>(name.as_str()).await?;
    let session = found.ok_or_else(|| unknown(&slug))?.session;
    let text = fields.text("text");
    // A correction is said like anything else, and names what it is about.
    let text = match fields.filled("about") {
        Some(about) if !text.trim().is_empty() => {
            format!("What you took as the {about} is not so: {text}")
        }
        _ => text.to_owned(),
    };
    ideas::say(&shared.context(), session, &person.name, &text).await?;
    Ok(go(&format!("/ideas/{slug}#say")))
}

/// Ends the conversation: the brief is written of what is known.
pub(super) async fn finish(
    State(shared): State<ServerState>,
    Path(slug): Path<String>,
    Asker(person): Asker,
) -> Result<Response, Problem> {
    ideas::finish(&shared.context(), &named(&slug)?, &person.name).await?;
    Ok(go(&format!("/ideas/{slug}")))
}

/// Gives an idea up.
pub(super) async fn abandon(
    State(shared): State<ServerState>,
    Path(slug): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let reason = fields.filled("reason");
    ideas::abandon(&shared.context(), &named(&slug)?, &person, reason).await?;
    Ok(go(&format!("/ideas/{slug}")))
}

/// Returns the name of an idea; what is no name names nothing.
pub(super) fn named(slug: &str) -> Result<Slug, Problem> {
    Slug::parse(slug).map_err(|_| unknown(slug))
}

fn unknown(slug: &str) -> Problem {
    let text = format!(
        "no idea is called `{}`; the board shows them all",
        clip::line(slug, 80)
    );
    Problem::new(StatusCode::NOT_FOUND, "unknown-id", text)
}
