//! The attacks.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::process::{Child, Command};
use std::time::Duration;

use nix::libc::SYS_prctl;
use nix::unistd::geteuid;
use ropewalk_workspace::sandbox::Denial;

use crate::ground::{CANARY, DISK, Ground, SHARED_MEMORY, only_stopped, ways};

/// What an attack is after.
pub(crate) struct Attack<'a> {
    pub(crate) line: &'a str,
    /// Whether it got that; told what the command wrote.
    pub(crate) got: &'a dyn Fn(&Ground, &str) -> bool,
}

/// Attacks with nothing in the way, then confined in every way: only the first may succeed.
pub(crate) async fn only_unconfined(attack: Attack<'_>) -> anyhow::Result<()> {
    let ground = Ground::new()?;
    let output = ground.unconfined(attack.line)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!((attack.got)(&ground, &text), "unconfined: {output:?}");
    for way in ways() {
        let ground = Ground::new()?;
        let output = ground.confined(way, attack.line).await?;
        assert!(
            !(attack.got)(&ground, &output.stdout),
            "{way:?}: {output:?}"
        );
        // What did not run at all proves nothing.
        let alive = ground.confined(way, "pwd; echo alive > mark").await?;
        assert!(alive.succeeded(), "{way:?}: {alive:?}");
        assert_eq!(fs::read_to_string(ground.tree().join("mark"))?, "alive\n");
    }
    Ok(())
}

pub(crate) fn reads_canary(_: &Ground, said: &str) -> bool {
    said.contains(CANARY)
}

fn reaches(_: &Ground, said: &str) -> bool {
    said.contains("reached")
}

#[tokio::test]
async fn nothing_is_written_beside_the_checkout() -> anyhow::Result<()> {
    only_unconfined(Attack {
        line: "echo x > ../escaped",
        got: &|ground, _| ground.place("state/slots/1/escaped").exists(),
    })
    .await?;
    only_unconfined(Attack {
        line: "ln -s BASE/outside out && echo x > out/file",
        got: &|ground, _| ground.place("outside/file").exists(),
    })
    .await?;
    only_unconfined(Attack {
        line: "mkdir -p BASE/state/slots/2/tree && echo x > BASE/state/slots/2/tree/new",
        got: &|ground, _| ground.place("state/slots/2/tree/new").exists(),
    })
    .await
}

