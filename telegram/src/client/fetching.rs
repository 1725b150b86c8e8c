//! Says which file a message brings, and fetches it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use teloxide::net::Download;
use teloxide::requests::Requester;
use teloxide::types::{FileId, FileMeta, Message};
use teloxide::{Bot, DownloadError};
use tokio::io::AsyncWrite;

use super::translated;
use crate::api::{ApiError, File, Kind};

/// Returns the file that a message brings: the largest of the sizes of a photo.
pub(super) fn file_of(message: &Message) -> Option<File> {
    let file = |meta: &FileMeta, kind, name: &str, media_type: Option<String>| File {
        id: meta.id.0.clone(),
        kind,
        name: name.to_owned(),
        media_type,
        // What is left out is read as the largest there is.
        size_bytes: (meta.size != u32::MAX).then(|| meta.size.into()),
    };
    if let Some(document) = message.document() {
        let name = document.file_name.as_deref().unwrap_or("document");
        let media_type = document.mime_type.as_ref().map(ToString::to_string);
        return Some(file(&document.file, Kind::Document, name, media_type));
    }
    if let Some(photo) = message.photo().and_then(<[_]>::last) {
        let media_type = Some("image/jpeg".to_owned());
        return Some(file(&photo.file, Kind::Photo, "photo.jpg", media_type));
    }
    if let Some(voice) = message.voice() {
        let length = Duration::from_secs(voice.duration.seconds().into());
        let media_type = voice.mime_type.as_ref().map(ToString::to_string);
        return Some(file(
            &voice.file,
            Kind::Voice(length),
            "voice-note.ogg",
            media_type,
        ));
    }
    if let Some(audio) = message.audio() {
        let name = audio.file_name.as_deref().unwrap_or("audio");
        let media_type = audio.mime_type.as_ref().map(ToString::to_string);
        return Some(file(&audio.file, Kind::Document, name, media_type));
    }
    let video = message.video()?;
    let name = video.file_name.as_deref().unwrap_or("video");
    let media_type = video.mime_type.as_ref().map(ToString::to_string);
    Some(file(&video.file, Kind::Document, name, media_type))
}

/// Fetches a file of at most `most` bytes. What went wrong is not quoted: the token is a part of the address.
pub(super) async fn fetch(bot: &Bot, id: &str, most: u64) -> Result<Vec<u8>, ApiError> {
    let file = bot.get_file(FileId(id.to_owned())).await;
    let file = file.map_err(translated)?;
    let mut kept = BoundedBuffer {
        bytes: Vec::new(),
        most,
    };
    match bot.download_file(&file.path, &mut kept).await {
        Ok(()) => Ok(kept.bytes),
        Err(DownloadError::Io(_)) => Err(ApiError::Refused("it is too large".to_owned())),
        Err(DownloadError::Network(error)) => {
            let refused = error
                .status()
                .is_some_and(|status| status.is_client_error());
            Err(if refused {
                ApiError::Refused("Telegram has it no more".to_owned())
            } else {
                ApiError::Later {
                    after: None,
                    reason: "Telegram does not send it".to_owned(),
                }
            })
        }
    }
}

/// Keeps what is written, and no more than is allowed.
struct BoundedBuffer {
    bytes: Vec<u8>,
    most: u64,
}

impl AsyncWrite for BoundedBuffer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        more: &[u8],
    ) -> Poll<io::Result<usize>> {
        if (self.bytes.len() + more.len()) as u64 > self.most {
            return Poll::Ready(Err(io::Error::other("it is too large")));
        }
        self.bytes.extend_from_slice(more);
        Poll::Ready(Ok(more.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
