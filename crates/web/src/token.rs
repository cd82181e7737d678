//! The bearer token that callers must send.
//!
//! A server generates one unless the user supplies it. Comparison takes constant time, and `Debug`
//! output hides the secret.

use std::fmt;

/// Random bytes in a generated token.
const CHANCE: usize = 24;

/// The minimum length of a supplied token. Shorter ones can be guessed by trying.
const SHORTEST: usize = 16;

/// The secret that authorises a caller.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Generates an unguessable token.
    pub fn random() -> Result<Token, getrandom::Error> {
        let mut bytes = [0; CHANCE];
        getrandom::fill(&mut bytes)?;
        Ok(Token(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// Parses a token that the user chose: long enough, and safe in a URL and in a header.
    pub fn parse(text: &str) -> Result<Token, String> {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~'));
        match (text.len() >= SHORTEST, plain) {
            (true, true) => Ok(Token(text.to_owned())),
            (false, _) => Err(format!("a token needs at least {SHORTEST} characters")),
            (true, false) => Err("a token consists of letters, digits and - _ . ~".to_owned()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time, so that the duration does not reveal how much of the guess was
    /// right.
    pub fn is(&self, guess: &str) -> bool {
        let (own, guess) = (self.0.as_bytes(), guess.as_bytes());
        let mut differences = u8::from(own.len() != guess.len());
        for (at, byte) in own.iter().enumerate() {
            differences |= byte ^ guess.get(at).copied().unwrap_or(0);
        }
        std::hint::black_box(differences) == 0
    }
}

/// Hides the secret, so that it is not printed by accident.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::parse("0123456789abcdef").unwrap();
        assert!(token.is("0123456789abcdef"));
        for guess in [
            "",
            "0123456789abcde",
            "0123456789abcdeg",
            "0123456789abcdef0",
            "1123456789abcdef",
        ] {
            assert!(!token.is(guess), "{guess}");
        }
    }

    #[test]
    fn a_token_is_long_plain_and_never_printed() {
        assert!(Token::parse("short").is_err());
        assert!(Token::parse("with a space and more").is_err());
        let token = Token::random().unwrap();
        assert_eq!(token.as_str().len(), CHANCE * 2);
        assert_ne!(token.as_str(), Token::random().unwrap().as_str());
        assert!(!format!("{token:?}").contains(token.as_str()));
    }
}
