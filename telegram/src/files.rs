//! Keeps what people send along with what they write: photos, voice notes and documents belong to the idea that is talked
//! about, and are told in its conversation.

use std::future;
use std::time::Duration;

use ropewalk_desk::attachments::{self, AttachError, AttachmentReceipt, FILE_BYTES, Upload};
use ropewalk_desk::ideas::ChatError;
use ropewalk_desk::phones;
use ropewalk_runtime::idle;
use ropewalk_schemas::idea::{Attachment, Idea, Message};
use ropewalk_schemas::{ContentHash, SessionId, clip};
use ropewalk_store::Query;
use tracing::debug;

use crate::api::{ApiError, File, Interaction, Kind};
use crate::commands::SAID_BACK;
use crate::surface::{Answer, Surface, SurfaceError, Whom};
use crate::talk::{self, landed, silence};
use crate::words::refusal;

/// How often a file is asked for before whoever sent it has to send it again.
const TRIES: u32 = 5;
/// How long is waited in between, where Telegram does not say.
const REST: Duration = Duration::from_secs(2);
/// How long a file is fetched, all tries together: what its sender does meanwhile waits behind it. A try is two requests of at
/// most 45 seconds, so that there is time for two of the longest.
const PATIENCE: Duration = Duration::from_mins(3);
/// After how long its sender hears that it is still fetched.
const STILL: Duration = Duration::from_secs(10);

/// Returns whether something brings a file that is to be fetched.
pub(crate) fn brings_one(did: &Interaction) -> bool {
    match did {
        Interaction::Sent {
            file,
            forwarded: false,
            ..
        } => file.size_bytes.is_none_or(|size| size <= FILE_BYTES),
        _ => false,
    }
}

/// Keeps a file with the idea that is talked about; begins one with its words where there is none.
pub(crate) async fn sent(
    surface: &Surface,
    whom: &Whom,
    file: &File,
    words: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let phone = phones::of(store, &whom.person.name).await?;
    let idea = match &phone.idea {
        Some(slug) => store.get::<Idea>(slug.as_str()).await?,
        None => None,
    };
    // Where Telegram does not say the size, the bound of fetching finds it out.
    if let Some(size) = file.size_bytes.filter(|size| *size > FILE_BYTES) {
        return Ok(refusal::file(&AttachError::TooLarge(size)).into());
    }
    let Some(idea) = idea else {
        let first = "Write first what you want to have built; files are kept with it then.";
        return Ok(first.to_owned().into());
    };
    if let Some(landed) = landed::told(surface, whom, &idea, words).await? {
        return Ok(Answer {
            text: format!("{} The file is not kept.", landed.text),
            ..landed
        });
    }
    // Nothing is in hand before it is there: who stops waits for no file, and fetches it again.
    let bytes = match idle::waiting(fetched(surface, whom, file)).await {
        Ok(bytes) => bytes,
        Err(error) => {
            let told = format!("It could not be fetched, so send it again: {error}.");
            return Ok(told.into());
        }
    };
    if kept_already(surface, whom, idea.session, &bytes).await? {
        return Ok("It is kept.".to_owned().into());
    }
    let note = note(file.kind);
    let sent = Upload {
        name: &file.name,
        media_type: file.media_type.as_deref(),
        bytes: &bytes,
        words,
        note: &note,
    };
    let (context, user) = (surface.context(), &whom.person.name);
    match attachments::attach(&context, &surface.state, idea.session, user, sent).await {
        Ok(attached) => {
            let (idea, message) = (attached.said.idea.clone(), attached.said.message);
            let waits = silence::told(surface, &phone).await?;
            talk::listen(surface, whom, idea, message).await?;
            let told = told(file.kind, &attached);
            let told = waits.map_or_else(|| told.clone(), |waits| format!("{told}\n{waits}"));
            Ok(told.into())
        }
        Err(AttachError::Chat(ChatError::Read(error))) => Err(error.into()),
        Err(AttachError::Chat(ChatError::Commit(error))) => Err(error.into()),
        Err(error) => Ok(refusal::file(&error).into()),
    }
}

/// Fetches a file within the time for it; whoever sent it is told where that takes long.
async fn fetched(surface: &Surface, whom: &Whom, file: &File) -> Result<Vec<u8>, ApiError> {
    let tells = async {
        tell_still(surface, whom, file).await;
        future::pending::<Result<Vec<u8>, ApiError>>().await
    };
    tokio::select! {
        biased;
        fetched = tried(surface, &file.id) => fetched,
        () = surface.services.clock.sleep(PATIENCE) => {
            let minutes = PATIENCE.as_secs() / 60;
            Err(ApiError::Unanswered(format!("it did not come within {minutes} minutes")))
        }
        never = tells => never,
    }
}

/// Fetches a file, again while Telegram puts it off, but not for longer than there is time.
async fn tried(surface: &Surface, id: &str) -> Result<Vec<u8>, ApiError> {
    let mut tries = 1;
    loop {
        match surface.api.fetch(id, FILE_BYTES).await {
            Err(error @ (ApiError::Later { .. } | ApiError::Unanswered(_)))
                if tries < TRIES && error.rest(REST) < PATIENCE =>
            {
                surface.services.clock.sleep(error.rest(REST)).await;
                tries += 1;
            }
            fetched => return fetched,
        }
    }
}

/// Tells whoever sent a file that it is still fetched, once that takes long; a later try tells it no second time.
async fn tell_still(surface: &Surface, whom: &Whom, file: &File) {
    let now = surface.services.clock.now();
    let waited = now - whom.begun_before.unwrap_or(now);
    let Some(rest) = STILL.checked_sub(waited.to_std().unwrap_or_default()) else {
        return;
    };
    surface.services.clock.sleep(rest).await;
    let name = clip::line(&file.name, SAID_BACK);
    let told = format!(
        "Still fetching `{name}`. What you send meanwhile is kept and comes behind it; /stop and /stopall are done at once."
    );
    if let Err(error) = surface.say(&whom.person.name, whom.chat, told).await {
        debug!("nobody heard that a file is still fetched: {error}");
    }
}

/// Returns whether an earlier try had kept the same file.
async fn kept_already(
    surface: &Surface,
    whom: &Whom,
    session: SessionId,
    bytes: &[u8],
) -> Result<bool, SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(false);
    };
    let hash = ContentHash::of(bytes);
    let messages = Query::new().equal("session", session);
    let messages = surface.services.store.list::<Message>(messages).await?;
    Ok(messages.iter().any(|message| {
        let is_it = |file: &Attachment| file.hash == hash;
        message.at >= begun && message.attachments.iter().any(is_it)
    }))
}

/// What is to be known about a file by whoever reads of it.
fn note(kind: Kind) -> String {
    match kind {
        Kind::Voice(length) => format!(
            "It is a voice note of {} s, of which nobody wrote down the words.",
            length.as_secs()
        ),
        Kind::Photo => "It is a photo, which is not looked at.".to_owned(),
        Kind::Document => String::new(),
    }
}

/// Says what became of a file.
fn told(kind: Kind, attached: &AttachmentReceipt) -> String {
    let kept = format!(
        "Kept with `{}` as `{}`.",
        attached.said.idea, attached.file.path
    );
    match kind {
        Kind::Voice(_) => format!(
            "{kept} No provider here writes down what is said in it, so write what is to be heard."
        ),
        Kind::Photo => {
            format!("{kept} Nobody here looks at it, so write what is to be seen.")
        }
        Kind::Document => kept,
    }
}
