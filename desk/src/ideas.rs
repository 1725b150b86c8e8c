//! Takes what people say: the opening of an idea, and every message after it.

mod abandonment;

use std::path::{Path, PathBuf};

use ropewalk_orchestrator::Context;
use ropewalk_runtime::terminal;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{
    Attachment, Author, Idea, IdeaKind, IdeaState, Message, Phase, PhaseEntry, Session, Signals,
};
use ropewalk_schemas::payload::IdeationMessage;
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::{
    CorrelationId, MessageId, Payload, Priority, SessionId, Slug, Subject, UserSlug, clip,
};
use ropewalk_store::{ChangeSet, CommitError, ReadError, Store};

use crate::specifications::plan::{self, IdeaPlan};

pub use abandonment::{
    AbandonError, AbandonmentPreview, abandon, abandon_as_shown, preview_abandonment,
};

/// The most bytes of one message.
const MESSAGE_BYTES: usize = 64 * 1024;
/// The most bytes of a title that somebody gives.
const TITLE_BYTES: usize = 200;
/// So many letters of the first line of an opening are its title.
const TITLE_LETTERS: usize = 80;
/// What stands between the parts of a sentence.
const PART_ENDS: [&str; 5] = [". ", "; ", ": ", ", ", " ("];
/// So many ideas of one name are told apart by a number.
const NAMESAKES: u32 = 999;
/// What stands in the conversation for a person who ends it.
const THAT_IS_ALL: &str = "That is all.";

/// Says why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// There is nothing in it.
    #[error("the message is empty")]
    Empty,
    /// It is too long.
    #[error("the message has {0} bytes, and {MESSAGE_BYTES} is the most")]
    TooLong(usize),
    /// Its title is too long.
    #[error("the title has {0} bytes, and {TITLE_BYTES} is the most")]
    LongTitle(usize),
    /// The name is taken.
    #[error("the idea `{0}` is there already")]
    Taken(Slug),
    /// The idea was given up.
    #[error("the idea `{0}` was abandoned")]
    Abandoned(Slug),
    /// The conversation has come to its end.
    #[error("the idea `{idea}` is complete already")]
    Complete {
        /// The idea.
        idea: Slug,
        /// How it goes on.
        next: String,
    },
    /// There is no such idea.
    #[error("no idea is called `{0}`")]
    Unknown(Slug),
    /// There is no such session.
    #[error("no session has the id `{0}`")]
    UnknownSession(SessionId),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// How an idea begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Whose idea it is.
    pub user: UserSlug,
    /// Its title; the first line of the text when absent.
    pub title: Option<String>,
    /// The first message.
    pub text: String,
    /// Its name; made of the title, and numbered where that is taken, when absent.
    pub slug: Option<Slug>,
    /// What sort of idea it is; found out in the conversation when absent.
    pub kind: Option<IdeaKind>,
    /// Whether the text is the whole idea: it is taken as it is, and nothing is asked.
    pub whole: bool,
}

/// An idea that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedIdea {
    /// Its name.
    pub idea: Slug,
    /// The session that explores it.
    pub session: SessionId,
    /// The first message.
    pub message: MessageId,
    /// The chain of everything that follows from it.
    pub correlation: CorrelationId,
}

/// A message that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedMessage {
    /// The idea.
    pub idea: Slug,
    /// The message.
    pub message: MessageId,
}

/// Begins an idea with its first message, in a chain of events of its own.
pub async fn start(context: &Context, opening: Opening) -> Result<StartedIdea, ChatError> {
    let text = checked(&opening.text)?;
    let title = title_of(opening.title.as_deref(), text)?;
    let wanted = match &opening.slug {
        Some(slug) => slug.clone(),
        None => Slug::of_title(&title),
    };
    for number in 1..=NAMESAKES {
        let Some(slug) = namesake(&wanted, number) else {
            break;
        };
        match open(context, &opening, slug, &title, text).await {
            Err(CommitError::Conflict { table: "ideas", .. }) if opening.slug.is_none() => {}
            Err(CommitError::Conflict { table: "ideas", .. }) => break,
            started => return Ok(started?),
        }
    }
    Err(ChatError::Taken(wanted))
}

