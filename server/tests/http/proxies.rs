//! Behind a proxy each is counted by themselves, and nobody says on their own who they are.

use ropewalk_config::settings::Network;

use crate::world::{ADA, ServerWorld, answered};

/// Where a proxy says whom it asks for.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Serves to whom a proxy on this machine asks for.
async fn behind_a_proxy() -> ServerWorld {
    let here = Network::try_from("127.0.0.1".to_owned()).unwrap();
    ServerWorld::behind(vec![here]).await
}

/// Asks as whoever has `token`, for whom a proxy heard; returns the status.
async fn asked(world: &ServerWorld, path: &str, token: &str, heard: &str) -> u16 {
    let request = world.ask("GET", path, token);
    answered(request.header(FORWARDED_FOR, heard)).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_who_guesses_tokens_waits_alone() {
    let world = behind_a_proxy().await;
    let mut last = 0;
    for guess in 0..25 {
        // What stands first the one who guesses has written.
        let heard = format!("198.51.100.{guess}, 203.0.113.9");
        let token = format!("guess-{guess}");
        last = asked(&world, "/api/profile", &token, &heard).await;
    }
    assert_eq!(last, 429, "whatever is said of others");
    let path = "/api/profile";
    assert_eq!(asked(&world, path, ADA, "203.0.113.9").await, 429);
    assert_eq!(asked(&world, path, ADA, "203.0.113.10").await, 200);
    assert_eq!(world.read(path).await["name"], "ada", "and who is here");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_proxy_is_not_believed_to_ask_for_others() {
    let world = ServerWorld::new().await;
    let mut last = 0;
    for guess in 0..25 {
        let (token, heard) = (format!("guess-{guess}"), format!("203.0.113.{guess}"));
        last = asked(&world, "/api/profile", &token, &heard).await;
    }
    assert_eq!(last, 429);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_on_the_machine_alone_is_told_to_nobody_behind_its_proxy() {
    let world = behind_a_proxy().await;
    for path in ["/metrics", "/readyz"] {
        assert_eq!(asked(&world, path, ADA, "203.0.113.9").await, 403, "{path}");
        // Not even where they say that they are here.
        let heard = "127.0.0.1, 203.0.113.9";
        assert_eq!(asked(&world, path, ADA, heard).await, 403, "{path}");
        assert_eq!(
            answered(world.bare("GET", path)).await.status,
            200,
            "{path}"
        );
    }
    world.stop().await;
}
