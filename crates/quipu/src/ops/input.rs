//! The input text of a write: `--text`, `--file` or stdin.

use std::path::PathBuf;

use clap::Args;

use crate::answer::Failure;
use crate::session::Session;

#[derive(Debug, Args)]
pub struct Input {
    /// The text
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    pub text: Option<String>,
    /// Read the text from a file or a PDF; `-` reads stdin, which is also the default
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl Input {
    /// Returns the text with a final newline, which `--text` usually lacks.
    pub fn lines(self, session: &Session) -> Result<Vec<u8>, Failure> {
        let typed = self.text.is_some();
        let mut bytes = self.bytes(session)?;
        if typed && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        Ok(bytes)
    }

    pub fn bytes(self, session: &Session) -> Result<Vec<u8>, Failure> {
        match (self.text, self.file) {
            (Some(text), _) => Ok(text.into_bytes()),
            (None, Some(file)) if file.as_os_str() != "-" => session.load_file(&file),
            _ => session.load_stdin(),
        }
    }
}