async fn open(
    context: &Context,
    opening: &Opening,
    slug: Slug,
    title: &str,
    text: &str,
) -> Result<StartedIdea, CommitError> {
    let correlation = CorrelationId(context.ids.next());
    let context = context.for_claim(correlation, Priority::URGENT);
    let now = context.now();
    let session = Session {
        id: SessionId(context.ids.next()),
        idea: slug.clone(),
        user: opening.user.clone(),
        phase: Phase::Exploring,
        signals: Signals::default(),
        waiting_for: None,
        phases: vec![PhaseEntry {
            phase: Phase::Exploring,
            at: now,
        }],
        correlation_id: correlation,
        created_at: now,
        updated_at: now,
    };
    let mut changes = ChangeSet::new();
    changes.insert(&Idea {
        slug,
        user: opening.user.clone(),
        title: title.to_owned(),
        kind: opening.kind,
        state: IdeaState::Draft,
        session: session.id,
        correlation_id: correlation,
        created_at: now,
    });
    changes.insert(&session);
    let words = Words {
        ends: opening.whole,
        ..Words::of(text)
    };
    let message = hear(&mut changes, &context, &session, &opening.user, words);
    context.store.commit(changes).await?;
    Ok(StartedIdea {
        idea: session.idea,
        session: session.id,
        message,
        correlation,
    })
}

/// Adds a message of a person to a session.
pub async fn say(
    context: &Context,
    session: SessionId,
    user: &UserSlug,
    text: &str,
) -> Result<AcceptedMessage, ChatError> {
    let text = checked(text)?;
    let session = open_session(&context.store, session).await?;
    add(context, &session, user, Words::of(text)).await
}

/// Returns a session in which something can be said.
pub(crate) async fn open_session(store: &Store, id: SessionId) -> Result<Session, ChatError> {
    let found = store.get::<Session>(&id.to_string()).await?;
    let session = found.ok_or(ChatError::UnknownSession(id))?;
    if is_abandoned(store, &session.idea).await? {
        return Err(ChatError::Abandoned(session.idea.clone()));
    }
    Ok(session.into_inner())
}

/// Returns the folder of an idea below the state directory.
pub fn folder(state: &Path, user: &UserSlug, idea: &Slug) -> PathBuf {
    let of_user = state.join("users").join(user.as_str());
    of_user.join("ideas").join(idea.as_str())
}

/// Says that the person has nothing to add to an idea: the brief is written of what is known, and its session ends.
pub async fn finish(
    context: &Context,
    slug: &Slug,
    user: &UserSlug,
) -> Result<AcceptedMessage, ChatError> {
    let session = unfinished(&context.store, slug).await?;
    let words = Words {
        ends: true,
        ..Words::of(THAT_IS_ALL)
    };
    add(context, &session, user, words).await
}

/// Returns the session of an idea that may still be ended.
pub async fn unfinished(store: &Store, slug: &Slug) -> Result<Session, ChatError> {
    let idea = store.get::<Idea>(slug.as_str()).await?;
    let idea = idea.ok_or_else(|| ChatError::Unknown(slug.clone()))?;
    if idea.state == IdeaState::Abandoned {
        return Err(ChatError::Abandoned(slug.clone()));
    }
    let session = store.get::<Session>(&idea.session.to_string()).await?;
    let session = session.ok_or(ChatError::UnknownSession(idea.session))?;
    if session.phase == Phase::Complete {
        return Err(ChatError::Complete {
            idea: slug.clone(),
            next: next_step(store, slug).await?,
        });
    }
    Ok(session.record)
}

