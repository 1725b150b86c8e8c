//! Finds in addresses what they log in with, and leaves it out of what is shown.

/// What an address that is shown or kept holds in the place of what it logs in with.
pub(crate) const LEFT_OUT: &str = "***";
/// A name that is as long stands for a login by itself: it is a token.
pub(crate) const SHORTEST_TOKEN: usize = 20;

/// Returns what the addresses in `text` log in with: passwords, tokens in the place of a user, and what a parameter holds
/// that is called so.
pub(crate) fn credentials(text: &str) -> impl Iterator<Item = &str> {
    let urls = text.split([',', ' ', '\n']);
    urls.flat_map(|url| credential(url).into_iter().chain(secret_parameters(url)))
}

fn credential(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    let (user_part, _) = host.rsplit_once('@')?;
    match user_part.split_once(':') {
        Some((_, password)) => Some(password),
        None => (user_part.len() >= SHORTEST_TOKEN).then_some(user_part),
    }
}

/// Returns the values of the parameters of `url` that are secrets by their names.
fn secret_parameters(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once("://").and_then(|(_, rest)| {
        let (_, query) = rest.split_once('?')?;
        query.split('#').next()
    });
    let parameters = query.into_iter().flat_map(|query| query.split('&'));
    let named = parameters.filter_map(|parameter| parameter.split_once('='));
    // A file with secrets is named in the open.
    let is_file = |value: &str| {
        ["/", "%2F", "%2f"]
            .iter()
            .any(|root| value.starts_with(root))
    };
    named
        .filter(move |(name, value)| is_secret(name) && !value.is_empty() && !is_file(value))
        .map(|(_, value)| value)
}

/// Returns `url` with what it logs in with, if anything, replaced by [`LEFT_OUT`].
pub(crate) fn without_password(url: &str) -> String {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find('/').unwrap_or(rest.len());
        let (user_part, host) = rest.get(..end)?.rsplit_once('@')?;
        let kept = if let Some((user, _)) = user_part.split_once(':') {
            format!("{user}:")
        } else {
            credential(url)?;
            String::new()
        };
        let rest = rest.get(end..)?;
        Some(format!("{scheme}://{kept}{LEFT_OUT}@{host}{rest}"))
    });
    let shown = parts.unwrap_or_else(|| url.to_owned());
    secret_parameters(url).fold(shown, |shown, value| {
        shown.replace(&format!("={value}"), &format!("={LEFT_OUT}"))
    })
}

/// Says that whoever set a variable or a parameter of this name meant it to stay unread.
pub(crate) fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 6] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSW",
        "PASSPHRASE",
        "CREDENTIAL",
    ];
    const LAST: [&str; 2] = ["PASS", "_PWD"];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word)) || LAST.iter().any(|word| name.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        for (url, shown, secrets) in [
            (
                "postgres://ada:s3:cr@t@db:5432/rope",
                "postgres://ada:***@db:5432/rope",
                vec!["s3:cr@t"],
            ),
            ("nats://h:1", "nats://h:1", vec![]),
            (
                "postgres://db/rope?user=ada&password=s3cr%26t&sslmode=require#x",
                "postgres://db/rope?user=ada&password=***&sslmode=require#x",
                vec!["s3cr%26t"],
            ),
            (
                "https://ada:one@h/v1?api_key=two&page=1",
                "https://ada:***@h/v1?api_key=***&page=1",
                vec!["one", "two"],
            ),
            (
                "https://a-token-of-twenty-letters@h/",
                "https://***@h/",
                vec!["a-token-of-twenty-letters"],
            ),
            ("https://ada@h/?key=", "https://ada@h/?key=", vec![]),
            (
                "postgres://h/d?sslkey=/etc/key.pem&sslkey=%2Fetc%2Fkey",
                "postgres://h/d?sslkey=/etc/key.pem&sslkey=%2Fetc%2Fkey",
                vec![],
            ),
        ] {
            assert_eq!(without_password(url), shown);
            assert_eq!(credentials(url).collect::<Vec<_>>(), secrets, "{url}");
        }
    }
}
