//! Writes the sample book into a folder and prints its units, for `quipu.toml`:
//!
//! `cargo run -p quipu-testkit --example sample_book -- DIR [zh] > units; quipu init DIR --profile
//! book; cat units >> DIR/quipu.toml`

use quipu_testkit::{SampleBook, Tongue};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let root = std::path::PathBuf::from(arguments.next().unwrap_or_else(|| ".".into()));
    let tongue = if arguments.next().as_deref() == Some("zh") {
        Tongue::Chinese
    } else {
        Tongue::English
    };
    let book = SampleBook { tongue };
    for (path, text) in book.files() {
        let target = root.join(path);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(target, text)?;
    }
    print!("{}", book.units());
    Ok(())
}
