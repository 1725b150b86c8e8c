//! What the page of an idea shows of the document that its conversation comes to.

use std::fs;

use ropewalk_schemas::specification::BRIEF;
use serde_json::json;

use crate::browser::Browser;
use crate::world::ServerWorld;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_idea_has_its_brief_once_it_is_written_and_hostile_words_of_it_are_text() {
    let world = ServerWorld::new().await;
    let begun = json!({ "text": "Walks", "slug": "walks" });
    let begun = world.send("/api/ideation/sessions", &begun).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let browser = Browser::new(&world).await;
    let page = browser.read("/ideas/walks").await.text;
    assert!(!page.contains("id=\"brief\""), "{page}");
    let path = world.state().join("ideas/walks").join(BRIEF);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let written = "# All walks\n\nA **list** of them.\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) \u{202e}\u{1b}[31m\n";
    fs::write(&path, written).unwrap();
    let page = browser.read("/ideas/walks").await.text;
    let (_, brief) = page.split_once("id=\"brief\"").unwrap();
    let (brief, _) = brief.split_once("</details>").unwrap();
    for told in [
        "<h3>All walks</h3>",
        "<strong>list</strong>",
        "&lt;script&gt;alert(1)",
        "&lt;U+202E&gt;",
        "\u{241b}[31m",
    ] {
        assert!(brief.contains(told), "no {told}: {brief}");
    }
    for bad in ["<script>alert", "href=\"javascript", "\u{202e}", "\u{1b}"] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    world.stop().await;
}
