//! What the first page weighs, with all that it is drawn by.

use std::io::Read as _;

use serde_json::json;

use super::FILES;
use crate::browser::Browser;
use crate::world::{ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_useful_page_is_no_larger_than_100_kib_with_all_that_it_is_drawn_by() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    world.specified().await;
    for number in 0..60 {
        let text = format!("A title of as many letters as titles have, number {number:02}");
        let begun = json!({ "text": text, "slug": format!("an-idea-with-a-name-{number}") });
        let begun = world.send("/api/ideation/sessions", &begun).await;
        assert_eq!(begun.status, 201, "{}", begun.text);
    }
    let board = browser.read("/").await.text;
    assert!(board.matches("data-entry").count() >= 50, "{board}");
    let mut size = board.len();
    // Reads what comes as it comes.
    let plainly = reqwest::Client::builder().no_gzip().build().unwrap();
    for name in FILES {
        let path = format!("/static/{name}");
        let plain = answered(world.bare("GET", &path)).await;
        let small = plainly.get(format!("http://{}{path}", world.address));
        let small = small.header("Accept-Encoding", "br, gzip;q=0.8");
        let small = small.send().await.unwrap();
        assert_eq!(small.headers()["content-encoding"], "gzip", "{name}");
        let small = small.bytes().await.unwrap();
        size += small.len();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&small[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, plain.text, "{name}");
        let refused = plainly.get(format!("http://{}{path}", world.address));
        let refused = refused.header("Accept-Encoding", "gzip;q=0");
        assert_eq!(answered(refused).await.text, plain.text, "{name}");
    }
    assert!(size <= 100 * 1024, "{size} bytes");
    world.stop().await;
}