#[tokio::test]
async fn what_is_not_of_the_checkout_is_not_read() -> anyhow::Result<()> {
    for line in [
        "cat BASE/state/ropewalk.db",
        "cat ../../2/tree/file",
        "cat ~/.ssh/id",
        "ln -s BASE/state/ropewalk.db here; cat here",
        "for top in /proc/1/root /proc/self/root; do cat ${top}BASE/state/ropewalk.db; done",
    ] {
        only_unconfined(Attack {
            line,
            got: &reads_canary,
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_write_beside_the_checkout_fails_instead_of_being_lost() -> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?;
        for line in [
            "echo x > ../escaped",
            "echo x > ../../escaped",
            "mkdir -p BASE/state/slots/2/tree",
            "mkdir ../other",
        ] {
            let output = ground.confined(way, line).await?;
            let said = format!("{way:?} {line}: {output:?}");
            assert!(!output.succeeded(), "{said}");
            assert!(output.stderr.contains("Read-only file system"), "{said}");
            assert!(
                matches!(output.denial, Some(Denial::Write(Some(_)))),
                "{said}"
            );
        }
    }
    Ok(())
}

/// Ends a process with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn the_environment_of_others_is_not_read() -> anyhow::Result<()> {
    let mut other = Command::new("sleep");
    let _other = Ending(other.arg("600").env("KEY", CANARY).spawn()?);
    only_unconfined(Attack {
        line: "cat /proc/*/environ | tr '\\0' '\\n'",
        got: &reads_canary,
    })
    .await
}

/// Finds an address of this machine that is not its loopback.
fn own_address() -> IpAddr {
    let loopback = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let asked = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    asked.map_or(loopback, |address| address.ip())
}

#[tokio::test]
async fn neither_the_bus_nor_a_host_is_reached() -> anyhow::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), own_address()] {
        let line = format!("bash -c 'echo hello > /dev/tcp/{address}/{port}'");
        only_unconfined(Attack {
            line: &line,
            got: &|_, _| match listener.accept() {
                Ok(_) => true,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            },
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_daemon_lives_on() -> anyhow::Result<()> {
    // Nobody else sleeps for as long, so that it is known by that.
    let seconds = format!("{}.5", 100_000 + std::process::id());
    let line = format!(
        "setsid env -i /bin/sh -c ': > begun; exec /bin/sleep {seconds}' </dev/null >/dev/null 2>&1 & \
         until [ -e begun ]; do sleep 0.02; done; sleep 0.5"
    );
    only_unconfined(Attack {
        line: &line,
        got: &|_, _| {
            let found = Command::new("pkill")
                .args(["-x", "-f", &format!("/bin/sleep {seconds}")])
                .status();
            found.is_ok_and(|status| status.success())
        },
    })
    .await
}

#[tokio::test]
async fn what_uses_up_too_much_is_stopped() -> anyhow::Result<()> {
    let _disk = DISK.lock().await;
    // Files may lie in memory, and are written no faster than the disk is looked at, so that their bound is the one that is met.
    for (line, told) in [
        (
            "for i in $(seq 300); do sleep 60 & all=\"$all $!\"; done; sleep HOLD; echo reached; kill $all",
            "processes",
        ),
        (
            "head -c 1G /dev/zero | tail | wc -c; sleep HOLD; echo reached",
            "memory",
        ),
        (
            "for i in $(seq 40); do head -c 20M /dev/zero > file$i; sleep 0.05; done; sleep HOLD; echo reached",
            "disk",
        ),
        // Nobody sees those files any more.
        (
            "for i in $(seq 3 9); do eval \"exec $i>file\"; rm file; head -c 20M /dev/zero >&$i; sleep 0.05; done; \
             sleep HOLD; echo reached",
            "disk",
        ),
    ] {
        only_stopped(line, told, None).await?;
    }
    only_unconfined(Attack {
        line: "yes | head -c 300M > big; test $(stat -c %s big) -gt 200000000 && echo reached",
        got: &reaches,
    })
    .await
}

/// Fills files in a directory that it has closed to everybody, itself among them.
const CLOSED: &str = "mkdir closed; for i in $(seq 3 9); do eval \"exec $i>closed/$i\"; done; chmod 0 closed; \
    for i in $(seq 3 9); do head -c 20M /dev/zero >&$i; sleep 0.05; done; \
    sleep HOLD; chmod 700 closed; echo reached";
/// Fills files without a name, and shows nobody what it holds open.
const UNSEEN: &str = "perl -e 'syscall(PRCTL, 4, 0, 0, 0, 0) and die; my $part = \"x\" x 20_000_000; \
    for my $i (1..7) { open($files[$i], \">\", \"file$i\") or die; unlink \"file$i\"; \
    syswrite($files[$i], $part); select(undef, undef, undef, 0.05) } \
    sleep HOLD; print \"reached\\n\"'";

#[tokio::test]
async fn what_is_written_where_nobody_can_look_is_stopped() -> anyhow::Result<()> {
    let _disk = DISK.lock().await;
    // What others have there would be held against a process that hides what it holds.
    let _memory = SHARED_MEMORY.lock().await;
    let unseen = UNSEEN.replace("PRCTL", &SYS_prctl.to_string());
    for line in [CLOSED, &unseen] {
        only_stopped(line, "disk", None).await?;
    }
    Ok(())
}

/// Removes what is large beside a command that writes to the same disk, so that more is free than before.
#[tokio::test]
async fn what_others_remove_from_the_disk_hides_nothing() -> anyhow::Result<()> {
    let _disk = DISK.lock().await;
    let line = "touch begun; until test -e go; do sleep 0.1; done; \
                for i in $(seq 10); do head -c 20M /dev/zero > file$i; done; sleep 60; echo reached";
    for way in ways() {
        let ground = Ground::new()?;
        let large = ground.place("outside/large");
        fs::write(&large, vec![1; 300 * 1024 * 1024])?;
        let remove = async {
            while !ground.tree().join("begun").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            fs::remove_file(&large)?;
            anyhow::Ok(fs::write(ground.tree().join("go"), "")?)
        };
        let (output, removed) = tokio::join!(ground.confined(way, line), remove);
        removed?;
        let output = output?;
        assert!(!output.stdout.contains("reached"), "{way:?}: {output:?}");
        let told = "the command was stopped: it wrote more than";
        assert!(output.stderr.contains(told), "{way:?}: {output:?}");
    }
    Ok(())
}

/// Opens a socket of a sort that is neither of the machine nor of the internet: vsock, crypto, keys, packets, whichever the kernel has.
const OTHER_SOCKET: &str = "perl -e 'for ([40, 1], [38, 5], [15, 3], [17, 3]) \
    { socket(my $s, $$_[0], $$_[1], 2) || socket($s, $$_[0], $$_[1], 0) and print \"reached\\n\" }'";

#[tokio::test]
async fn the_kernel_is_not_asked_for_a_way_out() -> anyhow::Result<()> {
    let mut lines = vec![
        "unshare -U true && echo reached",
        "unshare -Urm mount -t tmpfs none /mnt && echo reached",
        OTHER_SOCKET,
        "test -s /etc/shadow && echo reached",
        "ls /proc | grep -x $PPID && test $PPID -gt 20 && echo reached",
    ];
    // Whoever is no root has no such prize.
    if geteuid().is_root() {
        lines.push("test -w /etc/hostname && echo reached");
    }
    for line in lines {
        only_unconfined(Attack {
            line,
            got: &reaches,
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_was_refused_is_named() -> anyhow::Result<()> {
    for way in ways() {
        let ground = Ground::new()?;
        let state = ground.place("state/ropewalk.db").display().to_string();
        for (line, named) in [
            (
                "echo x > /usr/escaped".to_owned(),
                Denial::Write(Some("/usr/escaped".to_owned())),
            ),
            (
                "cat BASE/state/ropewalk.db".to_owned(),
                Denial::Hidden(state.clone()),
            ),
            (
                "bash -c 'echo hello > /dev/tcp/192.0.2.1/80'".to_owned(),
                Denial::Host(None),
            ),
        ] {
            let output = ground.confined(way, &line).await?;
            assert_eq!(output.denial.as_ref(), Some(&named), "{way:?}: {output:?}");
        }
        for line in [
            "echo 'Network is unreachable'",
            "echo x > /usr/escaped; echo 'AssertionError: 1 != 2'; exit 1",
            "echo \"$PWD/x: Read-only file system\"; exit 1",
        ] {
            let fine = ground.confined(way, line).await?;
            assert_eq!(fine.denial, None, "{way:?}: {fine:?}");
        }
    }
    Ok(())
}
