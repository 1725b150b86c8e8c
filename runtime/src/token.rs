//! Makes texts that nobody guesses, by which somebody is known.

use std::fmt::Write as _;

use rand::Rng;
use rand::rngs::StdRng;

/// How many random bytes are in one: more than anybody can try.
const BYTES: usize = 32;

/// Returns a text that nobody has had before, of 64 hexadecimal digits.
pub fn fresh() -> String {
    let mut random: StdRng = rand::make_rng();
    let mut bytes = [0_u8; BYTES];
    random.fill_bytes(&mut bytes);
    let mut text = String::with_capacity(2 * BYTES);
    for byte in bytes {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_made_twice() {
        let (one, other) = (fresh(), fresh());
        assert_ne!(one, other);
        assert_eq!((one.len(), other.len()), (64, 64));
    }
}
