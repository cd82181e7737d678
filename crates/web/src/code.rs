//! One-time login codes. A code is exchanged for the token once, within two minutes.
//!
//! The code may leak later, through the file that the browser opens or through the browser's
//! history. It is worthless once it has been redeemed. The token itself never travels that way.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::token::Token;

/// Enough time for a browser to start and load the page.
const LIFETIME: Duration = Duration::from_secs(120);

/// A code that can be redeemed once.
#[derive(Debug)]
pub struct OneTimeCode {
    left: Mutex<Option<(Token, Instant)>>,
}

impl OneTimeCode {
    /// Creates a code and returns it together with its text.
    pub fn random() -> Result<(OneTimeCode, Token), getrandom::Error> {
        let code = Token::random()?;
        Ok((
            OneTimeCode {
                left: Mutex::new(Some((code.clone(), Instant::now() + LIFETIME))),
            },
            code,
        ))
    }

    /// Redeems the code. Returns false for a wrong guess, which leaves the code valid, and for a
    /// code that was already redeemed or has expired.
    pub fn redeem(&self, guess: &str) -> bool {
        self.redeem_at(guess, Instant::now())
    }

    fn redeem_at(&self, guess: &str, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.take_if(|(_, until)| now > *until);
        left.take_if(|(code, _)| code.is(guess)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once() {
        let (code, text) = OneTimeCode::random().unwrap();
        assert!(!code.redeem("wrong"));
        assert!(code.redeem(text.as_str()));
        assert!(!code.redeem(text.as_str()));
    }

    #[test]
    fn an_old_code_is_refused() {
        let (code, text) = OneTimeCode::random().unwrap();
        assert!(!code.redeem_at(
            text.as_str(),
            Instant::now() + LIFETIME + Duration::from_secs(1)
        ));
        assert!(!code.redeem(text.as_str()));
    }
}
