//! What a shell command plainly writes: redirections, `tee`, `sed -i`, `rm`, `mv`, `cp` and a few more.
//!
//! Only what can be read off the text counts. A word with a variable, a substitution or a wildcard names nothing
//! here: hooks are courtesy, and what slips by is seen afterwards by `status`, `verify` and `finish`.

use std::path::{Path, PathBuf};

use super::call::Deed;

/// A word, or what stands between words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word {
        text: String,
        /// It says what it means: nothing in it is expanded.
        plain: bool,
    },
    /// `>`, or `>>` if it appends.
    Out { appends: bool },
    /// Between two commands.
    End,
}

pub fn deeds(command: &str) -> Vec<Deed> {
    let mut folder = PathBuf::new();
    let mut deeds = Vec::new();
    for simple in tokens(command).split(|t| *t == Token::End) {
        simple_deeds(simple, &mut folder, &mut deeds);
    }
    deeds
}

/// A command that comes as a list of words.
pub fn deeds_of_words(words: &[String]) -> Vec<Deed> {
    let simple: Vec<Token> = words.iter().map(|text| Token::Word { text: text.clone(), plain: true }).collect();
    let mut deeds = Vec::new();
    simple_deeds(&simple, &mut PathBuf::new(), &mut deeds);
    deeds
}

fn simple_deeds(simple: &[Token], folder: &mut PathBuf, deeds: &mut Vec<Deed>) {
    let mut words: Vec<(&str, bool)> = Vec::new();
    let mut tokens = simple.iter();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word { text, plain } => words.push((text, *plain)),
            Token::Out { appends } => {
                if let Some(Token::Word { text, plain: true }) = tokens.next() {
                    let path = folder.join(text);
                    deeds.push(if *appends { Deed::Grow { path } } else { Deed::Change { path } });
                }
            }
            Token::End => {}
        }
    }
    let is_prefix = |word: &str| {
        let assigns = word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
        assigns || ["sudo", "env", "command", "nohup", "time", "exec", "then", "do", "else", "!", "{", "("].contains(&word)
    };
    let skipped = words.iter().take_while(|(word, _)| is_prefix(word)).count();
    let Some(((name, _), rest)) = words[skipped..].split_first() else { return };
    let name = Path::new(name).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let has = |flag: &str| rest.iter().any(|(word, _)| *word == flag);
    let short = |letter: char| rest.iter().any(|(w, _)| w.starts_with('-') && !w.starts_with("--") && w.contains(letter));
    let named: Vec<&str> = rest.iter().filter(|(word, plain)| *plain && !word.starts_with('-')).map(|(word, _)| *word).collect();
    let at = |path: &str| folder.join(path);
    let change = |path: &&str| Deed::Change { path: at(path) };
    match name.as_str() {
        "cd" => {
            if let [to] = named[..] {
                *folder = folder.join(to);
            }
        }
        "bash" | "sh" | "zsh" | "dash" if short('c') => {
            if let Some(script) = named.first() {
                for deed in self::deeds(script) {
                    deeds.push(deed.below(folder));
                }
            }
        }
        "tee" if short('a') || has("--append") => deeds.extend(named.iter().map(|path| Deed::Grow { path: at(path) })),
        "tee" => deeds.extend(named.iter().map(change)),
        "sed" | "perl" if has("--in-place") || rest.iter().any(|(w, _)| w.starts_with("--in-place=")) || short('i') => {
            deeds.extend(edited_files(rest).iter().map(change));
        }
        "rm" | "unlink" | "shred" => deeds.extend(named.iter().map(|path| Deed::Remove { path: at(path) })),
        "truncate" => deeds.extend(named.iter().filter(|n| n.parse::<i64>().is_err()).map(change)),
        "dd" => deeds.extend(named.iter().filter_map(|w| w.strip_prefix("of=")).map(|path| Deed::Change { path: at(path) })),
        "mv" | "cp" | "install" => {
            let Some((target, from)) = named.split_last() else { return };
            if name == "mv" {
                deeds.extend(from.iter().map(|path| Deed::Remove { path: at(path) }));
            }
            // Into a folder it keeps its name; which of the two it is, whoever judges can see.
            deeds.extend(from.iter().filter_map(|p| Path::new(p).file_name()).map(|n| Deed::Change { path: at(target).join(n) }));
            deeds.push(Deed::Change { path: at(target) });
        }
        _ => {}
    }
}