/// Says how an idea goes on that has been talked about to the end: by its specification, as far as that has come.
pub async fn next_step(store: &Store, slug: &Slug) -> Result<String, ReadError> {
    let counts = plan::counting(store, slug).await?;
    let show = |spec| format!("`ropewalk spec show {spec}`");
    match counts.map(|spec| (spec.id, spec.state)) {
        Some((spec, SpecState::Draft)) => {
            let shown = show(spec);
            return Ok(format!(
                "{shown} shows its specification once it is written"
            ));
        }
        Some((spec, SpecState::Generated)) => {
            let shown = show(spec);
            return Ok(format!(
                "{shown} shows its specification, which waits for you"
            ));
        }
        Some((_, SpecState::Approved | SpecState::Rejected)) | None => {}
    }
    Ok(match plan::of_idea(store, slug).await? {
        Some(IdeaPlan { spec, progress }) => format!(
            "for a change say `ropewalk spec revise {spec} WORDS`, which changes its specification, {progress}"
        ),
        None => format!("go on with `ropewalk spec generate {slug}`"),
    })
}

/// Adds what a person said to a session.
pub(crate) async fn add(
    context: &Context,
    session: &Session,
    user: &UserSlug,
    words: Words<'_>,
) -> Result<AcceptedMessage, ChatError> {
    let context = context.for_claim(session.correlation_id, Priority::URGENT);
    let mut changes = ChangeSet::new();
    let message = hear(&mut changes, &context, session, user, words);
    context.store.commit(changes).await?;
    Ok(AcceptedMessage {
        idea: session.idea.clone(),
        message,
    })
}

/// Returns whether an idea was given up.
pub async fn is_abandoned(store: &Store, slug: &Slug) -> Result<bool, ReadError> {
    let idea = store.get::<Idea>(slug.as_str()).await?;
    Ok(idea.is_some_and(|idea| idea.state == IdeaState::Abandoned))
}

/// Returns an idea as it stands; that it is landed, its builds say.
pub fn standing(idea: Idea, builds: &[Build]) -> Idea {
    let landed = builds.iter().any(|build| build.merged.is_some());
    match idea.state.to(IdeaState::Landed) {
        Ok(state) if landed => Idea { state, ..idea },
        _ => idea,
    }
}

/// What a person said.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// The text.
    pub text: &'a str,
    /// Whether nothing will be added to it.
    pub ends: bool,
    /// The files that came with it.
    pub attachments: &'a [Attachment],
}

impl<'a> Words<'a> {
    /// Returns words alone, to which something may be added.
    pub const fn of(text: &'a str) -> Self {
        Self {
            text,
            ends: false,
            attachments: &[],
        }
    }
}

/// Adds to `changes` what a person said, and that it was said.
pub fn hear(
    changes: &mut ChangeSet,
    context: &Context,
    session: &Session,
    user: &UserSlug,
    words: Words<'_>,
) -> MessageId {
    let message = Message {
        id: MessageId(context.ids.next()),
        session: session.id,
        author: Author::Person,
        user: Some(user.clone()),
        text: words.text.to_owned(),
        attachments: words.attachments.to_vec(),
        at: context.now(),
        answers: None,
        told: None,
    };
    changes.insert(&message);
    changes.emit(context.event(
        Subject::idea(&session.idea),
        Payload::IdeationMessage(IdeationMessage {
            session_id: session.id,
            idea_slug: session.idea.clone(),
            message_id: message.id,
            user_slug: user.clone(),
            ends: words.ends,
        }),
    ));
    message.id
}

/// Returns a text without what surrounds it; it says something, and not too much at once.
pub(crate) fn checked(text: &str) -> Result<&str, ChatError> {
    let text = text.trim();
    if terminal::is_unseen(text) {
        Err(ChatError::Empty)
    } else if text.len() > MESSAGE_BYTES {
        Err(ChatError::TooLong(text.len()))
    } else {
        Ok(text)
    }
}

fn namesake(wanted: &Slug, number: u32) -> Option<Slug> {
    if number == 1 {
        Some(wanted.clone())
    } else {
        Slug::parse(&format!("{wanted}-{number}")).ok()
    }
}

