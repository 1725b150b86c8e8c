//! What `deploy/` ships is understood by whom it is for, and the program tells its manager how it does.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_config::{Config, Environment};
use ropewalk_tests::servers::{NatsServer, PostgresServer, ReceivedSpan, SpanReceiver};
use serde_json::Value;

use crate::approvals::text;
use crate::people::{address, ask};
use crate::world::{BINARY, World};

/// How long somebody who waits for a word of the program waits.
const PATIENCE: Duration = Duration::from_mins(1);

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(path)
}

/// The next word that a program says to its manager; but for signs of life, where they are not what is waited for.
fn heard(manager: &UnixDatagram, with_signs: bool) -> String {
    loop {
        let mut buffer = [0; 1024];
        let length = manager.recv(&mut buffer).unwrap();
        let said = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if with_signs || said != "WATCHDOG=1" {
            return said;
        }
    }
}

#[test]
fn a_low_limit_of_open_files_is_raised_for_all_who_may_come() {
    let world = World::scripted();
    let mut shell = Process::new("sh");
    shell.args(["-c", "ulimit -Sn 512; exec \"$0\" up", BINARY]);
    let up = world.up_by(&mut shell);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", up.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut numbers = line
        .unwrap()
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok());
    let (soft, hard) = (numbers.next().unwrap(), numbers.next().unwrap());
    assert_eq!(soft, hard.min(16_384), "{limits}");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn a_manager_of_services_hears_when_it_works_that_it_lives_and_when_it_stops() {
    let world = World::scripted();
    let path = world.root().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let variables = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "100000"),
    ];
    let up = world.up_with(&variables);
    let ready = heard(&manager, false);
    let status = ready.strip_prefix("READY=1\nSTATUS=`walks` runs in ");
    let status = status.filter(|status| status.contains("with the bus `embedded`"));
    assert!(status.is_some(), "{ready}");
    // What a manager starts after it finds it.
    world.run("idea new Walks");
    for _ in 0..3 {
        assert_eq!(heard(&manager, true), "WATCHDOG=1");
    }
    up.signal(Signal::SIGTERM);
    assert_eq!(heard(&manager, false), "STOPPING=1");
    drop(up);
}

#[test]
fn the_unit_is_one_for_systemd_and_starts_what_there_is() {
    let unit = std::fs::read_to_string(deploy("systemd/ropewalk@.service")).unwrap();
    let value = |key: &str| {
        let mut lines = unit.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    assert_eq!(value("Type"), Some("notify"));
    // What a stop takes at most, ten seconds, is waited for.
    let patience = value("TimeoutStopSec").unwrap().parse::<u32>().unwrap();
    assert!(patience > 10);
    let started = value("ExecStart").unwrap();
    let (program, arguments) = started.split_once(' ').unwrap();
    let world = World::scripted();
    world.run(&format!("{arguments} --help"));
    let root = tempfile::tempdir().unwrap();
    let copy = root.path().join("ropewalk@tmp.service");
    std::fs::write(&copy, unit.replace(program, BINARY)).unwrap();
    let Ok(checked) = Process::new("systemd-analyze")
        .arg("verify")
        .arg(&copy)
        .output()
    else {
        return;
    };
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(
        checked.status.success() && !said.contains("ropewalk@"),
        "{said}"
    );
}

#[test]
fn the_compose_file_starts_the_program_on_the_servers_beside_it() {
    let text_of = std::fs::read_to_string(deploy("compose/compose.yaml")).unwrap();
    let compose: Value = serde_saphyr::from_str(&text_of).unwrap();
    let services = &compose["services"];
    let ours = &services["ropewalk"];
    for needed in ours["depends_on"].as_object().unwrap().keys() {
        assert!(services[needed].is_object(), "{needed}");
    }
    for service in services.as_object().unwrap().values() {
        for volume in service["volumes"].as_array().unwrap() {
            let (name, _) = text(volume).rsplit_once(':').unwrap();
            let is_known = compose["volumes"].as_object().unwrap().contains_key(name);
            assert!(is_known || name.starts_with("${"), "{name}");
        }
    }
    let (nats, postgres) = (
        NatsServer::start().unwrap(),
        PostgresServer::start().unwrap(),
    );
    let world = World::scripted();
    let state = world.root().join("composed");
    let variables: BTreeMap<String, String> = ours["environment"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("ROPEWALK_"))
        .map(|(name, value)| {
            // The same, where they lie for this test.
            let value = text(value)
                .replace("nats://127.0.0.1:4222", &nats.url())
                .replace("/home/ropewalk/state", state.to_str().unwrap());
            let value = match value.split_once("://ropewalk:${") {
                Some(_) => postgres.url(),
                None => value.replace(":7440", ":0"),
            };
            (name.clone(), value)
        })
        .collect();
    let environment = Environment::from_pairs(&variables);
    let config = Config::load_whoever_wrote_it(root(), &environment, &[]);
    let config = config.unwrap().config;
    assert!(config.store.location.to_string().starts_with("postgres://"));
    assert!(config.bus.transport.to_string().starts_with("nats://"));
    let pairs: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let up = world.up_with(&pairs);
    let address = address(&world);
    let probe = text(&ours["healthcheck"]["test"][4]);
    let asked = probe.strip_prefix("http://127.0.0.1:7440").unwrap();
    let (status, ready) = ask(&address, &format!("GET {asked}"), None);
    assert_eq!((status, text(&ready["store"])), (200, "up"), "{ready}");
    assert!(state.is_dir());
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn spans_go_where_the_variables_of_opentelemetry_say() {
    let receiver = SpanReceiver::start().unwrap();
    let world = World::scripted();
    let url = receiver.url();
    let up = world.up_with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    let began = Instant::now();
    let is_handled = |span: &ReceivedSpan| span.name().starts_with("process ");
    let mut said = 0;
    while !receiver.spans().iter().any(is_handled) {
        assert!(began.elapsed() < PATIENCE, "{}", receiver.text());
        // A busy machine may lose some, so that there is always more to tell.
        if began.elapsed() >= said * Duration::from_secs(5) {
            world.run("idea new Walks --text walks");
            said += 1;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn a_request_is_a_span_of_the_trace_of_who_asks_with_what_that_one_keeps_beside_it() {
    let receiver = SpanReceiver::start().unwrap();
    let world = World::scripted();
    let url = receiver.url();
    let up = world.up_with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    let address = address(&world);
    let (trace, parent) = ("018f0000111172228333444455556666", "8aaabbbbccccdddd");
    let caller = format!(
        "traceparent: 00-{trace}-{parent}-01\r\ntracestate: vendor=said\r\ntracestate: other=2"
    );
    let began = Instant::now();
    let found = loop {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(
            stream,
            "GET /livez HTTP/1.1\r\nHost: {address}\r\n{caller}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let mut spans = receiver.spans().into_iter();
        if let Some(found) = spans.find(|span| span.trace() == trace) {
            break found;
        }
        assert!(began.elapsed() < PATIENCE, "{}", receiver.text());
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(found.parent(), Some(parent));
    assert_eq!(found.state(), "vendor=said,other=2");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

fn root() -> &'static Path {
    Path::new("/")
}