/// The files of `sed -i` and `perl -i`: every word but the options and the script.
fn edited_files<'w>(words: &[(&'w str, bool)]) -> Vec<&'w str> {
    let (mut files, mut scripted, mut words) = (Vec::new(), false, words.iter());
    while let Some((word, plain)) = words.next() {
        let cluster = word.starts_with('-') && !word.starts_with("--");
        if *word == "--expression" || *word == "--file" || (cluster && (word.ends_with('e') || *word == "-f")) {
            scripted = true;
            words.next();
        } else if word.starts_with('-') {
            scripted |= word.starts_with("--expression=") || word.starts_with("-e");
        } else {
            files.push((*word, *plain));
        }
    }
    let skipped = if scripted { 0 } else { 1 };
    files.into_iter().skip(skipped).filter(|(_, plain)| *plain).map(|(word, _)| word).collect()
}

impl Deed {
    /// The same in a folder.
    fn below(self, folder: &Path) -> Deed {
        match self {
            Deed::Change { path } => Deed::Change { path: folder.join(path) },
            Deed::Grow { path } => Deed::Grow { path: folder.join(path) },
            Deed::Remove { path } => Deed::Remove { path: folder.join(path) },
            other => other,
        }
    }
}

/// Tokens so far, and the word that is being read.
#[derive(Default)]
struct Read {
    tokens: Vec<Token>,
    word: String,
    plain: bool,
    begun: bool,
}

impl Read {
    fn close(&mut self) {
        let (text, plain) = (std::mem::take(&mut self.word), std::mem::replace(&mut self.plain, true));
        if std::mem::take(&mut self.begun) {
            self.tokens.push(Token::Word { text, plain });
        }
    }
}

