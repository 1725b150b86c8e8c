use std::io::Read;
use std::net::TcpListener;
use std::thread;

use super::*;

fn options(endpoint: String) -> TraceOptions {
    TraceOptions {
        endpoint,
        headers: HashMap::from([("x-key".to_owned(), "header-canary-1".to_owned())]),
        sample_percent: 100,
        resource: [("service.name".to_owned(), "ropewalk".to_owned())].into(),
    }
}

fn span(name: &str) -> Span {
    let now = crate::Clock::system().now();
    Span {
        trace: "018f0000111172228333444455556666".to_owned(),
        id: "8aaabbbbccccdddd".to_owned(),
        parent: None,
        state: Some("vendor=said,other=span-canary-123".to_owned()),
        kind: Kind::Internal,
        name: name.to_owned(),
        began: now,
        ended: now,
        attributes: vec![("said", AttributeValue::from("span-canary-123 and more"))],
        failure: None,
    }
}

/// Takes one request and never answers it.
fn silent() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, taken) = mpsc::channel(1);
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 64 * 1024];
        let mut length = 0;
        // It stands behind the spans.
        while !String::from_utf8_lossy(&request[..length]).contains(SCHEMA) {
            length += stream.read(&mut request[length..]).unwrap();
        }
        sender.blocking_send(request[..length].to_vec()).unwrap();
        // Until the other side gives up.
        stream.read_to_end(&mut request).ok();
    });
    (address, taken)
}

#[tokio::test]
async fn a_span_goes_out_with_its_headers_and_without_secrets() {
    secrets::keep(["span-canary-123"]);
    let (address, mut heard) = silent();
    let export = Export::start(options(address)).unwrap();
    export.record(span("spoken span-canary-123"));
    let request = heard.recv().await.unwrap();
    let request = String::from_utf8_lossy(&request);
    assert!(
        request.starts_with("POST /v1/traces HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("x-key: header-canary-1"), "{request}");
    assert!(request.contains("spoken [secret]"), "{request}");
    assert!(!request.contains("span-canary-123"), "{request}");
    assert!(request.contains("vendor=said,other=[secret]"), "{request}");
}

#[tokio::test]
async fn a_receiver_that_never_answers_costs_spans_and_no_time() {
    let (address, mut heard) = silent();
    let export = Export::start(options(address)).unwrap();
    export.record(span("spoken"));
    heard.recv().await.unwrap();
    let began = Instant::now();
    for _ in 0..QUEUE + 100 {
        export.record(span("more"));
    }
    assert!(began.elapsed() < Duration::from_secs(4));
    assert_eq!(export.lost.0.load(Ordering::Relaxed), 100);
    let began = Instant::now();
    export.flush(Duration::from_millis(200)).await;
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_counted() {
    // Nobody listens there: a port that was free a moment ago may be another test's by now.
    let address = "http://127.0.0.1:9".to_owned();
    let export = Export::start(options(address)).unwrap();
    export.record(span("lost"));
    export.flush(Duration::from_secs(20)).await;
    assert_eq!(export.lost.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_task_knows_what_it_works_for_in_that_trace_alone() {
    assert_eq!(current("a"), None);
    let inner = within(Some(("a".to_owned(), "1".to_owned())), async {
        (current("a"), current("b"))
    });
    assert_eq!(inner.await, (Some("1".to_owned()), None));
    let kept = within(None, async { current("a") });
    let outer = within(Some(("a".to_owned(), "1".to_owned())), kept);
    assert_eq!(outer.await, Some("1".to_owned()));
}

#[test]
fn what_is_no_tracestate_is_left_out() {
    for (said, kept) in [
        ("a=1,b=2", "a=1,b=2"),
        (" a=1 ,, b=2", "a=1,b=2"),
        ("no list", ""),
        ("UPPER=1", ""),
    ] {
        let span = Span {
            state: Some(said.to_owned()),
            ..span("said")
        };
        let sent = data(span).unwrap();
        assert_eq!(sent.span_context.trace_state().header(), kept, "{said}");
    }
}

#[test]
fn a_part_of_the_traces_is_sent_and_the_same_in_every_process() {
    let ids = crate::Ids::system(crate::Clock::system());
    let traces: Vec<String> = (0..10_000)
        .map(|_| ids.next().as_simple().to_string())
        .collect();
    let kept = |percent| {
        traces
            .iter()
            .filter(|trace| is_sampled(trace, percent))
            .count()
    };
    assert_eq!((kept(0), kept(100)), (0, 10_000));
    assert!((1_500..2_500).contains(&kept(20)), "{}", kept(20));
}
