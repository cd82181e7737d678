//! `patch`, `git apply` and `git am`: the diff names its files.
//!
//! Files in its `---`, `+++` and `rename from` lines count as changed. `stream.rs` finds its text.

use super::programs::Arguments;
use super::stream::Stream;
use super::word::Word;
use super::{How, Shell};

impl Shell {
    /// `patch`: the file that is patched, or those that the diff names.
    pub(super) fn patch(&mut self, arguments: &Arguments, input: &Stream) {
        if let Some(file) = arguments.named().first() {
            self.write(How::Change, file);
        }
        self.apply_diffs(arguments, input);
    }

    /// The files of the diffs in the arguments or in the input.
    pub(super) fn apply_diffs(&mut self, arguments: &Arguments, input: &Stream) {
        let mut input = input.clone();
        input.files.extend(arguments.named());
        input.files.extend(arguments.values(&["-i", "--input"]));
        let texts = self.texts_of(&input);
        for (listing, paths) in &input.diffs {
            self.listed(How::Change, listing.clone(), paths);
        }
        if texts.is_empty() && input.diffs.is_empty() && !input.is_empty() {
            self.write(How::Change, &Word::any());
        }
        let folders = arguments.values(&["-d", "--directory"]);
        let folder = folders.first().and_then(Word::text).unwrap_or_default();
        for text in texts.iter().map(Word::spelled) {
            self.diff(&text, &Word::plain(&folder));
        }
    }

    /// Each file of a diff may be named with or without some of its leading folders.
    fn diff(&mut self, text: &str, folder: &Word) {
        for line in text.lines() {
            let Some(file) = line
                .strip_prefix("+++ ")
                .or_else(|| line.strip_prefix("--- "))
                .or_else(|| line.strip_prefix("rename from "))
            else {
                continue;
            };
            let file = file.split('\t').next().unwrap_or_default();
            let slashes = file.match_indices('/').map(|(at, _)| at + 1);
            for at in std::iter::once(0).chain(slashes) {
                let name = Word::plain(&file[at..]).within(folder);
                self.mention(How::Change, &Word::plain(&name.spelled()));
            }
        }
    }
}
