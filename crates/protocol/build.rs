//! Precompiles the built-in profiles: parses their TOML once, when the program is built.
//! `quipu_contract` decodes the result.

#![allow(clippy::unwrap_used, reason = "a build script may stop the build")]

use std::fmt::Write;
use std::path::Path;

#[path = "../contract/src/precompile.rs"]
mod precompile;

fn main() {
    let profiles = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../profiles");
    println!("cargo:rerun-if-changed={}", profiles.display());
    println!("cargo:rerun-if-changed=../contract/src/precompile.rs");
    let out = std::env::var("OUT_DIR").unwrap();
    let mut index = String::from("&[\n");
    for (name, path) in contract_files(&profiles) {
        let text = std::fs::read_to_string(&path).unwrap();
        let row = precompile::precompile(&text)
            .unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        let file = Path::new(&out).join(name.replace('/', "-"));
        std::fs::write(&file, row).unwrap();
        writeln!(
            index,
            "    ({name:?}, include_bytes!({:?})),",
            file.display()
        )
        .unwrap();
    }
    index.push(']');
    std::fs::write(Path::new(&out).join("precompiled.rs"), index).unwrap();
}

/// The TOML files of the profiles, by `PROFILE/FILE`, in order.
fn contract_files(profiles: &Path) -> Vec<(String, std::path::PathBuf)> {
    let entries = |folder: &Path| {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for folder in entries(profiles).into_iter().filter(|path| path.is_dir()) {
        let profile = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for path in entries(&folder)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        {
            found.push((
                format!("{profile}/{}", path.file_name().unwrap().to_str().unwrap()),
                path,
            ));
        }
    }
    found.sort();
    found
}
