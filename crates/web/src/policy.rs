//! What a server allows: plain values, decided by the door that starts it.

use std::time::Duration;

use crate::token::Token;

/// Who may call, and how much a call may ask for.
#[derive(Debug, Clone)]
pub struct Policy {
    pub token: Token,
    /// Names by which the server may be called besides those of loopback, as `name` or `name:port`.
    /// Empty means loopback only, and the server then refuses to listen anywhere else.
    pub hosts: Vec<String>,
    /// The longest body of a request, in bytes.
    pub body: usize,
    /// How long a request may take until its answer begins.
    pub deadline: Duration,
    /// The content security policy of every answer.
    pub content: &'static str,
}

impl Policy {
    /// Loopback, a megabyte, half a minute, nothing from outside.
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

/// Everything from the server itself, nothing inline, nothing evaluated, in nobody's frame.
const STRICT: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
