//! Fetches what people send.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use teloxide::net::Download;
use teloxide::requests::Requester;
use teloxide::types::FileId;
use teloxide::{Bot, DownloadError};
use tokio::io::AsyncWrite;

use super::translated;
use crate::api::ApiError;

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