/// Returns the title of an idea: the one given, else the first line of its opening, cut where a part of it ends, else at a word.
fn title_of(given: Option<&str>, opening: &str) -> Result<String, ChatError> {
    let bytes = given.map_or(0, |given| given.trim().len());
    if bytes > TITLE_BYTES {
        return Err(ChatError::LongTitle(bytes));
    }
    let line = given
        .into_iter()
        .chain(opening.lines())
        .map(|line| line.trim().trim_start_matches('#').trim())
        .find(|line| !terminal::is_unseen(line))
        .unwrap_or(opening);
    if line.chars().count() <= TITLE_LETTERS {
        return Ok(line.to_owned());
    }
    let cut = clip::words(line, TITLE_LETTERS + 1);
    let Some(words) = cut.strip_suffix('…') else {
        return Ok(cut);
    };
    // It heads documents that people read: half a sentence says less than what stands before it, where that is most of it.
    let letters = |text: &str| text.chars().count();
    let part = last_part(words).filter(|part| letters(part) * 2 >= letters(words));
    let kept = part.unwrap_or(words);
    Ok(format!("{}…", kept.trim_end_matches([',', ';', ':', '.'])))
}

/// Returns the words up to the last end of a part; none ends behind an abbreviation, or while a bracket is open.
fn last_part(words: &str) -> Option<&str> {
    let of_mark = move |mark: &'static str| {
        let ends = words.match_indices(mark);
        let ends = ends.map(move |(end, _)| &words[..end]);
        ends.filter(move |part| !is_abbreviated(part, mark))
    };
    let is_closed = |part: &&str| part.matches('(').count() <= part.matches(')').count();
    let parts = PART_ENDS.into_iter().flat_map(of_mark).filter(is_closed);
    parts.max_by_key(|part| part.len())
}

/// Returns whether `part`, which `mark` follows, ends with an abbreviation: single letters with a period behind each.
fn is_abbreviated(part: &str, mark: &str) -> bool {
    let last = part.rsplit([' ', '(']).next().unwrap_or_default();
    let has_period = last.ends_with('.') || mark.starts_with('.');
    let mut pieces = last.trim_end_matches('.').split('.');
    let is_letter =
        |piece: &str| piece.chars().count() == 1 && piece.chars().all(char::is_alphabetic);
    has_period && pieces.all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_one_given_or_the_first_line() {
        let long = "word ".repeat(30);
        let letters = "ä".repeat(100);
        let title = |given, opening| title_of(given, opening).unwrap();
        assert_eq!(title(Some(" Habits "), "text"), "Habits");
        assert_eq!(title(Some("\u{200b}"), "text"), "text");
        assert_eq!(title(None, "\u{202e}\u{200b}\n# Habits\nmore"), "Habits");
        assert_eq!(title(None, "#"), "#");
        assert!(title(None, &long).ends_with("word…"));
        assert!(title(None, &long).chars().count() <= 81);
        assert!(title(Some(&letters), "text").ends_with('…'));
        let opening = "A table should get a new format called asciidoc-grid, and an option --grid for that in the program";
        let part = "A table should get a new format called asciidoc-grid…";
        assert_eq!(title(None, opening), part);
        // Neither an abbreviation nor an open bracket is the end of a part.
        let opening = "Let people bring in what they keep elsewhere, e.g. spreadsheets of other programs that they have";
        let part = "Let people bring in what they keep elsewhere…";
        assert_eq!(title(None, opening), part);
        let opening = "Let people bring in all of what they keep (walks, and the weather, as each of them wrote it down)";
        let part = "Let people bring in all of what they keep…";
        assert_eq!(title(None, opening), part);
        // Half of it is half of its letters, whatever they take in bytes.
        let opening = format!("{}, {}", "ä".repeat(30), "word ".repeat(20));
        assert!(title(None, &opening).ends_with("word…"));
        // A part that is little of it says less than the words.
        let opening = format!("Well, {long}");
        assert!(title(None, &opening).ends_with("word…"));
        let refused = title_of(Some(&"ä".repeat(101)), "text").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the title has 202 bytes, and 200 is the most"
        );
    }

    #[test]
    fn what_nobody_would_see_is_an_empty_message() {
        for text in [" \n", "\u{200b}", "\u{202e}\u{200b}"] {
            assert!(matches!(checked(text), Err(ChatError::Empty)), "{text:?}");
        }
        assert_eq!(checked(" a\u{200b} ").unwrap(), "a\u{200b}");
    }
}
