//! `up` serves the API, and never does less for that.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::{NatsServer, PostgresServer};
use serde_json::{Value, json};

use crate::approvals::{specified, text, until};
use crate::world::World;

/// Who asks with a token.
pub(super) const TOKEN: &str = "the-token-of-ada-for-tests";

/// Returns what `up` says once it says something with `part`.
fn said(world: &World, part: &str) -> String {
    let began = Instant::now();
    loop {
        let log = std::fs::read_to_string(world.root().join("up.log")).unwrap_or_default();
        if let Some(line) = log.lines().find(|line| line.contains(part)) {
            return line.to_owned();
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the address that `up` serves on.
pub(crate) fn address(world: &World) -> String {
    let line = said(world, "pages and API");
    let rest = line.split_once("http://").unwrap().1;
    rest.split('/').next().unwrap().to_owned()
}

/// Sends one request over a connection of its own, and returns the status and the body of the answer.
pub(crate) fn ask(address: &str, line: &str, body: Option<&Value>) -> (u16, Value) {
    let (status, body) = ask_for_text(address, line, body);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Sends one request as [`ask`] does, and returns the body as it came.
fn ask_for_text(address: &str, line: &str, body: Option<&Value>) -> (u16, String) {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// Asserts that a program that is watched tells of the use of models what the terminal tells.
fn metrics_are_the_usage_of_the_terminal(world: &World, address: &str) {
    let began = Instant::now();
    // A model that is asked in between is in one of the two alone.
    let (used, metrics) = loop {
        let used = world.json("usage");
        let (status, metrics) = ask_for_text(address, "GET /metrics", None);
        assert_eq!(status, 200, "{metrics}");
        if world.json("usage") == used {
            break (used, metrics);
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{used}");
    };
    let rows = used.as_array().unwrap();
    assert!(!rows.is_empty(), "no model was asked");
    for row in rows {
        let model = text(&row["key"]);
        for field in ["calls", "input_tokens", "output_tokens"] {
            let name = format!("ropewalk_model_{field}_total");
            let line = format!("\n{name}{{model=\"{model}\"}} {}\n", row[field]);
            assert!(metrics.contains(&line), "no {line} in {metrics}");
        }
    }
    let told = metrics.lines();
    let told = told.filter(|line| line.starts_with("ropewalk_model_calls_total{"));
    assert_eq!(told.count(), rows.len(), "{metrics}");
}

/// Names ada, who has a token and may everything.
pub(super) fn with_token(world: &World) {
    let hash = ropewalk_schemas::ContentHash::of(TOKEN.as_bytes());
    let rights = json!(["approve", "land", "spend", "stop"]);
    let people = format!("[people.ada]\ntoken_sha256 = \"{hash}\"\nrights = {rights}\n");
    let directory = world.home().join(".config/ropewalk");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), people).unwrap();
}

/// Returns what was looked at, and how each is.
fn checks(found: &Value) -> Vec<[String; 2]> {
    let told = |finding: &Value| ["check", "verdict"].map(|name| text(&finding[name]).to_owned());
    found.as_array().unwrap().iter().map(told).collect()
}

#[test]
fn what_is_approved_over_the_api_is_built() {
    let world = World::scripted();
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    with_token(&world);
    let up = world.up_with(&[]);
    let address = address(&world);
    let path = format!("GET /api/specifications/{id}");
    let (status, shown) = ask(&address, &path, None);
    assert_eq!((status, &shown["hash"]), (200, &json!(hash)));
    // What the terminal shows, word for word, once no model is asked beside it: both tell what that uses.
    let is_same = |spec: &Value| ask(&address, &path, None).1 == *spec;
    until(&world, &format!("spec show {id}"), is_same);
    metrics_are_the_usage_of_the_terminal(&world, &address);
    let path = format!("POST /api/specifications/{id}/approve");
    let (status, approved) = ask(&address, &path, Some(&json!({ "hash": hash })));
    assert_eq!(
        (status, &approved["revision"]),
        (200, &json!(1)),
        "{approved}"
    );
    let builds = until(&world, "build list", |builds| builds[0]["tasks_total"] == 3);
    assert_eq!(builds[0]["hash"], hash);
    // What the terminal finds, beside the program and within it.
    let (status, looked) = ask(&address, "GET /api/doctor", None);
    let beside = world.json("doctor");
    assert_eq!(
        (status, checks(&looked["findings"])),
        (200, checks(&beside))
    );
    let build = text(&builds[0]["id"]);
    let (status, shown) = ask(&address, &format!("GET /api/builds/{build}"), None);
    assert_eq!(
        (status, shown["tasks"].as_array().map(Vec::len)),
        (200, Some(3))
    );
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    // The port may be another program's by now; that one does not know of this specification.
    let anybody = TcpStream::connect(&address).is_ok();
    let asked = || ask(&address, &format!("GET /api/specifications/{id}"), None);
    assert!(!anybody || asked().0 != 200, "nobody serves it any more");
}

#[test]
fn a_taken_default_moves_on_a_chosen_address_is_refused_and_off_is_off() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let world = World::scripted();
    let said = world.refused(&format!("up --bind {taken}"), 1);
    assert!(
        said.contains("is taken; set another with `--bind`"),
        "{said}"
    );
    let said = world.refused("up --bind 0.0.0.0:0", 1);
    assert!(
        said.contains("nobody is named who may log in; add `[people.NAME]`"),
        "{said}"
    );
    world.refused("up --bind somewhere", 3);
    let (one, other) = (World::scripted(), World::scripted());
    let (up, second) = (one.up(), other.up());
    assert_ne!(address(&one), address(&other));
    drop((up, second));
    let off = world.up_with(&[("ROPEWALK_SERVER__ENABLED", "false")]);
    assert_eq!(off.stop(Signal::SIGTERM), Some(0));
    let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    assert!(!log.contains("pages and API"), "{log}");
}

#[test]
fn a_default_that_another_program_has_is_told_with_where_it_is_served_instead() {
    const DEFAULT: &str = "127.0.0.1:7440";
    // The first has it as long as the second runs, or was kept from it itself.
    let worlds = [World::scripted(), World::scripted()];
    let ups = worlds.each_ref().map(World::up);
    let mut running = worlds.iter().zip(&ups);
    let (world, up) = running
        .find(|(world, _)| address(world) != DEFAULT)
        .unwrap();
    let told = said(world, "is taken, so that this program");
    let address = address(world);
    for named in [format!("`{DEFAULT}`"), format!("`{address}`")] {
        assert!(told.contains(&named), "{named}: {told}");
    }
    // Of the same project it is not the address that is in the way.
    let again = world.refused(&format!("up --bind {address}"), 1);
    let next = format!(
        "already runs on this state directory; stop it first, with Ctrl-C where it runs or with `kill {}` there",
        up.id()
    );
    assert!(again.contains(&next), "{again}");
}

#[test]
fn an_address_for_those_who_watch_is_taken_as_it_is_named() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let world = World::scripted();
    let said = world.refused(&format!("up --set server.admin_address={taken}"), 1);
    assert!(
        said.contains("is taken; set another `server.admin_address`"),
        "{said}"
    );
    drop(holder);
    let variables = [("ROPEWALK_SERVER__ADMIN_ADDRESS", "127.0.0.1:0")];
    let up = world.up_with(&variables);
    let patience = Instant::now() + Duration::from_mins(1);
    let told = loop {
        let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
        let told = log.split_once("how it does: http://");
        if let Some((told, _)) = told.and_then(|(_, rest)| rest.split_once("/readyz")) {
            break told.to_owned();
        }
        assert!(Instant::now() < patience, "{log}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_ne!(told, address(&world));
    let (status, ready) = ask(&told, "GET /readyz", None);
    assert_eq!((status, &ready["status"]), (200, &json!("ok")));
    assert_eq!(ask(&told, "GET /api/profile", None).0, 404);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

/// Runs some of the roles, and asks the doctor for the others.
fn missing_roles_are_named(world: &World, variables: &[(&str, &str)]) {
    let finding = |check: &str| {
        let mut command = world.ropewalk(["doctor", "--json"]);
        let looked = command.envs(variables.iter().copied()).output().unwrap();
        let found: Vec<Value> = serde_json::from_slice(&looked.stdout).unwrap();
        let mut found = found.into_iter();
        found.find(|finding| finding["check"] == check).unwrap()
    };
    assert_eq!(finding("store")["verdict"], "ok");
    let agents = || finding("agents");
    assert_eq!(agents()["detail"], "0 parts run", "nobody began yet");
    let _some = world.start(&["agent", "monitor", "questions"], variables);
    let told = "others run, and nobody runs `ideation`, `specification`, `build`, `improvement`, `pm`; \
                start `ropewalk agent ideation specification build improvement pm`";
    // They say one after the other that they run.
    let patience = Instant::now() + Duration::from_mins(1);
    while agents()["detail"] != told && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    let found = agents();
    assert_eq!(
        (&found["verdict"], &found["detail"]),
        (&json!("warn"), &json!(told))
    );
}

#[test]
fn a_process_of_a_team_serves_and_runs_no_agent() {
    let (postgres, nats) = (
        PostgresServer::start().unwrap(),
        NatsServer::start().unwrap(),
    );
    let world = World::scripted();
    with_token(&world);
    let (store, bus) = (postgres.url(), nats.url());
    let variables = [
        ("ROPEWALK_STORE__LOCATION", store.as_str()),
        ("ROPEWALK_BUS__TRANSPORT", bus.as_str()),
    ];
    let server = world.start(&["agent", "server"], &variables);
    let address = address(&world);
    let idea = json!({ "text": "Walks" });
    let (status, begun) = ask(&address, "POST /api/ideation/sessions", Some(&idea));
    assert_eq!((status, &begun["slug"]), (201, &json!("walks")), "{begun}");
    let (status, ready) = ask(&address, "GET /readyz", None);
    assert_eq!((status, &ready["store"]), (200, &json!("up")), "{ready}");
    let (_, agents) = ask(&address, "GET /api/agents", None);
    assert_eq!(agents["items"], json!([]));
    missing_roles_are_named(&world, &variables);
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn a_broker_that_goes_and_comes_back_is_told_and_needs_no_restart() {
    let mut nats = NatsServer::start().unwrap();
    let world = World::scripted();
    with_token(&world);
    let up = world.up_with(&[("ROPEWALK_BUS__TRANSPORT", &nats.url())]);
    let address = address(&world);
    let until = |bus: &str| {
        let began = Instant::now();
        loop {
            // The store answers throughout, and with it everything works; a broker only makes it faster.
            let (status, ready) = ask(&address, "GET /readyz", None);
            assert_eq!((status, &ready["store"]), (200, &json!("up")), "{ready}");
            if text(&ready["bus"]).starts_with(bus) {
                break;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "{bus}: {ready}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let answered = |slug: &str| {
        let idea = json!({ "text": "Steps", "slug": slug });
        let (status, begun) = ask(&address, "POST /api/ideation/sessions", Some(&idea));
        assert_eq!(status, 201, "{begun}");
        crate::approvals::until(&world, &format!("idea show {slug}"), |idea| {
            let mut said = idea["messages"].as_array().unwrap().iter();
            said.any(|said| said["author"] == "agent")
        });
    };
    until("up");
    answered("walks");
    nats.kill();
    until("down: ");
    answered("rests");
    nats.restart().unwrap();
    until("up");
    answered("rivers");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
