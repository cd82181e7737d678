//! Passes the token to a browser that `serve --open` starts.
//!
//! Every program of the machine can read command lines, so the browser gets the path of a private
//! file (mode 0600) instead of an address. The file redirects to the page with a one-time code,
//! which the page exchanges for the token. The code works once and for a short time. The file is
//! deleted when the code is used and when the server ends.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_web::axum::extract::State;
use quipu_web::axum::http::StatusCode;
use quipu_web::axum::response::{IntoResponse, Response};
use quipu_web::axum::routing::post;
use quipu_web::axum::{Json, Router};
use quipu_web::{OneTimeCode, Token};
use serde::Deserialize;
use serde_json::json;
use tempfile::NamedTempFile;

/// The code of one server, and the file that carries it.
pub struct Entry {
    code: OneTimeCode,
    text: Token,
    token: Token,
    file: Mutex<Option<NamedTempFile>>,
}

#[derive(Debug, Deserialize)]
struct Offered {
    code: String,
}

impl Entry {
    pub fn new(token: Token) -> std::io::Result<Arc<Entry>> {
        let (code, text) = OneTimeCode::random().map_err(std::io::Error::other)?;
        Ok(Arc::new(Entry {
            code,
            text,
            token,
            file: Mutex::new(None),
        }))
    }

    /// Writes the file that redirects to the page, and returns its path.
    pub fn write_file(&self, folder: &Path, address: SocketAddr) -> std::io::Result<PathBuf> {
        let mut file = tempfile::Builder::new()
            .prefix("open-")
            .suffix(".html")
            .tempfile_in(folder)?;
        let url = format!("http://{address}/#code={}", self.text.as_str());
        write!(
            file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>Quipu</title>\n<a href=\"{url}\">Quipu</a>\n"
        )?;
        file.flush()?;
        let path = file.path().to_owned();
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(path)
    }

    /// Returns the route that exchanges the code. It needs no token, because the code is the proof.
    pub fn router(self: &Arc<Entry>) -> Router {
        Router::new()
            .route("/api/code", post(exchange))
            .with_state(Arc::clone(self))
    }

    fn redeem(&self, code: &str) -> Option<&Token> {
        let redeemed = self.code.redeem(code);
        if redeemed {
            self.file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
        }
        redeemed.then_some(&self.token)
    }
}

async fn exchange(State(entry): State<Arc<Entry>>, Json(offered): Json<Offered>) -> Response {
    match entry.redeem(&offered.code) {
        Some(token) => Json(json!({"token": token.as_str()})).into_response(),
        None => {
            let told = json!({
                "error": "this code was already used, or has expired",
                "rule": null,
                "do": "open the address that quipu serve printed",
                "exit": null,
            });
            (StatusCode::UNAUTHORIZED, Json(told)).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn the_file_is_private_holds_no_token_and_goes_with_the_code() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let entry = Entry::new(Token::random().unwrap()).unwrap();
        let path = entry
            .write_file(folder.path(), "127.0.0.1:80".parse().unwrap())
            .unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("http://127.0.0.1:80/#code=") && !text.contains(entry.token.as_str())
        );
        assert!(entry.redeem("wrong").is_none() && path.exists());
        assert_eq!(
            entry.redeem(entry.text.as_str()).map(Token::as_str),
            Some(entry.token.as_str())
        );
        assert!(entry.redeem(entry.text.as_str()).is_none() && !path.exists());
    }
}