fn tokens(command: &str) -> Vec<Token> {
    let mut read = Read { plain: true, ..Read::default() };
    let mut documents: Vec<String> = Vec::new();
    let mut letters = command.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\'' => {
                read.begun = true;
                read.word.extend(letters.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                read.begun = true;
                while let Some(c) = letters.next() {
                    match c {
                        '"' => break,
                        '\\' => read.word.extend(letters.next()),
                        c => {
                            read.plain &= c != '$' && c != '`';
                            read.word.push(c);
                        }
                    }
                }
            }
            '\\' => {
                read.begun = true;
                read.word.extend(letters.next().filter(|c| *c != '\n'));
            }
            '#' if !read.begun => while letters.next_if(|c| *c != '\n').is_some() {},
            '>' => {
                // A number before it says which stream; `>&2` names another stream and no file.
                if read.word.chars().all(|c| c.is_ascii_digit()) && read.plain {
                    read.word.clear();
                    read.begun = false;
                }
                read.close();
                let appends = letters.next_if_eq(&'>').is_some();
                letters.next_if_eq(&'|');
                let joins = letters.next_if_eq(&'&').is_some();
                let target: String =
                    letters.clone().skip_while(|c| *c == ' ').take_while(|c| !c.is_whitespace() && !";|&<>()".contains(*c)).collect();
                if joins && !target.is_empty() && target.chars().all(|c| c.is_ascii_digit() || c == '-') {
                    while letters.next_if(|c| c.is_ascii_digit() || matches!(c, '-' | ' ')).is_some() {}
                } else {
                    read.tokens.push(Token::Out { appends });
                }
            }
            '<' => {
                read.close();
                if letters.next_if_eq(&'<').is_some() {
                    if letters.next_if_eq(&'<').is_some() {
                        continue;
                    }
                    letters.next_if_eq(&'-');
                    while letters.next_if(|c| *c == ' ').is_some() {}
                    let mut mark = String::new();
                    while let Some(c) = letters.next_if(|c| !c.is_whitespace() && !";|&<>".contains(*c)) {
                        mark.push(c);
                    }
                    documents.push(mark.replace(['\'', '"', '\\'], ""));
                } else {
                    // What is read is no deed.
                    while letters.next_if(|c| c.is_whitespace()).is_some() {}
                    while letters.next_if(|c| !c.is_whitespace() && !";|&<>".contains(*c)).is_some() {}
                }
            }
            '&' if letters.peek() == Some(&'>') => {
                read.close();
            }
            '\n' => {
                read.close();
                read.tokens.push(Token::End);
                for mark in documents.drain(..) {
                    loop {
                        let line: String = letters.by_ref().take_while(|c| *c != '\n').collect();
                        if line.trim_start_matches('\t') == mark || letters.peek().is_none() {
                            break;
                        }
                    }
                }
            }
            ';' | '|' | '&' | '(' | ')' => {
                read.close();
                read.tokens.push(Token::End);
            }
            c if c.is_whitespace() => {
                read.close();
            }
            c => {
                read.begun = true;
                read.plain &= !"$`*?[{~".contains(c);
                read.word.push(c);
            }
        }
    }
    read.close();
    read.tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Vec<String> {
        let tell = |deed: Deed| match deed {
            Deed::Change { path } => format!("change {}", path.display()),
            Deed::Grow { path } => format!("grow {}", path.display()),
            Deed::Remove { path } => format!("remove {}", path.display()),
            other => format!("{other:?}"),
        };
        deeds(command).into_iter().map(tell).collect()
    }

    #[test]
    fn plain_writes_are_seen() {
        for (command, wanted) in [
            ("echo x > a.md", vec!["change a.md"]),
            ("echo x >> 'a b.md' 2>&1", vec!["grow a b.md"]),
            ("echo x >|a.md; true 2> err.log", vec!["change a.md", "change err.log"]),
            ("make &> log", vec!["change log"]),
            ("echo x >&a.md", vec!["change a.md"]),
            ("make >& 'a b.md' 2>&1; echo 2 >& 1", vec!["change a b.md"]),
            ("cat <<'EOF' > a.md\nrm b.md\necho > c\nEOF\nrm d.md", vec!["change a.md", "remove d.md"]),
            ("cd meta && sed -i 's/a/b/' glossary.md", vec!["change meta/glossary.md"]),
            ("sed -i.bak -e s/a/b/ x y", vec!["change x", "change y"]),
            ("perl -pi -e 's/a/b/' x", vec!["change x"]),
            ("echo x | sudo tee -a 手稿/一.md", vec!["grow 手稿/一.md"]),
            ("rm -rf meta", vec!["remove meta"]),
            ("mv a.md b.md", vec!["remove a.md", "change b.md/a.md", "change b.md"]),
            ("FOO=1 cp a.md b.md", vec!["change b.md/a.md", "change b.md"]),
            ("bash -c 'echo x > a.md'", vec!["change a.md"]),
            ("dd if=/dev/zero of=a.md", vec!["change a.md"]),
            ("if true; then rm a.md; fi", vec!["remove a.md"]),
        ] {
            assert_eq!(told(command), wanted, "{command}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_verification() {
        for command in [
            "echo x > $FILE",
            "rm *.md",
            "sed 's/a/b/' a.md",
            "grep '>' a.md",
            "echo \"a > b\"",
            "cat < a.md",
            "echo done # > a.md",
            "echo x >&2",
            "exec 3>&- >&$LOG",
            "git commit -m 'rm a.md'",
        ] {
            assert_eq!(told(command), [""; 0], "{command}");
        }
    }
}
