//! Answers presses at once: one that takes its time is answered without words, and what it came to is said in the chat.

use std::pin::pin;
use std::time::Duration;

use ropewalk_desk::phones;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::settling::settle;
use crate::api::{Interaction, Update};
use crate::surface::Surface;
use crate::updates::Origin;

/// How long a phone is let wait for what a press comes to.
const MOMENT: Duration = Duration::from_secs(1);

/// Does what the first of `updates` is; where that takes its time, those who pressed something wait no longer, whether it is that
/// press or one behind it. Returns whether Telegram may forget it.
pub(super) async fn settle_first(
    surface: &Surface,
    updates: &[Update],
    stop: &CancellationToken,
) -> bool {
    let Some(first) = updates.first() else {
        return true;
    };
    let began = Instant::now();
    let mut settled = pin!(settle(surface, first, Origin::Telegram, stop));
    let mut late = pin!(async {
        sleep(MOMENT).await;
        put_off(surface, updates).await;
    });
    let soon = tokio::select! {
        biased;
        is_settled = &mut settled => Some(is_settled),
        () = &mut late => None,
    };
    let is_settled = match soon {
        Some(is_settled) => {
            // An answer that is on its way arrives.
            if began.elapsed() >= MOMENT {
                timeout(MOMENT, late).await.ok();
            }
            is_settled
        }
        None => settled.await,
    };
    surface.presses.forget(first.id);
    is_settled
}

/// Answers the presses among `updates` that were not answered yet, without words. Of strangers none is.
async fn put_off(surface: &Surface, updates: &[Update]) {
    for update in updates {
        let (Some(from), Interaction::Pressed { .. }) = (update.from, &update.did) else {
            continue;
        };
        let person = phones::whose(&surface.services.store, &surface.people, from).await;
        if matches!(person, Ok(Some(_))) {
            surface.answer_without_words(update).await;
        }
    }
}
