//! A cloned repository may tighten what runs on this machine, and loosens nothing without the word of a person.

use std::net::TcpListener;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::world::{World, one_line};

/// Every verb that would do something with a project.
const VERBS: [&str; 6] = [
    "up",
    "stop",
    "idea new Walks",
    "idea list",
    "config show",
    "config check",
];

/// Returns a project that allows nothing more than the defaults, and a key that must not leave.
fn cloned(text: &str) -> World {
    let world = World::bare_of_project();
    world.write_untrusted("ropewalk.toml", text);
    world
}

#[test]
fn a_clone_that_loosens_is_refused_before_a_byte_is_sent() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let cases = [
        "sandbox = \"off\"\n".to_owned(),
        "[models]\nchat = \"s/x\"\nspec = \"s/x\"\nbuild = \"s/x\"\nsmall = \"s/x\"\n\
         [providers.s]\nkind = \"scripted\"\nscript = \"s.yaml\"\n[rehearsal]\nperson = \"p.yaml\"\n"
            .to_owned(),
        format!("[providers.anthropic]\nbase_url = \"http://{address}\"\n"),
        "[providers.anthropic]\nkey_variable = \"AWS_SECRET_ACCESS_KEY\"\n".to_owned(),
        format!("[bus]\ntransport = \"nats://{address}\"\ntoken_variable = \"ANTHROPIC_API_KEY\"\n"),
    ];
    for text in cases {
        let world = cloned(&text);
        let before = world.files();
        for verb in VERBS {
            let mut command = world.ropewalk(verb.split_whitespace());
            command.env("ANTHROPIC_API_KEY", "canary");
            let said = one_line(command, 1);
            assert!(said.contains("`ropewalk trust`"), "{text}: {said}");
            assert!(!said.contains("canary"), "{said}");
        }
        assert_eq!(world.files(), before, "{text}");
    }
    let connected = server.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(connected, Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn what_was_read_is_trusted_until_a_byte_of_it_changes() {
    let loose = "sandbox = \"off\"\n[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n";
    let world = cloned(loose);
    let shown = world
        .ropewalk(["trust"])
        .assert()
        .code(1)
        .get_output()
        .clone();
    let (keys, said) = (
        String::from_utf8(shown.stdout).unwrap(),
        String::from_utf8(shown.stderr).unwrap(),
    );
    for key in [
        "sandbox.mode = \"off\"",
        "providers.local.base_url = \"http://127.0.0.1:1\"",
    ] {
        assert!(keys.contains(key), "{keys}");
    }
    let hash = keys
        .lines()
        .find_map(|line| line.strip_prefix("hash "))
        .unwrap();
    assert!(
        said.contains("nothing was trusted") && said.contains(hash),
        "{said}"
    );
    world.refused("idea list", 1);
    let trusted = world.json(&format!("trust --hash {hash}"));
    assert_eq!(
        (&trusted["trusted"], &trusted["hash"]),
        (&true.into(), &hash.into())
    );
    assert_eq!(world.json("idea list"), Value::Array(Vec::new()));
    assert_eq!(world.json("trust")["trusted"], true);

    world.write_untrusted(
        "ropewalk.toml",
        &(loose.replace("127.0.0.1:1", "127.0.0.1:2") + "key_variable = \"WALKS_KEY\"\n"),
    );
    let said = world.refused("idea list", 1);
    assert!(said.contains("`ropewalk trust`"), "{said}");
    // What changed is shown, and the word was about other bytes.
    let shown = world
        .ropewalk(["trust"])
        .assert()
        .code(1)
        .get_output()
        .clone();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let was = "providers.local.base_url was \"http://127.0.0.1:1\"";
    assert!(
        shown.contains(was) && !shown.contains("sandbox.mode was"),
        "{shown}"
    );
    let new = "providers.local.key_variable";
    assert_eq!(shown.matches(new).count(), 1, "{shown}");
    let line = shown.lines().find(|line| line.contains(new));
    assert!(
        line.is_some_and(|line| line.ends_with(", which is new")),
        "{shown}"
    );
    world.refused(&format!("trust --hash {hash}"), 1);
    world.refused("idea list", 1);
    world.write_untrusted("ropewalk.toml", "[pm]\nwatch_minutes = 1\n");
    world.run("idea list");
    world.run("trust");
}

#[test]
fn everything_stops_whatever_was_written_into_the_file_since_somebody_trusted_it() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let world = World::scripted();
    let trusted = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    let up = world.up();
    let elsewhere = trusted.replace("\"../state\"", "\"../elsewhere\"")
        + &format!("[store]\nlocation = \"postgres://{address}/walks\"\n");
    for changed in [
        format!("{trusted}\n[sandbox]\nhosts = [\"docs.example.org\"]\n"),
        elsewhere,
        format!("{trusted}\n[build]\nturns = \"many\"\n"),
        format!("{trusted}\n= broken\n"),
    ] {
        world.write_untrusted("ropewalk.toml", &changed);
        let said = world.ropewalk(["stop"]).assert().success();
        let noted = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
        assert!(noted.contains("as it was trusted last"), "{noted}");
        world.refused("resume", 1);
        world.write_untrusted("ropewalk.toml", &trusted);
        world.run("resume");
    }
    assert!(!world.root().join("elsewhere").exists());
    let connected = server.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(connected, Err(std::io::ErrorKind::WouldBlock));
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    world.write_untrusted("ropewalk.toml", &format!("{trusted}\n= broken\n"));
    let said = world.refused("stop", 1);
    assert!(
        said.contains("not valid TOML") && said.contains("`kill`"),
        "{said}"
    );
}

#[test]
fn what_init_and_a_tightening_repository_write_needs_nobody() {
    let world = World::bare_of_project();
    world.run("init");
    world.run("idea list");
    let world = cloned("sandbox = \"required\"\n[build]\nturns = 5\n");
    world.run("idea list");
}

#[test]
fn a_file_of_another_user_in_a_directory_above_is_refused() {
    let world = World::bare_of_project();
    world.write("deep/README.md", "");
    world.write_untrusted("ropewalk.toml", "[pm]\nwatch_minutes = 1\n");
    world.run("-C deep idea list");
    let file = world.repository().join("ropewalk.toml");
    let mut command = world.ropewalk(["-C", "deep", "idea", "list"]);
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    } else {
        // A file of root, seen from where root is nobody.
        let begin = "mount --bind /etc/hostname ropewalk.toml && exec \"$0\" \"$@\"";
        command = assert_cmd::Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", begin])
            .arg(env!("CARGO_BIN_EXE_ropewalk"))
            .args(["-C", "deep", "idea", "list"])
            .current_dir(world.repository());
    }
    let said = one_line(command, 1);
    assert!(said.contains("another user"), "{said}");
}
