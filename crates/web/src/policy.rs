//! The limits of a server, as plain values.
//!
//! The code that starts the server chooses them; `guard` and `serve` enforce them.

use std::time::Duration;

use crate::token::Token;

/// Access rules and request limits.
#[derive(Debug, Clone)]
pub struct Policy {
    pub token: Token,
    /// Host names that the server accepts besides loopback, as `name` or `name:port`. If empty, the
    /// server refuses to listen on any address other than loopback.
    pub hosts: Vec<String>,
    /// The maximum size of a request body, in bytes.
    pub body: usize,
    /// The maximum time until a response begins.
    pub deadline: Duration,
    /// The content security policy of every response.
    pub content: &'static str,
}

impl Policy {
    /// Defaults: loopback only, 1 MiB bodies, 30 seconds, and no content from other sites.
    pub fn new(token: Token) -> Policy {
        Policy {
            token,
            hosts: Vec::new(),
            body: 1 << 20,
            deadline: Duration::from_secs(30),
            content: STRICT,
        }
    }
}

/// Allows only content from this server (and images that its scripts made). Forbids inline scripts, eval and
/// framing.
const STRICT: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
