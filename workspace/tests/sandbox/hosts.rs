//! What of the outside a confined command reaches, and what it does not.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ropewalk_schemas::HostPattern;
use ropewalk_workspace::sandbox::Denial;
use ropewalk_workspace::sandbox::egress::{Egress, Internet, Outside, Refusal, Upstream};
use ropewalk_workspace::{CommandOutput, CommandSpec};

use crate::ground::{Ground, Way, own_ways};

/// The only address of this machine that counts as one of the outside here.
const OUTSIDE: &str = "127.0.0.77";

/// Answers for every name with the same addresses, or with others from the second time on.
#[derive(Debug)]
struct Names {
    first: Vec<IpAddr>,
    later: Vec<IpAddr>,
    asked: AtomicUsize,
}

impl Names {
    fn leading(first: &[&str], later: &[&str]) -> Arc<Self> {
        let read = |texts: &[&str]| texts.iter().flat_map(|text| text.parse()).collect();
        Arc::new(Self {
            first: read(first),
            later: read(later),
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Outside for Names {
    async fn find(&self, _: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let found = if asked == 0 { &self.first } else { &self.later };
        if found.is_empty() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(found
            .iter()
            .map(|address| (*address, port).into())
            .collect())
    }

    fn holds(&self, address: IpAddr) -> bool {
        address.to_string() == OUTSIDE || Internet.holds(address)
    }
}

/// A server that answers each connection once, and remembers the heads that it got.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(at: &str, answer: &'static str) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((at, 0))?;
        let (port, heads) = (listener.local_addr()?.port(), Arc::default());
        let kept: Arc<Mutex<Vec<String>>> = Arc::clone(&heads);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                kept.lock().unwrap().push(head.join("\n"));
                stream.write_all(answer.as_bytes()).ok();
            }
        });
        Ok(Self { port, heads })
    }

    fn host() -> anyhow::Result<Self> {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nreached\n";
        Self::start(OUTSIDE, answer)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn egress(host: &str, port: u16, names: &Arc<Names>) -> anyhow::Result<Egress> {
    Ok(Egress {
        hosts: vec![HostPattern::parse(&format!("{host}:{port}"))?],
        package_hosts: Vec::new(),
        upstream: Upstream::default(),
        outside: Arc::clone(names) as Arc<dyn Outside>,
    })
}

async fn run(way: Way, egress: Egress, line: &str) -> anyhow::Result<CommandOutput> {
    let ground = Ground::new()?.with_egress(egress);
    ground.confined(way, line).await
}

#[tokio::test]
async fn a_listed_host_is_reached_in_the_plain_and_through_a_tunnel() -> anyhow::Result<()> {
    for way in own_ways() {
        for (tunnel, pattern) in [("", "a.listed.test"), ("--proxytunnel", "*.listed.test")] {
            let (server, names) = (Server::host()?, Names::leading(&[OUTSIDE], &[OUTSIDE]));
            let port = server.port;
            let egress = egress(pattern, port, &names)?;
            let line = format!("curl -sS {tunnel} http://a.listed.test:{port}/path");
            let output = run(way, egress, &line).await?;
            assert_eq!(output.stdout, "reached\n", "{way:?} {tunnel}: {output:?}");
            assert_eq!(output.denial, None);
            let [head] = server.heads().try_into().unwrap();
            assert!(head.starts_with("GET /path HTTP/1.1\n"), "{head}");
            assert!(
                head.contains(&format!("Host: a.listed.test:{port}")),
                "{head}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_host_that_is_not_listed_is_refused_and_named() -> anyhow::Result<()> {
    for way in own_ways() {
        let (server, names) = (Server::host()?, Names::leading(&[OUTSIDE], &[OUTSIDE]));
        let port = server.port;
        for (host, tunnel) in [
            ("other.test", ""),
            ("other.test", "--proxytunnel"),
            ("deep.listed.test", ""),
            (OUTSIDE, ""),
        ] {
            let egress = egress("listed.test", port, &names)?;
            let line = format!(
                "curl -sS --noproxy '' {tunnel} -w ' %{{http_code}}%{{http_connect}}' http://{host}:{port}; false"
            );
            let output = run(way, egress, &line).await?;
            let wanted = format!("{host}:{port}");
            assert_eq!(
                output.denial,
                Some(Denial::Refused(Refusal::Unlisted(wanted.clone()))),
                "{output:?}"
            );
            let told = format!(
                "ropewalk: the sandbox does not let it reach `{wanted}`, which `sandbox.hosts` does not list\n"
            );
            assert!(output.stderr.ends_with(&told), "{output:?}");
            assert!(output.stdout.contains("403"), "{output:?}");
            assert_eq!(
                output.stdout.starts_with(&told),
                tunnel.is_empty(),
                "{output:?}"
            );
        }
        assert_eq!(server.heads(), [""; 0], "{way:?}");
        assert_eq!(names.asked.load(Ordering::SeqCst), 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_listed_name_that_leads_inside_is_refused() -> anyhow::Result<()> {
    for way in own_ways() {
        let (server, here) = (Server::host()?, Server::start("127.0.0.1", "canary")?);
        for (addresses, port) in [
            (&["127.0.0.1"][..], here.port),
            (&["::ffff:127.0.0.1"], here.port),
            (&["169.254.169.254"], 80),
            (&["10.0.0.1"], 80),
            (&["fd00::1"], 443),
            (&[OUTSIDE, "127.0.0.1"], server.port),
        ] {
            let names = Names::leading(addresses, addresses);
            let egress = egress("listed.test", port, &names)?;
            let line = format!("curl -sS -f http://listed.test:{port}");
            let output = run(way, egress, &line).await?;
            let address = addresses.last().unwrap().parse()?;
            let host = "listed.test".to_owned();
            let refusal = Refusal::Inside { host, address };
            assert_eq!(output.denial, Some(Denial::Refused(refusal)), "{output:?}");
        }
        assert_eq!(
            (server.heads().len(), here.heads().len()),
            (0, 0),
            "{way:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_after_it_was_looked_at_gains_nothing() -> anyhow::Result<()> {
    for way in own_ways() {
        let server = Server::host()?;
        let names = Names::leading(&[OUTSIDE], &["127.0.0.1"]);
        let egress = egress("listed.test", server.port, &names)?;
        let line = format!("curl -sS http://listed.test:{}", server.port);
        let output = run(way, egress, &line).await?;
        assert_eq!(output.stdout, "reached\n", "{way:?}: {output:?}");
        assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    }
    Ok(())
}

#[tokio::test]
async fn whoever_does_not_ask_the_proxy_reaches_its_own_loopback_alone() -> anyhow::Result<()> {
    // Serves and asks itself in spite of the proxy.
    let own = "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\", LocalPort => 8123); \
               my $c = $s->accept; print $c \"HTTP/1.0 200 OK\\r\\n\\r\\nown\\n\"' & \
               curl -sS --retry 100 --retry-connrefused --retry-delay 1 http://127.0.0.1:8123";
    for way in own_ways() {
        let (server, names) = (Server::host()?, Names::leading(&[OUTSIDE], &[OUTSIDE]));
        let port = server.port;
        let raw = format!(
            "bash -c 'exec 3<>/dev/tcp/{OUTSIDE}/{port} && echo connected >&3 && echo reached'"
        );
        let unconfined = Ground::new()?.unconfined(&raw)?;
        assert_eq!(unconfined.stdout, b"reached\n");
        let output = run(way, egress("listed.test", port, &names)?, &raw).await?;
        assert_eq!(output.stdout, "", "{way:?}: {output:?}");
        let output = run(way, egress("listed.test", port, &names)?, own).await?;
        assert_eq!(output.stdout, "own\n", "{way:?}: {output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn with_no_host_listed_there_is_no_proxy() -> anyhow::Result<()> {
    for way in own_ways() {
        let line = "env | grep -ic proxy; tail -n +2 /proc/net/tcp; ls /tmp";
        let output = run(way, Egress::none(), line).await?;
        assert_eq!(output.stdout, "0\n", "{way:?}: {output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn only_installs_reach_the_hosts_of_packages() -> anyhow::Result<()> {
    for way in own_ways() {
        let (server, names) = (Server::host()?, Names::leading(&[OUTSIDE], &[OUTSIDE]));
        let mut egress = egress("packages.test", server.port, &names)?;
        egress.package_hosts = std::mem::take(&mut egress.hosts);
        let ground = Ground::new()?.with_egress(egress);
        let line = format!(
            "curl -sS --proxytunnel http://packages.test:{} || env | grep -i proxy",
            server.port
        );
        for (packages, expected) in [(true, "reached\n"), (false, "")] {
            let spec = CommandSpec::shell(line.clone(), ground.tree()).installing(packages);
            let output = ground.run(way, &spec).await?;
            assert_eq!(output.stdout, expected, "{way:?}: {output:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_host_that_is_away_is_told_and_is_no_denial() -> anyhow::Result<()> {
    let way = own_ways().next().unwrap();
    let names = Names::leading(&[], &[]);
    let egress = egress("listed.test", 443, &names)?;
    let output = run(way, egress, "curl -sS https://listed.test").await?;
    assert!(
        output
            .stderr
            .contains("ropewalk: no answer from the outside: `listed.test` is not found: "),
        "{output:?}"
    );
    assert!(!output.succeeded() && output.denial.is_none(), "{output:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_too_long_or_no_request_to_a_proxy_is_refused() -> anyhow::Result<()> {
    for way in own_ways() {
        let (server, names) = (Server::host()?, Names::leading(&[OUTSIDE], &[OUTSIDE]));
        let port = server.port;
        for (arguments, expected) in [
            (
                format!("-H \"X: $(printf %020000d 0)\" http://listed.test:{port}"),
                "431",
            ),
            ("--noproxy '*' $HTTP_PROXY/path".to_owned(), "400"),
        ] {
            let line = format!("curl -sS -o /dev/null -w '%{{http_code}}' {arguments}");
            let output = run(way, egress("listed.test", port, &names)?, &line).await?;
            assert_eq!(output.stdout, expected, "{way:?}: {output:?}");
        }
        assert_eq!(server.heads(), [""; 0], "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_proxy_of_the_machine_is_asked_by_name() -> anyhow::Result<()> {
    let way = own_ways().next().unwrap();
    let answer = "HTTP/1.1 200 OK\r\n\r\nby the proxy\n";
    // A name that only the proxy knows, and one that leads inside before it is asked.
    for (addresses, tunnel, expected) in [
        (&[][..], "", "GET http://listed.test:81/ HTTP/1.1"),
        (&[], "--proxytunnel", "CONNECT listed.test:81 HTTP/1.1"),
        (&["10.0.0.1"], "", ""),
    ] {
        let (proxy, names) = (
            Server::start("127.0.0.1", answer)?,
            Names::leading(addresses, addresses),
        );
        let url = format!("http://ada:secret@127.0.0.1:{}", proxy.port);
        let upstream = Upstream::of(|name| {
            ["HTTP_PROXY", "HTTPS_PROXY"]
                .contains(&name)
                .then_some(&url)
        })?;
        let egress = Egress {
            upstream,
            ..egress("listed.test", 81, &names)?
        };
        let line =
            format!("curl -sS {tunnel} --http0.9 http://listed.test:81; env | grep -c secret");
        let output = run(way, egress, &line).await?;
        let head = proxy.heads().pop().unwrap_or_default();
        assert_eq!(
            head.lines().next().unwrap_or_default(),
            expected,
            "{output:?}"
        );
        let reached = !expected.is_empty();
        assert_eq!(
            head.contains("Proxy-Authorization: Basic YWRhOnNlY3JldA=="),
            reached
        );
        assert_eq!(
            output.stdout.contains("by the proxy\n"),
            reached,
            "{output:?}"
        );
        assert!(output.stdout.ends_with("0\n"), "{output:?}");
    }
    Ok(())
}
