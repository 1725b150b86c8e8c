use serde_json::json;

use super::*;
use crate::message::ToolUse;
use crate::request::{Effort, ToolSpec};

#[test]
fn ids_times_and_places_leave_no_trace() {
    let rows = [
        (
            "task 0191f3c2-7b1e-7c33-8a44-9e1f00aa11bb of attempt/0191f3c2-7b1e-7c33-8a44-9e1f00aa11bb/T-001",
            "task <id> of attempt/<id>/T-001",
        ),
        ("at 2026-03-01T08:00:00.123Z.", "at <time>."),
        ("2026-03-01 08:00 T-001: done", "<time> <time> T-001: done"),
        ("[08:00:01] ok", "[<time>] ok"),
        (
            "finished in 0.03s, 12 ms, 3 seconds",
            "finished in <time>, <time>, <time>",
        ),
        (
            "commit 6d0ab2cbf5dd44c5b8d9c1c9d4f5a8e3b2a1c0d9",
            "commit <id>",
        ),
        (
            "/tmp/a1/state/slots/2/src/lib.rs:12:5: error",
            "/lib.rs:12:5: error",
        ),
        ("see https://a.example/b/c", "see https://a.example/b/c"),
        ("2 passed; 12 failed", "2 passed; 12 failed"),
        ("src/a.rs:10:3 is 5", "src/a.rs:10:3 is 5"),
        ("é 10:30 ü", "é 10:30 ü"),
        ("version 1.2.3", "version 1.2.3"),
        (
            "0191f3c2-7b1e-7c33-8a44-9e1f00aa11bg 2026-03-0x 2026-03-01x",
            "0191f3c2-7b1e-7c33-8a44-9e1f00aa11bg 2026-03-0x 2026-03-01x",
        ),
        (
            "08:00:01Z 08:00:1 8:00:01 08:00:01:02",
            "<time> 08:00:1 8:00:01 08:00:01:02",
        ),
        ("1m02s 1.5h .s s1 5 5x", "<time> <time> <time> s1 5 5x"),
        ("a/2026-03-01/b-/T-001", "a/<time>/b-/T-001"),
    ];
    for (text, expected) in rows {
        assert_eq!(plain(text), expected, "{text}");
    }
}

fn asking(last: &str) -> ModelRequest {
    let call = |id: &str| Block::ToolUse(ToolUse::parse(id, "bash", r#"{"command":"make"}"#));
    let result = |id: &str, content: &str| Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
        is_error: false,
        images: Vec::new(),
    };
    let messages = vec![
        Message::user("go"),
        Message::assistant(vec![call("t1"), call("t2")]),
        Message::results(vec![result("t1", "built"), result("t2", last)]),
    ];
    ModelRequest::new("m", "be brief", messages)
}

/// A change of a request, and what is said of it.
type Change<'a> = (&'a dyn Fn(&mut ModelRequest), Option<&'a str>);

#[test]
fn what_differs_is_named() {
    let known = print(&asking("1 passed in 0.1s"));
    assert_eq!(difference(&known, &asking("1 passed in 0.2s")), None);
    let failed = difference(&known, &asking("1 failed")).unwrap();
    assert_eq!(failed.to_string(), "the result of `bash` differs: 1 failed");
    assert_eq!(failed.named(), "the result of `bash` differs");
    assert!(failed.is_of_what_was_told());
    let changed = |change: &dyn Fn(&mut ModelRequest)| {
        let mut request = asking("1 passed in 0.1s");
        change(&mut request);
        difference(&known, &request).map(|what| what.to_string())
    };
    let tool = ToolSpec {
        name: "read".to_owned(),
        description: "reads".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    let rows: [Change<'_>; 7] = [
        (
            &|request| request.system.push('!'),
            Some("the system prompt differs"),
        ),
        (
            &|request| request.tools.push(tool.clone()),
            Some("the tools on offer differ"),
        ),
        (
            &|request| request.effort = Some(Effort::High),
            Some("the settings differ"),
        ),
        (
            &|request| request.messages[0] = Message::user("stay"),
            Some("what was said before differs"),
        ),
        (
            &|request| drop(request.messages[2].blocks.pop()),
            Some("1 pieces were told since the last reply, and there were 2"),
        ),
        (
            &|request| request.messages.push(Message::user("and hurry")),
            Some("what was told differs: and hurry"),
        ),
        (&|request| request.model = "another".to_owned(), None),
    ];
    for (change, expected) in rows {
        assert_eq!(changed(change).as_deref(), expected);
    }
}

#[test]
fn a_secret_and_the_id_of_a_call_are_no_part_of_it() {
    let canary = "sk-canary-of-prints-1";
    secrets::keep([canary]);
    assert_eq!(print(&asking(canary)), print(&asking(secrets::STRUCK)));
    let mut other = asking("x");
    for block in other.messages.iter_mut().flat_map(|one| &mut one.blocks) {
        match block {
            Block::ToolUse(call) => call.id.push_str("-again"),
            Block::ToolResult { tool_use_id, .. } => tool_use_id.push_str("-again"),
            _ => {}
        }
    }
    assert_eq!(print(&other), print(&asking("x")));
}
