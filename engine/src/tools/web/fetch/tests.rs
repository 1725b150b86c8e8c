use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ropewalk_schemas::HostPattern;
use ropewalk_workspace::sandbox::egress::{Internet, Outside, Upstream};
use serde_json::json;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::tools::workbench::tests::Bench;

/// Leads every name to this machine, of which one address counts as one of the outside.
#[derive(Debug)]
struct Here {
    outside: bool,
}

#[async_trait]
impl Outside for Here {
    async fn find(&self, _: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(vec![([127, 0, 0, 1], port).into()])
    }

    fn holds(&self, address: IpAddr) -> bool {
        self.outside || Internet.holds(address)
    }
}

/// Reads pages of `docs.test`, which is the server.
fn fetcher(server: &MockServer, outside: bool) -> WebFetch {
    let port = server.address().port();
    WebFetch::new(Egress {
        hosts: vec![HostPattern::parse(&format!("docs.test:{port}")).unwrap()],
        package_hosts: Vec::new(),
        upstream: Upstream::default(),
        outside: Arc::new(Here { outside }),
    })
}

async fn serve(server: &MockServer, at: &str, kind: &str, body: impl Into<Vec<u8>>) {
    let page = ResponseTemplate::new(200).set_body_raw(body, kind);
    let mock = Mock::given(path(at)).respond_with(page);
    mock.mount(server).await;
}

async fn fetched(tool: &WebFetch, url: &str) -> ToolOutput {
    let bench = Bench::new(&[], &[]);
    bench.run(tool, json!({ "url": url })).await
}

fn at(server: &MockServer, page: &str) -> String {
    format!("http://docs.test:{}{page}", server.address().port())
}

#[tokio::test]
async fn a_page_is_read_as_text_and_asked_for_each_time() {
    let server = MockServer::start().await;
    let html = "<html><head><title>T</title><style>x{}</style></head><body><h1>Title</h1><p>Some <b>words</b>.\
                <script>evil()</script><ul><li>one<li>two</ul></body></html>";
    serve(&server, "/page", "text/html; charset=utf-8", html).await;
    serve(&server, "/raw", "application/json", "{\"a\": 1}").await;
    let tool = fetcher(&server, true);
    let output = fetched(&tool, &at(&server, "/page")).await;
    let told = format!("[from {}, not to be trusted]\n", at(&server, "/page"));
    assert!(output.text.starts_with(&told), "{}", output.text);
    for part in ["Title", "Some ", "words", "one", "two"] {
        assert!(output.text.contains(part), "{}", output.text);
    }
    assert!(!output.text.contains("evil") && !output.text.contains("<p>"));
    let raw = fetched(&tool, &at(&server, "/raw")).await;
    assert!(raw.text.ends_with("\n{\"a\": 1}"), "{}", raw.text);
    fetched(&tool, &at(&server, "/page")).await;
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn nothing_is_asked_of_a_host_that_is_not_listed_or_leads_inside() {
    let server = MockServer::start().await;
    serve(&server, "/", "text/plain", "inside").await;
    let port = server.address().port();
    let listed = at(&server, "/");
    for (tool, url) in [
        (fetcher(&server, true), format!("http://other.test:{port}/")),
        (fetcher(&server, true), format!("http://127.0.0.1:{port}/")),
        (fetcher(&server, true), format!("http://2130706433:{port}/")),
        (fetcher(&server, true), format!("http://[::1]:{port}/")),
        (fetcher(&server, true), "http://docs.test/".to_owned()),
        (fetcher(&server, true), "file:///etc/passwd".to_owned()),
        (
            fetcher(&server, true),
            format!("http://ada:x@docs.test:{port}/"),
        ),
        (fetcher(&server, true), "docs.test".to_owned()),
        (fetcher(&server, false), listed.clone()),
    ] {
        let output = fetched(&tool, &url).await;
        assert!(
            output.is_error && !output.text.contains("inside\n"),
            "{url}: {}",
            output.text
        );
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 0);
    let inside = fetched(&fetcher(&server, false), &listed).await;
    assert!(inside.text.contains("127.0.0.1"), "{}", inside.text);
}

#[tokio::test]
async fn a_redirect_is_followed_as_far_as_its_target_is_listed() {
    let server = MockServer::start().await;
    let leads = |from: &str, to: &str| {
        let answer = ResponseTemplate::new(302).insert_header("location", to);
        Mock::given(path(from.to_owned())).respond_with(answer)
    };
    leads("/near", "/page").mount(&server).await;
    leads("/itself", "/itself").mount(&server).await;
    let inside = format!("http://127.0.0.1:{}/page", server.address().port());
    leads("/inside", &inside).mount(&server).await;
    serve(&server, "/page", "text/plain", "the page").await;
    let tool = fetcher(&server, true);
    let output = fetched(&tool, &at(&server, "/near")).await;
    assert!(output.text.ends_with("the page"), "{}", output.text);
    for (page, part) in [
        ("/inside", "does not list"),
        ("/itself", "5 times"),
        ("/gone", "404"),
    ] {
        let output = fetched(&tool, &at(&server, page)).await;
        assert!(
            output.is_error && output.text.contains(part),
            "{}",
            output.text
        );
    }
}

#[tokio::test]
async fn a_page_is_bounded_and_what_is_no_text_is_not_shown() {
    let server = MockServer::start().await;
    serve(&server, "/long", "text/plain", "x\n".repeat(MOST_BYTES)).await;
    serve(&server, "/deep", "text/html", "<div>".repeat(20_000)).await;
    let flat = "<p>one<br><li>two<div>three</div><script>a<b</script>".repeat(2_000);
    serve(&server, "/flat", "text/html", flat).await;
    serve(&server, "/image", "image/png", [137_u8, 80, 78, 71]).await;
    let tool = fetcher(&server, true);
    let long = fetched(&tool, &at(&server, "/long")).await;
    assert!(
        long.text
            .ends_with(&format!("[cut after {MOST_BYTES} bytes]"))
    );
    assert!(long.text.len() < MOST_BYTES + 500);
    let deep = fetched(&tool, &at(&server, "/deep")).await;
    assert!(deep.is_error && deep.text.contains("deep"), "{}", deep.text);
    let flat = fetched(&tool, &at(&server, "/flat")).await;
    assert_eq!(flat.text.matches("three").count(), 2_000);
    let image = fetched(&tool, &at(&server, "/image")).await;
    assert!(
        image.is_error && image.text.contains("image/png"),
        "{}",
        image.text
    );
}

#[tokio::test]
async fn a_page_that_unpacks_to_a_thousand_times_its_size_is_read_up_to_its_bound() {
    let server = MockServer::start().await;
    let packed = ropewalk_tests::bombs::packed_zeros(64).unwrap();
    assert!(packed.len() < 1024 * 1024, "{}", packed.len());
    for (at, kind) in [("/json", "application/json"), ("/html", "text/html")] {
        let page = ResponseTemplate::new(200)
            .insert_header("content-encoding", "gzip")
            .set_body_raw(packed.clone(), kind);
        Mock::given(path(at))
            .respond_with(page)
            .mount(&server)
            .await;
    }
    let tool = fetcher(&server, true);
    let json = fetched(&tool, &at(&server, "/json")).await;
    let told = format!("`application/json`, {MOST_BYTES} bytes");
    assert!(json.is_error && json.text.contains(&told), "{}", json.text);
    let html = fetched(&tool, &at(&server, "/html")).await;
    assert!(html.text.len() <= MOST_BYTES + 500, "{}", html.text.len());
}
