//! Extracts the text of a PDF with `pdftotext`, if it is installed, because memory files are text.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::answer::{Failure, exit};

const INSTALL: &str = "install pdftotext (poppler-utils), or pass plain text";

/// Converts a PDF that is written to a text file into its text. Leaves all other input unchanged.
pub fn as_text(target: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if !bytes.starts_with(b"%PDF-") || target.to_lowercase().ends_with(".pdf") {
        return Ok(bytes);
    }
    let fail = |what: String| Failure::new(exit::IO, what, INSTALL);
    let mut child = Command::new("pdftotext")
        .args(["-enc", "UTF-8", "-nopgbrk", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| {
            fail(format!(
                "the text for `{target}` is a PDF, and pdftotext could not be started: {e}"
            ))
        })?;
    let stdin = child.stdin.take();
    // Writing and reading run concurrently, so that neither side can block the other.
    let output = std::thread::scope(|scope| {
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(&bytes)));
        child.wait_with_output()
    });
    let output = output.map_err(|e| fail(format!("pdftotext failed: {e}")))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && !text.is_empty() {
        true => Ok(format!("{text}\n").into_bytes()),
        false => Err(fail(format!(
            "pdftotext found no text in the PDF for `{target}`"
        ))),
    }
}
