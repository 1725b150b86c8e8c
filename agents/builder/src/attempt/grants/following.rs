//! Lets an attempt go on to the head of its build when it is granted a file late that others have changed since it began.

use ropewalk_schemas::CommitId;
use ropewalk_workspace::Slot;
use tokio::sync::{mpsc, oneshot};

use crate::attempt::work::Work;
use crate::error::BuilderError;

/// Brings the tree of an attempt to another commit, for the tool that waits for it.
pub(in crate::attempt) struct Follower {
    head: CommitId,
    done: oneshot::Sender<()>,
}

/// Where the tools of an attempt say that they need a later head: whoever has the slot serves them.
pub(in crate::attempt) type Followers = mpsc::Receiver<Follower>;

/// Asks for a later head.
pub(in crate::attempt) type FollowerSender = mpsc::Sender<Follower>;

/// Makes the way from the tools to whoever has the slot.
pub(in crate::attempt) fn way() -> (FollowerSender, Followers) {
    mpsc::channel(1)
}

/// Asks for `head`, and waits until the tree stands on it; false when nobody serves any more.
pub(super) async fn ask(follow: &FollowerSender, head: CommitId) -> bool {
    let (done, served) = oneshot::channel();
    follow.send(Follower { head, done }).await.is_ok() && served.await.is_ok()
}

impl Follower {
    /// Moves the tree on, and says so.
    pub(in crate::attempt) async fn serve(
        self,
        work: &Work<'_>,
        slot: &mut Slot,
    ) -> Result<(), BuilderError> {
        go_on(work, slot, self.head).await?;
        // A tool that was ended meanwhile needs it no more.
        self.done.send(()).ok();
        Ok(())
    }
}

/// Moves tree and attempt on to `head`.
pub(super) async fn go_on(
    work: &Work<'_>,
    slot: &mut Slot,
    head: CommitId,
) -> Result<(), BuilderError> {
    slot.follow(&head, work.context.now()).await?;
    work.stand_on(head);
    Ok(())
}
