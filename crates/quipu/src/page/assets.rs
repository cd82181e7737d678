//! The static files of the page, embedded in the program, and compressed when a browser first asks.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};
use quipu_web::axum::Router;
use quipu_web::axum::http::HeaderMap;
use quipu_web::axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use quipu_web::axum::response::IntoResponse;
use quipu_web::axum::routing::get;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../page/www");

/// Registers one route per file, so that no path of a request is ever looked up.
pub fn router() -> Router {
    let mut router = Router::new();
    let mut folders = vec![&FILES];
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        for file in folder.files() {
            let name = file.path().to_string_lossy().replace('\\', "/");
            let body = file.contents();
            let kind = content_type(&name);
            let address = if name == "index.html" {
                "/".to_owned()
            } else {
                format!("/{name}")
            };
            let packed = Arc::new(OnceLock::new());
            let answer = move |headers: HeaderMap| async move {
                let about = [(CONTENT_TYPE, kind), (VARY, "accept-encoding")];
                if !takes_gzip(&headers) {
                    return (about, body).into_response();
                }
                let packed: &Vec<u8> = packed.get_or_init(|| pack(body));
                (about, [(CONTENT_ENCODING, "gzip")], packed.clone()).into_response()
            };
            router = router.route(&address, get(answer));
        }
    }
    router
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok());
    let mut names = accepted.unwrap_or_default().split(',').map(str::trim);
    names.any(|name| name == "gzip")
}

fn pack(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(body)
        .and_then(|()| encoder.finish())
        .expect("writing to memory does not fail")
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size limit of the whole page, because every binary carries it.
    const MOST_BYTES: usize = 700 << 10;

    fn all(folder: &'static Dir<'_>) -> Vec<(String, &'static [u8])> {
        let own = folder
            .files()
            .map(|file| (file.path().display().to_string(), file.contents()));
        own.chain(folder.dirs().flat_map(all)).collect()
    }

    #[test]
    fn the_page_is_small_and_asks_nothing_of_others() {
        let files = all(&FILES);
        assert!(files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < MOST_BYTES);
        for (name, bytes) in files.iter().filter(|(name, _)| !name.contains("vendor")) {
            let text = String::from_utf8_lossy(bytes);
            for never in ["innerHTML", "eval(", "document.write", "//cdn", "https://"] {
                assert!(!text.contains(never), "{name}: {never}");
            }
        }
    }

    #[test]
    fn nothing_is_inline_in_the_page() {
        let html = FILES
            .get_file("index.html")
            .unwrap()
            .contents_utf8()
            .unwrap();
        assert!(!html.contains("style=") && !html.contains("onclick") && !html.contains("<style"));
        assert!(
            html.split("<script")
                .skip(1)
                .all(|script| script.contains("src=\""))
        );
    }
}
