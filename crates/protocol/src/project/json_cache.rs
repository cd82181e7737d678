//! Cache files in JSON with a checksum in the first line.
//!
//! The checksum is needed because a flipped digit is still valid JSON. A file that does not match
//! its checksum counts as absent, and the caller computes the content again.

use std::path::Path;

use quipu_store::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Loads a cache file. None if it is missing or damaged, or has another format.
pub fn load_kept<T: DeserializeOwned>(file: &Path) -> Option<T> {
    let text = std::fs::read_to_string(file).ok()?;
    let (sum, json) = text.split_once('\n')?;
    (Version::of(json.as_bytes()).as_str() == sum)
        .then(|| serde_json::from_str(json).ok())
        .flatten()
}

/// Replaces a cache file. The caller may ignore an error: the content is then computed again.
pub fn save_kept<T: Serialize>(file: &Path, content: &T) -> std::io::Result<()> {
    let json = serde_json::to_string(content)?;
    let half = file.with_extension(format!("{}.tmp", std::process::id()));
    file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(&half, format!("{}\n{json}", Version::of(json.as_bytes())))?;
    std::fs::rename(&half, file).inspect_err(|_| drop(std::fs::remove_file(&half)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("below/kept.json");
        save_kept(&file, &[1, 20, 300]).unwrap();
        assert_eq!(load_kept::<Vec<u32>>(&file), Some(vec![1, 20, 300]));
        let whole = std::fs::read(&file).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, &bytes).unwrap();
            assert_eq!(load_kept::<Vec<u32>>(&file), None, "bit {bit}");
        }
    }
}
