//! Files that come with what is said about an idea.

use serde_json::{Value, json};

use super::browser::{Browser, HTML};
use super::world::{ADA, ServerWorld, answered};

const PATH: &str = "/api/ideation/sessions/walks/attachments";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_kept_with_its_idea_and_told_in_the_conversation() {
    let world = ServerWorld::new().await;
    world.specified().await;
    // Larger than any other body may be.
    let picture = vec![7; 2 * 1024 * 1024];
    let sent = world
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
    let idea = world.read("/api/ideation/sessions/walks").await;
    let said = idea["messages"].as_array().unwrap();
    let last = said.last().unwrap();
    assert!(last["text"].as_str().unwrap().contains("The way"), "{last}");
    assert_eq!(last["attachments"][0], kept.body["file"]);
    let mut found = walk(world.state());
    found.retain(|path| path.ends_with("attachments/map.png"));
    assert_eq!(std::fs::read(&found[0]).unwrap(), picture);
    world.stop().await;
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
    let world = ServerWorld::new().await;
    world.specified().await;
    let before = world.rows().await;
    let elsewhere = "/api/ideation/sessions/nowhere/attachments?name=a";
    let rows: [(&str, usize, u16); 3] = [
        (&format!("{PATH}?name=a"), 0, 400),
        (PATH, 3, 400),
        (elsewhere, 3, 404),
    ];
    for (path, size, status) in rows {
        let answer = answered(world.ask("POST", path, ADA).body(vec![b'a'; size])).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert_ne!(answer.body["message"], Value::Null, "{}", answer.text);
    }
    let json = world.send(PATH, &json!({ "name": "a" })).await;
    assert_eq!(json.status, 400, "{}", json.text);
    let nobody = answered(world.bare("POST", &format!("{PATH}?name=a")).body("a")).await;
    assert_eq!(nobody.status, 401);
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

/// Files as they are sent: name, what their sender calls them, and what they hold; and how a browser is to take them.
const FILES: [(&str, &str, &[u8], &str, &str); 6] = [
    (
        "map.png",
        "text/html",
        b"\x89PNG\r\n\x1a\n<script>",
        "image/png",
        "inline",
    ),
    (
        "b.webp",
        "image/webp",
        b"RIFF\0\0\0\0WEBPVP8 ",
        "image/webp",
        "inline",
    ),
    (
        "b.png",
        "image/png",
        b"<b>no picture</b>",
        "text/plain; charset=utf-8",
        "attachment",
    ),
    (
        "b.svg",
        "image/svg+xml",
        b"<svg onload='alert(1)'/>",
        "text/plain; charset=utf-8",
        "attachment",
    ),
    (
        "b c.html",
        "text/html",
        b"<script>alert(1)</script>",
        "text/plain; charset=utf-8",
        "attachment",
    ),
    (
        "b.bin",
        "text/html",
        b"<b>\0\xff",
        "application/octet-stream",
        "attachment",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_kept_is_looked_at_as_what_it_is_and_as_nothing_else() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let browser = Browser::new(&world).await;
    for (name, said, bytes, sort, taken) in FILES {
        let sent = world.ask("POST", PATH, ADA).query(&[("name", name)]);
        let sent = sent.header("content-type", said).body(bytes);
        let kept = answered(sent).await;
        assert_eq!(kept.status, 201, "{}", kept.text);
        let path = format!(
            "/ideas/walks/{}",
            kept.body["file"]["path"].as_str().unwrap()
        );
        let asked = world.ask("GET", &path, ADA).send().await.unwrap();
        assert_eq!(asked.status(), 200, "{path}");
        let header = |name: &str| asked.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            [header("content-type"), header("content-disposition")],
            [sort, taken],
            "{path}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        let policy = header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("; sandbox;"),
            "{policy}"
        );
        assert_eq!(asked.bytes().await.unwrap(), bytes);
        let page = browser.read("/ideas/walks").await.text;
        let is_drawn = page.contains(&format!("<img src=\"{path}\""));
        assert_eq!(is_drawn, taken == "inline", "{path}: {page}");
        assert!(
            page.contains(&format!("<a href=\"{path}\"")),
            "{path}: {page}"
        );
        let stranger = answered(world.bare("GET", &path).header("Accept", HTML)).await;
        assert_eq!(stranger.status, 401, "{}", stranger.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_come_along_or_is_no_more_as_it_came_is_not_given_away() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let browser = Browser::new(&world).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        let sent = world.ask("POST", &format!("{PATH}?name={name}"), ADA);
        assert_eq!(answered(sent.body("abc")).await.status, 201);
    }
    let folder = walk(world.state()).into_iter();
    let mut folder = folder.filter_map(|path| Some(path.parent()?.to_owned()));
    let folder = folder.find(|path| path.ends_with("attachments")).unwrap();
    std::fs::write(folder.join("nobody-sent-it.txt"), "abc").unwrap();
    std::fs::write(folder.join("a.txt"), "abd").unwrap();
    std::fs::remove_file(folder.join("b.txt")).unwrap();
    std::fs::remove_file(folder.join("c.txt")).unwrap();
    std::os::unix::fs::symlink(folder.join("nobody-sent-it.txt"), folder.join("c.txt")).unwrap();
    for (path, status) in [
        ("/ideas/walks/attachments/a.txt", 410),
        ("/ideas/walks/attachments/b.txt", 410),
        ("/ideas/walks/attachments/c.txt", 410),
        ("/ideas/walks/attachments/nobody-sent-it.txt", 404),
        ("/ideas/walks/attachments/..%2Fbrief.md", 404),
        (
            "/ideas/walks/attachments/..%2F..%2F..%2F..%2F..%2Fropewalk.db",
            404,
        ),
        ("/ideas/rivers/attachments/a.txt", 404),
        ("/ideas/Walks!/attachments/a.txt", 404),
    ] {
        let refused = browser.read(path).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text);
        assert!(refused.text.contains("<main"), "{path}: {}", refused.text);
        assert!(!refused.text.contains("abc"), "{path}: {}", refused.text);
    }
    let page = browser.read("/ideas/walks").await;
    assert_eq!(page.status, 200, "{}", page.text);
    world.stop().await;
}
