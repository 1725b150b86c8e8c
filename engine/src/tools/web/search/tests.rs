use std::net::{IpAddr, SocketAddr};

use ropewalk_schemas::HostPattern;
use ropewalk_workspace::sandbox::egress::{Egress, Internet, Outside, Upstream};
use serde_json::json;
use wiremock::matchers::{header, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::mode::AgentMode;
use crate::tools::tools_of;
use crate::tools::workbench::tests::Bench;
use crate::tools::workbench::{Workbench, WorkbenchOptions};

/// Leads every name to this machine.
#[derive(Debug)]
struct Here;

#[async_trait]
impl Outside for Here {
    async fn find(&self, _: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(vec![([127, 0, 0, 1], port).into()])
    }

    fn holds(&self, address: IpAddr) -> bool {
        Internet.holds(address)
    }
}

async fn serve(server: &MockServer, at: &str, answer: ResponseTemplate) {
    let mock = Mock::given(path(at)).respond_with(answer);
    mock.mount(server).await;
}

/// Searches at a page of the server, which a person said may be on this machine.
fn searcher(server: &MockServer, page: &str) -> WebSearch {
    let url = Url::parse(&format!("{}{page}", server.uri())).unwrap();
    let key = Some("search-key-1".into());
    WebSearch::new(Arc::new(Searxng::new(url, key, SearxngAccess::Anywhere)))
}

async fn searched(tool: &WebSearch, query: &str) -> ToolOutput {
    let bench = Bench::new(&[], &[]);
    bench.run(tool, json!({ "query": query })).await
}

#[tokio::test]
async fn the_web_is_searched_each_time_and_what_is_found_stays_in_its_lines() {
    let server = MockServer::start().await;
    let mut results = vec![
        json!({ "url": "https://docs.test/a", "title": "One\n2. Two", "content": "x [1]\r\n\u{1b}[2Jy", "score": 1.5 }),
        json!({ "url": "javascript:alert(1)", "title": "Three", "content": "" }),
        json!({ "url": "nowhere", "title": "Four", "content": "" }),
        json!({ "url": "https://docs.test/b", "title": null }),
    ];
    let many =
        (0..20).map(|number| json!({ "url": format!("https://docs.test/{number}"), "title": "t" }));
    results.extend(many);
    Mock::given(path("/search"))
        .and(query_param("q", "walks & talks"))
        .and(query_param("format", "json"))
        .and(query_param("language", "en"))
        .and(header("authorization", "Bearer search-key-1"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({ "results": results })))
        .mount(&server)
        .await;
    let tool = searcher(&server, "/search?language=en");
    let found = searched(&tool, "walks & talks").await;
    let beginning = "[found on the web for `walks & talks`, not to be trusted]\n\
                     1. One 2. Two\n   https://docs.test/a\n   x [1] [2Jy\n\
                     2. \n   https://docs.test/b\n   \n3. t\n";
    assert!(found.text.starts_with(beginning), "{}", found.text);
    assert_eq!(found.text.matches("https://").count(), MOST_HITS);
    searched(&tool, "walks & talks").await;
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_search_is_bounded_and_fails_in_a_line_that_tells_no_key() {
    let server = MockServer::start().await;
    let redirect = ResponseTemplate::new(302).insert_header("location", "/none");
    serve(&server, "/moved", redirect).await;
    serve(&server, "/limited", ResponseTemplate::new(429)).await;
    let page = ResponseTemplate::new(200).set_body_string("<html>");
    serve(&server, "/page", page).await;
    let long = format!(
        "{{\"results\": [], \"x\": \"{}\"}}",
        "x".repeat(1024 * 1024)
    );
    serve(
        &server,
        "/long",
        ResponseTemplate::new(200).set_body_string(long),
    )
    .await;
    let none = ResponseTemplate::new(200).set_body_json(json!({ "results": [] }));
    serve(&server, "/none", none).await;
    for (page, part) in [
        ("/moved", "302"),
        ("/limited", "429"),
        ("/page", "results in JSON"),
        ("/long", "1048576"),
    ] {
        let output = searched(&searcher(&server, page), "walks").await;
        let told = &output.text;
        assert!(output.is_error && told.contains(part), "{told}");
        assert!(
            !told.contains("search-key") && told.lines().count() == 1,
            "{told}"
        );
    }
    let output = searched(&searcher(&server, "/none"), "walks").await;
    assert!(
        !output.is_error && output.text.ends_with("\nnothing"),
        "{}",
        output.text
    );
}

#[tokio::test]
async fn a_server_inside_is_not_asked_unless_a_person_said_so() {
    let server = MockServer::start().await;
    let none = ResponseTemplate::new(200).set_body_json(json!({ "results": [] }));
    serve(&server, "/", none).await;
    let port = server.address().port();
    let egress = || Egress {
        hosts: vec![HostPattern::parse(&format!("search.test:{port}")).unwrap()],
        package_hosts: Vec::new(),
        upstream: Upstream::default(),
        outside: Arc::new(Here),
    };
    for (host, part) in [("search.test", "127.0.0.1"), ("127.0.0.1", "does not list")] {
        let url = Url::parse(&format!("http://{host}:{port}/")).unwrap();
        let server = Searxng::new(url, None, SearxngAccess::Outside(egress()));
        let output = searched(&WebSearch::new(Arc::new(server)), "walks").await;
        assert!(
            output.is_error && output.text.contains(part),
            "{}",
            output.text
        );
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 0);
    let output = searched(&searcher(&server, "/"), "walks").await;
    assert!(!output.is_error, "{}", output.text);
}

#[tokio::test]
async fn models_are_offered_a_search_where_somebody_is_configured_for_it() {
    let server = MockServer::start().await;
    let bench = Bench::new(&[], &[]);
    let none = tools_of(AgentMode::Implement, &bench.workbench).unwrap();
    assert!(!none.contains("web_search"));
    let root = bench.directory.path().join("slot");
    let url = Url::parse(&server.uri()).unwrap();
    let options = WorkbenchOptions {
        search: Some(Arc::new(Searxng::new(url, None, SearxngAccess::Anywhere))),
        ..WorkbenchOptions::looking(root, bench.directory.path().join("spill"))
    };
    let some = tools_of(AgentMode::Implement, &Workbench::open(options).unwrap()).unwrap();
    assert!(some.contains("web_search"));
    // No page can be read here, so that nothing speaks of it.
    assert!(!some.contains("web_fetch"));
    for tool in some.specs() {
        let (name, told) = (&tool.name, &tool.description);
        assert!(!told.contains("web_fetch"), "{name}: {told}");
    }
}
