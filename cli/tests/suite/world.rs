//! A repository with a project in a temporary directory, and the binary that runs in it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use ropewalk_bus::poke::Poker;
use ropewalk_config::{Config, Environment};
use ropewalk_runtime::Clock;
use ropewalk_store::{ChangeSet, Location, Store};
use serde_json::Value;
use tempfile::TempDir;

/// The program.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ropewalk");

/// No verb takes longer, however busy the machine is.
const LIMIT: Duration = Duration::from_mins(2);
/// A program that is asked to stop has stopped sooner.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A model that answers every message of every idea in the same way, and specifies three small tasks; a later
/// revision is one of [`one_task`].
const SCRIPT: &str = r#"
- agent: "ideation"
  idea: "mute"
  reply: { error: { kind: "refused", message: "no" } }
- agent: "ideation"
  reply:
    tools:
      - name: "reply"
        input:
          text: "Noted. Tell me **more**."
          artifacts:
            - { kind: "target-user", summary: "Walkers", content: "People who walk every day and forget where.", confidence: 0.8 }
          decisions: []
          risks: []
          confidence: 0.4
- agent: "specification"
  idea: "rivers"
  absent: "The answer: Plain files"
  reply: { tools: [{ name: "specification", input: { question: {
    type: "blocking", text: "Plain files or a database?", context: "It shapes everything.", allowFreeText: true,
    options: [{ label: "Plain files", recommended: true }, { label: "A database" }] } } }] }
- agent: "specification"
  task: "revision-1"
  reply: { tools: [{ name: "specification", input: {
    document: {
      title: "Walks", context_read: [], missing_inputs: [], objective: "Keep a list of walks.",
      success_criteria: ["three files are there"], out_of_scope: [],
      requirements: [{ id: "FR-1", text: "Walks are listed.", priority: "must", acceptance: "the files are there", source: "planning/brief.md" }],
      quality: [], new_files: [], modified_files: [], avoid_files: [], interfaces: [], data: [],
      dependencies: [], gotchas: [], validation: ["test -f a.txt"], risks: [] },
    tasks: [
      { id: "T-001", phase: "project", action: "CREATE", file: "a.txt", more_files: [], requirements: [{ id: "FR-1", text: "a" }], gotchas: [], validation: { command: "test -s a.txt", expected: "exit 0" }, depends_on: [] },
      { id: "T-002", phase: "project", action: "CREATE", file: "b.txt", more_files: [], requirements: [{ id: "FR-1", text: "b" }], gotchas: [], validation: { command: "test -s b.txt", expected: "exit 0" }, depends_on: [] },
      { id: "T-003", phase: "project", action: "CREATE", file: "c.txt", more_files: [], requirements: [{ id: "FR-1", text: "c" }], gotchas: [], validation: { command: "test -s c.txt", expected: "exit 0" }, depends_on: ["T-001", "T-002"] } ] } }] }
"#;

/// A model that specifies one task, whose file is `a.txt` and which is checked by `check`, and writes that file.
pub(crate) fn one_task(check: &str) -> String {
    r#"
- agent: "specification"
  reply: { tools: [{ name: "specification", input: {
    document: {
      title: "Walks and rests", context_read: [], missing_inputs: [], objective: "Keep a list of walks and rests.",
      success_criteria: ["the file is there"], out_of_scope: [],
      requirements: [{ id: "FR-1", text: "Walks are listed.", priority: "must", acceptance: "the file is there", source: "planning/brief.md" }],
      quality: [], new_files: [], modified_files: [], avoid_files: [], interfaces: [], data: [],
      dependencies: [], gotchas: [], validation: ["test -f a.txt"], risks: [] },
    tasks: [
      { id: "T-001", phase: "project", action: "CREATE", file: "a.txt", more_files: [], requirements: [{ id: "FR-1", text: "a" }], gotchas: [], validation: { command: "CHECK", expected: "exit 0" }, depends_on: [] } ] } }] }
- agent: "build"
  turn: 1
  reply: { tools: [{ name: "write", input: { path: "a.txt", content: "a walk\n" } }] }
- agent: "build"
  reply: { tools: [{ name: "finish", input: { summary: "Wrote the list." } }] }
"#
    .replace("CHECK", check)
}

/// A project in a temporary directory, with a repository, a home and a state directory of its own.
pub(crate) struct World {
    root: TempDir,
}

