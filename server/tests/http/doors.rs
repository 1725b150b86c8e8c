//! Who gets in and where: addresses, links, cookies, and what is open to the machine itself.

use std::net::SocketAddr;

use ropewalk_config::settings::Network;
use ropewalk_desk::people::People;
use ropewalk_schemas::advice::Words;
use ropewalk_server::{Address, Door, ListenError};
use serde_json::{Value, json};

use crate::browser::{Browser, HTML};
use crate::world::{ADA, Answer, BOB, ServerWorld, answered, anywhere, name, people};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_logs_in_once_and_a_page_proves_itself_before_it_changes_anything() {
    let world = ServerWorld::new().await;
    let open = || answered(world.client.get(&world.link));
    let entered = open().await;
    assert_eq!(
        (entered.status, &entered.body["name"]),
        (200, &json!("ada")),
        "{}",
        entered.text
    );
    let set = entered.headers["set-cookie"].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
        assert!(set.contains(part), "{set}");
    }
    assert_eq!(open().await.status, 401);
    let cookie = set.split(';').next().unwrap().to_owned();
    let csrf = entered.body["csrf"].as_str().unwrap().to_owned();
    let shown = answered(world.bare("GET", "/api/profile").header("Cookie", &cookie)).await;
    assert_eq!((shown.status, &shown.body["csrf"]), (200, &json!(csrf)));
    let before = world.rows().await;
    let begin = |proof: Option<&str>| {
        let request = world.bare("POST", "/api/ideation/sessions");
        let request = request
            .header("Cookie", &cookie)
            .json(&json!({ "text": "Walks" }));
        match proof {
            Some(proof) => request.header("X-Csrf-Token", proof),
            None => request,
        }
    };
    for proof in [None, Some(""), Some("another")] {
        let refused = answered(begin(proof)).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (403, &json!("csrf"))
        );
    }
    assert_eq!(world.rows().await, before);
    assert_eq!(answered(begin(Some(&csrf))).await.status, 201);
    let leave = world
        .bare("DELETE", "/api/profile")
        .header("Cookie", &cookie);
    assert_eq!(
        answered(leave.header("X-Csrf-Token", &csrf)).await.status,
        204
    );
    let gone = answered(world.bare("GET", "/api/profile").header("Cookie", &cookie)).await;
    assert_eq!(gone.status, 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_the_program_does_is_told_to_the_machine_itself() {
    let world = ServerWorld::new().await;
    for path in ["/livez", "/healthz", "/readyz"] {
        let told = answered(world.bare("GET", path)).await;
        assert_eq!(
            (told.status, &told.body["status"]),
            (200, &json!("ok")),
            "{path}"
        );
    }
    let refused = answered(world.bare("GET", "/api/profile")).await;
    assert_eq!(refused.status, 401);
    let metrics = answered(world.bare("GET", "/metrics")).await;
    for line in [
        "ropewalk_events_total 0",
        "ropewalk_http_requests_total{class=\"4xx\"} 1",
    ] {
        assert!(metrics.text.contains(line), "{}", metrics.text);
    }
    let rebound = answered(world.bare("GET", "/metrics").header("Host", "evil.example")).await;
    assert_eq!(
        (rebound.status, rebound.body["code"].as_str()),
        (403, Some("host"))
    );
    assert_eq!(rebound.body["events"], Value::Null);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_taken_away_is_told_by_each_refusal_and_to_whoever_probes() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let database = world.state().join("ropewalk.db");
    std::fs::rename(&database, world.state().join("elsewhere.db")).unwrap();
    let refused = world
        .send("/api/ideation/sessions", &json!({ "text": "Walks" }))
        .await;
    assert_eq!(
        (refused.status, refused.body["code"].as_str()),
        (503, Some("store")),
        "{}",
        refused.text
    );
    let told = "was removed or replaced while it was in use";
    assert!(refused.text.contains(told), "{}", refused.text);
    let next = refused.body["next"].as_str().unwrap_or_default();
    assert!(next.contains("put it or its newest backup"), "{next}");
    let form = browser.send("/ideas", &[("text", "Walks")], Some(&proof));
    let form = form.await;
    assert_eq!(form.status, 503, "{}", form.text);
    for told in [told, "This cannot be done now", "newest backup"] {
        assert!(form.text.contains(told), "no {told}: {}", form.text);
    }
    let ready = answered(world.bare("GET", "/readyz")).await;
    assert_eq!(
        (ready.status, ready.body["code"].as_str()),
        (503, Some("store")),
        "{}",
        ready.text
    );
    assert_eq!(answered(world.bare("GET", "/livez")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_from_elsewhere_is_told_how_it_does_and_nothing_else() {
    // A proxy that is believed speaks for a machine that is not this one.
    let here = Network::try_from("127.0.0.1".to_owned()).unwrap();
    let world = ServerWorld::behind(vec![here]).await;
    let from_elsewhere = |address: SocketAddr, method: &str, path: &str| {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = world
            .client
            .request(method, format!("http://{address}{path}"));
        answered(request.header("X-Forwarded-For", "203.0.113.9"))
    };
    for path in ["/livez", "/healthz", "/readyz", "/metrics"] {
        let refused = from_elsewhere(world.address, "GET", path).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
        let told = from_elsewhere(world.admin, "GET", path).await;
        assert_eq!(told.status, 200, "{path}: {}", told.text);
        // A probe knows the address of a container, by which this server does not call itself.
        let url = format!("http://{}{path}", world.admin);
        let named = answered(world.client.get(url).header("Host", "10.0.0.7")).await;
        assert_eq!(named.status, 200, "{path}: {}", named.text);
    }
    let metrics = from_elsewhere(world.admin, "GET", "/metrics").await;
    assert!(
        metrics.text.contains("ropewalk_events_total 0"),
        "{}",
        metrics.text
    );
    for path in ["/", "/api/profile", "/api/ideation/sessions", "/login"] {
        for method in ["GET", "POST"] {
            let url = format!("http://{}{path}", world.admin);
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let asked = answered(world.client.request(method, url).bearer_auth(ADA)).await;
            assert_eq!(asked.status, 404, "{path}: {}", asked.text);
        }
    }
    // Who is alive and cannot work is not sent any.
    world.services.store.close().await.unwrap();
    let ready = from_elsewhere(world.admin, "GET", "/readyz").await;
    assert_eq!(
        (ready.status, ready.body["code"].as_str()),
        (503, Some("store"))
    );
    let lives = from_elsewhere(world.admin, "GET", "/livez").await;
    assert_eq!(lives.status, 200);
}

#[tokio::test]
async fn a_default_address_that_is_taken_moves_on_and_a_chosen_one_is_refused() {
    let people = people();
    let first = Door::open(anywhere(), &people).await.unwrap();
    let taken = Address {
        socket: first.address(),
        chosen: true,
    };
    let refused = Door::open(taken, &people).await.unwrap_err();
    assert!(matches!(refused, ListenError::Taken(_)), "{refused}");
    assert!(
        Words::of(&refused)
            .to_string()
            .contains("; set another with `--bind`"),
        "{refused}"
    );
    let default = Address {
        chosen: false,
        ..taken
    };
    let next = Door::open(default, &people).await.unwrap();
    assert_ne!(next.address(), first.address());
    assert!(next.address().ip().is_loopback());
}

#[tokio::test]
async fn beyond_this_machine_nobody_is_served_unless_people_are_named() {
    let everywhere = Address {
        socket: "0.0.0.0:0".parse().unwrap(),
        chosen: true,
    };
    let nobody = People::new(std::collections::BTreeMap::new(), name("ada"));
    let refused = Door::open(everywhere, &nobody).await.unwrap_err();
    assert!(
        Words::of(&refused)
            .to_string()
            .contains("add `[people.NAME]` with a token"),
        "{refused}"
    );
    Door::open(everywhere, &people()).await.unwrap();
}

/// Sends the form by which a token logs in.
async fn enter(world: &ServerWorld, fields: &[(&str, &str)]) -> Answer {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    let asked = world.bare("POST", "/login").header("Accept", HTML);
    let asked = asked.header("Content-Type", "application/x-www-form-urlencoded");
    answered(asked.body(form.finish())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_logs_a_browser_in_at_the_page_that_it_asked_for_also_after_it_logged_out() {
    let world = ServerWorld::new().await;
    let look = |path: &str, cookie: &str| {
        let asked = world.bare("GET", path).header("Accept", HTML);
        answered(asked.header("Cookie", cookie))
    };
    let stranger = look("/questions?page=2", "other=1").await;
    assert_eq!(stranger.status, 401);
    let form = "<input type=\"hidden\" name=\"back\" value=\"/questions?page=2\">";
    assert!(stranger.text.contains(form), "{}", stranger.text);
    for token in [ADA, BOB] {
        let fields = [("token", token), ("back", "/questions?page=2")];
        let entered = enter(&world, &fields).await;
        assert_eq!(
            (entered.status, &entered.headers["location"]),
            (303, &"/questions?page=2".parse().unwrap()),
            "{}",
            entered.text
        );
        let set = entered.headers["set-cookie"].to_str().unwrap();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
            assert!(set.contains(part), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        let page = look("/ideas/new", &cookie).await;
        let (_, proof) = page.text.split_once("name=\"csrf\" value=\"").unwrap();
        let proof = proof.split('"').next().unwrap();
        let leave = world.bare("POST", "/leave").header("Accept", HTML);
        let leave = leave
            .header("Cookie", &cookie)
            .header("Content-Type", "application/x-www-form-urlencoded");
        let left = answered(leave.body(format!("csrf={proof}"))).await;
        assert_eq!(left.status, 200, "{}", left.text);
        assert!(left.text.contains("action=\"/login\""), "{}", left.text);
        assert_eq!(look("/ideas/new", &cookie).await.status, 401);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_login_leads_to_another_machine_and_a_link_leads_to_the_page_that_it_names() {
    let world = ServerWorld::new().await;
    for back in [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "",
    ] {
        let entered = enter(&world, &[("token", ADA), ("back", back)]).await;
        assert_eq!(
            (entered.status, &entered.headers["location"]),
            (303, &"/".parse().unwrap()),
            "{back}"
        );
    }
    let asked = world.client.get(format!("{}&back=/questions", world.link));
    let entered = answered(asked.header("Accept", HTML)).await;
    assert!(
        entered.text.contains("content=\"1;url=/questions\""),
        "{}",
        entered.text
    );
    let asked = world.client.get(&world.link);
    let again = answered(asked.header("Accept", HTML)).await;
    assert_eq!(again.status, 401, "{}", again.text);
    for told in ["was used or has grown old", "start it again"] {
        assert!(again.text.contains(told), "{}", again.text);
    }
    // Nobody is counted as guessing who comes without a link.
    for _ in 0..30 {
        let asked = answered(world.bare("GET", "/login").header("Accept", HTML)).await;
        assert_eq!(asked.status, 401, "{}", asked.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_tokens_waits_and_a_page_of_somebody_else_logs_nobody_in() {
    let world = ServerWorld::new().await;
    let foreign = world
        .bare("POST", "/login")
        .header("Origin", "http://evil.example");
    let foreign = foreign.header("Content-Type", "application/x-www-form-urlencoded");
    let refused = answered(foreign.body(format!("token={ADA}"))).await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (403, &json!("origin"))
    );
    let other = world.bare("POST", "/login").json(&json!({ "token": ADA }));
    assert_eq!(answered(other).await.status, 415);
    let guess = [("token", "guessed"), ("back", "/builds")];
    for number in 0..20 {
        let refused = enter(&world, &guess).await;
        assert_eq!(refused.status, 401, "guess {number}: {}", refused.text);
        assert!(!refused.headers.contains_key("set-cookie"));
        assert!(
            refused.text.contains("name=\"back\" value=\"/builds\""),
            "{}",
            refused.text
        );
    }
    // The right one waits as well, or the wait would say which one that is.
    for token in ["guessed", ADA] {
        let refused = enter(&world, &[("token", token)]).await;
        assert_eq!(refused.status, 429, "{}", refused.text);
        assert!(refused.headers.contains_key("retry-after"));
    }
    world.stop().await;
}
