//! Puts what went wrong with a broker into words, without what must not be shown.

/// Joins an error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// Takes the login out of an address before it is shown.
pub(super) fn without_password(url: &str) -> String {
    url.split(',')
        .map(|address| match (address.find("://"), address.rfind('@')) {
            (Some(scheme), Some(at)) if scheme + 3 <= at => {
                format!("{}{}", &address[..scheme + 3], &address[at + 1..])
            }
            (None, Some(at)) => address[at + 1..].to_owned(),
            _ => address.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let cases = [
            ("nats://a:b@h:1", "nats://h:1"),
            ("nats://h:1", "nats://h:1"),
            ("a:b@h:1,nats://c@i:2", "h:1,nats://i:2"),
        ];
        for (url, shown) in cases {
            assert_eq!(without_password(url), shown);
        }
    }
}