impl World {
    /// Makes a repository with one commit, and no project yet.
    pub(crate) fn bare_of_project() -> Self {
        let world = Self {
            root: TempDir::with_prefix("ropewalk-cli-").unwrap(),
        };
        std::fs::create_dir_all(world.repository()).unwrap();
        std::fs::create_dir_all(world.home()).unwrap();
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.git(&["commit", "--quiet", "--allow-empty", "--message=start"]);
        world
    }

    /// Makes a project whose models answer from [`SCRIPT`].
    pub(crate) fn scripted() -> Self {
        let world = Self::bare_of_project();
        let script = format!("{SCRIPT}{}", one_task("test -s a.txt"));
        world.write("../script.yaml", &script);
        world.write(
            "ropewalk.toml",
            r#"
[project]
name = "walks"
repo = "."
state = "../state"

[person]
name = "ada"

[models]
chat = "script/x"
spec = "script/x"
build = "script/x"
small = "script/x"

[providers.script]
kind = "scripted"
script = "../script.yaml"
"#,
        );
        world
    }

    /// The directory that everything lies in.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.root().join("app")
    }

    /// The home directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The state directory of a scripted project.
    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Writes a file below the repository; a configuration that loosens something is trusted at once.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.write_untrusted(name, text);
        let environment = Environment::from_pairs(self.environment());
        let loaded = Config::load_whoever_wrote_it(&self.repository(), &environment, &[]);
        // What is broken is told to whoever runs a verb.
        if let Some(request) = loaded.ok().and_then(|loaded| loaded.trust) {
            request.trust(&environment, "now").unwrap();
        }
    }

    /// Writes a file below the repository, as somebody else might have.
    pub(crate) fn write_untrusted(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs git in the repository and returns what it says.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Process::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@localhost"])
            .args(arguments)
            .current_dir(self.repository())
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Returns the binary in the repository, with an environment of its own.
    pub(crate) fn ropewalk<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(BINARY);
        command
            .env_clear()
            .envs(self.environment())
            .current_dir(self.repository())
            .args(arguments)
            .timeout(LIMIT);
        command
    }

    /// Runs the words of `line` and returns the JSON answer.
    pub(crate) fn json(&self, line: &str) -> Value {
        let mut command = self.ropewalk(line.split_whitespace());
        let output = command
            .arg("--json")
            .assert()
            .success()
            .get_output()
            .clone();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the words of `line`, which must succeed, and returns what it answers.
    pub(crate) fn run(&self, line: &str) -> String {
        let mut command = self.ropewalk(line.split_whitespace());
        let output = command.assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the words of `line`, which must fail with `code`, and returns the one line that it says.
    pub(crate) fn refused(&self, line: &str, code: i32) -> String {
        one_line(self.ropewalk(line.split_whitespace()), code)
    }

    /// Commits what `change` says to the store, beside whatever process runs.
    pub(crate) fn commit(&self, change: impl FnOnce(&mut ChangeSet)) {
        let mut changes = ChangeSet::new();
        change(&mut changes);
        self.in_store(async |store| drop(store.commit(changes).await.unwrap()));
        // Whoever runs is told, as by every verb.
        Poker::poke(&self.state()).unwrap();
    }

    /// Does something with the store, beside whatever process runs.
    pub(crate) fn in_store<T>(&self, work: impl AsyncFnOnce(&Store) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let location = Location::parse("sqlite", &self.state()).unwrap();
            let store = Store::open(&location, Clock::system()).await.unwrap();
            let came_to = work(&store).await;
            store.close().await.unwrap();
            came_to
        })
    }

    /// Starts `ropewalk up` and waits until it runs.
    pub(crate) fn up(&self) -> Up {
        self.up_with(&[])
    }

    /// Starts `ropewalk up` with these variables and waits until it runs; what it says is added to `up.log`.
    pub(crate) fn up_with(&self, variables: &[(&str, &str)]) -> Up {
        self.start(&["up"], variables)
    }

    /// Starts `ropewalk up`, waits until it runs, and reads no more of the much that it says; while what is returned
    /// beside it lives, it could be read.
    pub(crate) fn up_unheard(&self) -> (Up, Lines<BufReader<ChildStderr>>) {
        let variables = [("ROPEWALK_LOG__FILTER", "trace")];
        let (up, _, unread) = self.begin(Process::new(BINARY).arg("up"), &variables);
        (up, unread)
    }

    /// Starts `ropewalk up` as a terminal does that takes it along when it is closed, and waits until it runs: also where
    /// these tests are to outlive theirs.
    pub(crate) fn up_attached(&self) -> Up {
        let mut attached = Process::new("env");
        attached.args(["--default-signal=HUP", BINARY, "up"]);
        self.up_by(&mut attached)
    }

    /// Starts `ropewalk up` as `nohup` does, and waits until it runs.
    pub(crate) fn up_detached(&self) -> Up {
        let mut shell = Process::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" up", BINARY]);
        self.up_by(&mut shell)
    }

    /// Starts `ropewalk up` by a program that becomes it, and waits until it runs.
    pub(crate) fn up_by(&self, program: &mut Process) -> Up {
        self.begin(program, &[]).0
    }

    /// Starts a verb that runs until it is stopped, with these variables; what it says is added to `up.log`.
    pub(crate) fn start(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Up {
        let mut program = Process::new(BINARY);
        let (up, said, lines) = self.begin(program.args(arguments), variables);
        // Whoever logs into a full pipe stands still.
        let mut log = std::fs::File::create(self.root().join("up.log")).unwrap();
        std::thread::spawn(move || {
            let heard = said.into_iter().chain(lines.map_while(Result::ok));
            heard.for_each(|line| drop(writeln!(log, "{line}")));
        });
        up
    }

    /// Starts a program and waits until it runs; returns what it said until then, and the lines that it goes on to say.
    fn begin(
        &self,
        program: &mut Process,
        variables: &[(&str, &str)],
    ) -> (Up, Vec<String>, Lines<BufReader<ChildStderr>>) {
        let mut child = program
            .env_clear()
            .envs(self.environment())
            .envs(variables.iter().copied())
            .current_dir(self.repository())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| {
            let ready = line.contains("stop it with Ctrl-C");
            said.push(line);
            ready
        });
        assert!(ready, "`up` did not start: {said:#?}");
        (Up { child }, said, lines)
    }

    /// Lists every file below the root with its content.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.root(), &mut files);
        files
    }

    /// Returns the variables that the binary sees.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("HOME".to_owned(), self.home().display().to_string()),
            ("USER".to_owned(), "ada".to_owned()),
        ];
        for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "TMPDIR"] {
            if let Some(value) = std::env::vars().find(|(known, _)| known == name) {
                variables.push(value);
            }
        }
        variables
    }
}

