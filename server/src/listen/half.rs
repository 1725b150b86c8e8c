//! Ends a connection on which no whole request has come when the process stops.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Counts the requests of one connection whose head has come, and which are not answered yet.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestCount(Arc<AtomicUsize>);

impl RequestCount {
    /// Counts one request until what is returned is dropped.
    pub(super) fn begin(&self) -> ServedRequest {
        self.0.fetch_add(1, Ordering::SeqCst);
        ServedRequest(self.clone())
    }

    fn is_idle(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

/// One request that is being answered.
#[derive(Debug)]
pub(super) struct ServedRequest(RequestCount);

impl Drop for ServedRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What comes in on a connection; it ends with `stop` where no request is served, so that nobody waits for the rest of one.
#[derive(Debug)]
pub(super) struct IncomingBytes<R> {
    pub(super) reader: R,
    pub(super) served: RequestCount,
    pub(super) stop: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for IncomingBytes<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.stop.is_cancelled() && self.served.is_idle() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.reader).poll_read(context, buffer)
    }
}

/// The body of an answer, whose request is served until the last of it was taken.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: axum::body::Body,
    pub(super) _served: ServedRequest,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
