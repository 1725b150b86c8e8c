//! Files that come with what is said about an idea.

use serde_json::{Value, json};

use super::house::{ADA, House, answered};

const PATH: &str = "/api/ideation/sessions/walks/attachments";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_kept_with_its_idea_and_told_in_the_conversation() {
    let house = House::new().await;
    house.specified().await;
    // Larger than any other body may be.
    let picture = vec![7; 2 * 1024 * 1024];
    let sent = house
        .ask(
            "POST",
            &format!("{PATH}?name=..%2Fmap.png&words=The%20way"),
            ADA,
        )
        .header("content-type", "image/png")
        .body(picture.clone());
    let kept = answered(sent).await;
    assert_eq!(kept.status, 201, "{}", kept.text);
    assert_eq!(kept.body["file"]["path"], "attachments/map.png");
    assert_eq!(kept.body["file"]["media_type"], "image/png");
    let idea = house.read("/api/ideation/sessions/walks").await;
    let said = idea["messages"].as_array().unwrap();
    let last = said.last().unwrap();
    assert!(last["text"].as_str().unwrap().contains("The way"), "{last}");
    assert_eq!(last["attachments"][0], kept.body["file"]);
    let mut found = walk(house.state());
    found.retain(|path| path.ends_with("attachments/map.png"));
    assert_eq!(std::fs::read(&found[0]).unwrap(), picture);
    house.stop().await;
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            let below = if path.is_dir() {
                walk(&path)
            } else {
                Vec::new()
            };
            below.into_iter().chain([path])
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_kept_is_refused_and_changes_nothing() {
    let house = House::new().await;
    house.specified().await;
    let before = house.rows().await;
    let elsewhere = "/api/ideation/sessions/nowhere/attachments?name=a";
    let rows: [(&str, usize, u16); 3] = [
        (&format!("{PATH}?name=a"), 0, 400),
        (PATH, 3, 400),
        (elsewhere, 3, 404),
    ];
    for (path, size, status) in rows {
        let answer = answered(house.ask("POST", path, ADA).body(vec![b'a'; size])).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert_ne!(answer.body["message"], Value::Null, "{}", answer.text);
    }
    let json = house.send(PATH, &json!({ "name": "a" })).await;
    assert_eq!(json.status, 400, "{}", json.text);
    let nobody = answered(house.bare("POST", &format!("{PATH}?name=a")).body("a")).await;
    assert_eq!(nobody.status, 401);
    assert_eq!(house.rows().await, before);
    house.stop().await;
}