/// Puts a program into `folder` that does what these lines of a shell say.
pub(crate) fn stand_in(folder: &Path, name: &str, lines: &str) {
    let program = folder.join(name);
    std::fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Asserts that `command` fails with `code` and one line, and returns that.
pub(crate) fn one_line(mut command: Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.starts_with("ropewalk: "), "{said}");
    assert_eq!(output.stdout, b"", "{said}");
    said.trim_end().to_owned()
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    /// What is longer is known by its length and by when it was written.
    const LONGEST: u64 = 16 * 1024 * 1024;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // A link may lead nowhere, or round in a cycle.
        let found = path.symlink_metadata().unwrap();
        let content = if found.is_dir() {
            collect(&path, files);
            Vec::new()
        } else if found.is_symlink() {
            let target = path.read_link().unwrap();
            target.into_os_string().into_encoded_bytes()
        } else if found.len() > LONGEST {
            format!("{} {:?}", found.len(), found.modified().unwrap()).into_bytes()
        } else {
            std::fs::read(&path).unwrap()
        };
        files.insert(path, content);
    }
}

/// A running `ropewalk up`, stopped when it is dropped.
pub(crate) struct Up {
    child: Child,
}

impl Up {
    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal and returns the exit code.
    pub(crate) fn stop(mut self, signal: nix::sys::signal::Signal) -> Option<i32> {
        self.signal(signal);
        self.child.wait().unwrap().code()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }
}

impl Drop for Up {
    /// Stops it as a person does: a program that is killed says at its next start what it had in hand.
    fn drop(&mut self) {
        if !std::thread::panicking() && matches!(self.child.try_wait(), Ok(None)) {
            self.signal(nix::sys::signal::Signal::SIGTERM);
            let patience = Instant::now() + STOPPED_WITHIN;
            while Instant::now() < patience && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
