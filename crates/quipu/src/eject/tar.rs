//! Writes files as a tar archive (ustar), so that a deleted history can be kept and unpacked with
//! any `tar`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const BLOCK: usize = 512;
/// The lengths of the two fields that hold a path.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// Packs files below `root` into a new archive and syncs it. Each file is read once; a path that
/// the format cannot represent is an error.
pub fn pack(archive: &Path, root: &Path, paths: &[String]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(archive)?;
    match write_all(&mut file, root, paths) {
        Ok(()) => Ok(()),
        Err(error) => {
            // The new archive is incomplete; all that it holds is below `root` too.
            let _ = std::fs::remove_file(archive);
            Err(error)
        }
    }
}

fn write_all(file: &mut File, root: &Path, paths: &[String]) -> io::Result<()> {
    for path in paths {
        let bytes = std::fs::read(root.join(path))?;
        file.write_all(&header(path, bytes.len())?)?;
        file.write_all(&bytes)?;
        file.write_all(&vec![0; bytes.len().next_multiple_of(BLOCK) - bytes.len()])?;
    }
    file.write_all(&[0; 2 * BLOCK])?;
    file.sync_all()
}

fn header(path: &str, length: usize) -> io::Result<[u8; BLOCK]> {
    let unfit = || io::Error::other(format!("the path `{path}` is too long for a tar archive"));
    let (prefix, name) = split(path).ok_or_else(unfit)?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum is computed with blanks in its own place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Splits a path at a slash so that both parts fit.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME {
        return Some(("", path));
    }
    path.match_indices('/')
        .map(|(at, _)| (&path[..at], &path[at + 1..]))
        .find(|(prefix, name)| prefix.len() <= PREFIX && name.len() <= NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_split_or_refused() {
        let (folder, name) = ("f".repeat(120), "n".repeat(90));
        let path = format!("{folder}/{name}");
        assert_eq!(split(&path), Some((folder.as_str(), name.as_str())));
        assert_eq!(split(&"n".repeat(101)), None);
        assert!(header(&"n".repeat(101), 1).is_err());
    }
}
