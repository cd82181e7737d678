//! Presses the built-in profiles: parses their TOML once, when the program is built. `quipu_contract`'s `pressed.rs` reads the row and
//! says how it looks.

#![allow(clippy::unwrap_used, reason = "a build script may stop the build")]

use std::fmt::Write;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

fn main() {
    let profiles = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../profiles");
    println!("cargo:rerun-if-changed={}", profiles.display());
    let out = std::env::var("OUT_DIR").unwrap();
    let mut index = String::from("&[\n");
    for (name, path) in contract_files(&profiles) {
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = DeTable::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut row = Vec::new();
        let span = parsed.span();
        press_table(parsed.get_ref(), span, &mut row);
        let file = Path::new(&out).join(name.replace('/', "-"));
        std::fs::write(&file, row).unwrap();
        writeln!(index, "    ({name:?}, include_bytes!({:?})),", file.display()).unwrap();
    }
    index.push(']');
    std::fs::write(Path::new(&out).join("pressed.rs"), index).unwrap();
}

/// The TOML files of the profiles, by `PROFILE/FILE`, in order.
fn contract_files(profiles: &Path) -> Vec<(String, std::path::PathBuf)> {
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut found = Vec::new();
    for folder in entries(profiles).into_iter().filter(|path| path.is_dir()) {
        let profile = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for path in entries(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
            found.push((format!("{profile}/{}", path.file_name().unwrap().to_str().unwrap()), path));
        }
    }
    found.sort();
    found
}

fn press(value: &Spanned<DeValue<'_>>, row: &mut Vec<u8>) {
    let span = value.span();
    let head = |tag: u8, row: &mut Vec<u8>| head(tag, &span, row);
    match value.get_ref() {
        DeValue::String(text) => {
            head(b's', row);
            press_text(text, row);
        }
        DeValue::Integer(number) => {
            head(b'i', row);
            row.extend(i64::from_str_radix(number.as_str(), number.radix()).unwrap().to_le_bytes());
        }
        DeValue::Float(number) => {
            head(b'f', row);
            row.extend(number.as_str().parse::<f64>().unwrap().to_le_bytes());
        }
        DeValue::Boolean(value) => {
            head(b'b', row);
            row.push(u8::from(*value));
        }
        DeValue::Array(values) => {
            head(b'a', row);
            press_number(values.len(), row);
            values.iter().for_each(|value| press(value, row));
        }
        DeValue::Table(table) => press_table(table, span, row),
        DeValue::Datetime(_) => panic!("no contract file holds a date"),
    }
}

fn press_table(table: &DeTable<'_>, span: std::ops::Range<usize>, row: &mut Vec<u8>) {
    head(b't', &span, row);
    press_number(table.len(), row);
    for (key, value) in table.iter() {
        press_text(key.get_ref(), row);
        press(value, row);
    }
}

fn head(tag: u8, span: &std::ops::Range<usize>, row: &mut Vec<u8>) {
    row.push(tag);
    press_number(span.start, row);
    press_number(span.end, row);
}

fn press_text(text: &str, row: &mut Vec<u8>) {
    press_number(text.len(), row);
    row.extend(text.as_bytes());
}

fn press_number(number: usize, row: &mut Vec<u8>) {
    row.extend(u32::try_from(number).unwrap().to_le_bytes());
}
