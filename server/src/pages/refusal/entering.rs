//! What somebody sees who comes or goes: a token logs in at any browser, and leads on to the page that was asked for.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};

use super::{LOG_IN_BY_TOKEN, Note};
use crate::guard::intake::{self, Bounds};
use crate::guard::{cookie, peer, refused, with_token};
use crate::pages::form::{Fields, is_form, no_form};
use crate::pages::frame::{go, page};
use crate::problem::Problem;
use crate::shared::ServerState;

/// Where links and tokens log in.
const DOOR: &str = "/login";
/// The field that says where to go on.
const BACK: &str = "back";

/// Where somebody goes who logs in; travels with a refusal, so that the next try leads there too.
#[derive(Debug, Clone)]
pub(super) struct Target(pub(super) String);

/// Returns the page that was asked for, of whoever has to log in first.
pub(super) fn target(uri: &Uri) -> String {
    if uri.path() == DOOR {
        let fields = Fields::read(uri.query().unwrap_or_default().as_bytes());
        return own(fields.text(BACK)).to_owned();
    }
    let asked = uri.path_and_query().map_or("/", |asked| asked.as_str());
    own(asked).to_owned()
}

/// Returns a path of this server, or the board where it leads elsewhere: browsers read `//` and `/\\` as another machine,
/// and leave out letters that cannot be seen.
fn own(path: &str) -> &str {
    let is_seen = path.bytes().all(|byte| byte.is_ascii_graphic());
    let is_here = path.starts_with('/') && !path[1..].starts_with(['/', '\\']);
    if is_seen && is_here { path } else { "/" }
}

/// Logs in whoever has a token.
pub(crate) async fn enter(State(shared): State<ServerState>, request: Request) -> Response {
    let peer = peer(&request);
    let (parts, body) = request.into_parts();
    if !is_form(&parts.headers) {
        return no_form().into_response();
    }
    let fields = match intake::read(&parts.headers, body, Bounds::STRANGER).await {
        Ok(bytes) => Fields::read(&bytes),
        Err(problem) => return problem.into_response(),
    };
    let back = own(fields.text(BACK));
    let person = match with_token(&shared, &peer, fields.text("token")) {
        Ok(person) => person,
        Err((problem, rests)) => {
            let mut response = refused(problem, rests);
            response.extensions_mut().insert(Target(back.to_owned()));
            return response;
        }
    };
    let now = shared.services.clock.now();
    let (_, secret) = shared.logins().open(person.name, now);
    shared.keep_logins().await;
    (shared.cookie_of(&secret), go(back)).into_response()
}

/// Greets who was logged in by a link. The browser goes on from this page itself, since it sends no cookie along where a
/// page of somebody else led here.
pub(crate) fn entered(name: &str, back: Option<&str>) -> Result<Response, Problem> {
    let to = own(back.unwrap_or("/"));
    let called = if to == "/" {
        "To the board"
    } else {
        "To the page"
    };
    page(&Note {
        title: "Welcome",
        words: &format!("You are logged in as {name}, for a week."),
        next: None,
        written: None,
        onward: None,
        link: Some((to, called)),
        goes_on: true,
        entry: None,
    })
}

/// Logs out, and says goodbye.
pub(in crate::pages) async fn leave(
    State(shared): State<ServerState>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(cookie) = cookie(&headers, &shared.cookie) {
        shared.leave(cookie).await;
    }
    let by_token = shared.people.are_named();
    page(&Note {
        title: "You are logged out",
        words: "Nobody is logged in by this browser any more.",
        next: Some(if by_token {
            LOG_IN_BY_TOKEN
        } else {
            "open the link that `ropewalk up` shows at its next start to come back"
        }),
        written: None,
        onward: None,
        link: None,
        goes_on: false,
        entry: by_token.then_some("/"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_machine() {
        for (path, expected) in [
            ("/ideas/walks?tab=1", "/ideas/walks?tab=1"),
            ("/", "/"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/\t/evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("ideas", "/"),
        ] {
            assert_eq!(own(path), expected, "{path}");
        }
        let asked = |uri: &str| target(&uri.parse().unwrap());
        assert_eq!(asked("/builds?page=2"), "/builds?page=2");
        assert_eq!(asked("/login?code=x&back=%2Fbuilds"), "/builds");
        assert_eq!(asked("/login?back=%2F%2Fevil.example"), "/");
    }
}
