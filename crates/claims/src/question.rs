//! Decides whether a line answers a question.
//!
//! A line that only names the person of the question answers nothing. It must also contain what is
//! asked about that person. Without a model this is decided by words, so it errs towards "no": a
//! missed answer costs a search of the manuscripts, a false one hides a gap in memory.

use crate::memory::{Entity, content, plain, split_key};
use crate::state::{Kind, kind_of};
use crate::threads::PROMISE;
use crate::words::{has_han, is_han, lowered, numbers, stem, words};

/// Words that ask and say nothing about the answer. Longer ones come first.
const ASKING_HAN: &[&str] = &[
    "为什么",
    "什么时候",
    "什么样",
    "怎么样",
    "是不是",
    "有没有",
    "什么",
    "为何",
    "何时",
    "何地",
    "哪里",
    "哪儿",
    "哪个",
    "哪只",
    "哪一",
    "多少",
    "怎么",
    "怎样",
    "如何",
    "是否",
    "是谁",
    "谁",
    "吗",
    "呢",
    "几",
];
/// Words that ask for a name. The heading above a line answers them.
const NAMING: &[&str] = &["call", "called", "name", "named", "names"];
const NAMING_HAN: &[&str] = &["叫做", "名字", "姓名", "叫", "姓"];

/// Returns a question without the words that ask: `沈砚为什么熄灯` is about 沈砚 and 熄灯.
pub(crate) fn without_asking(question: &str) -> String {
    let mut text = without_counts(question);
    for word in ASKING_HAN {
        text = text.replace(word, " ");
    }
    text
}

/// Returns true if a sentence is nothing but a question: it answers none.
pub(crate) fn only_asks(sentence: &str) -> bool {
    let bare = sentence.trim_end_matches(['”', '"', '」', '』', '’', '\'', ')', '）', ' ']);
    bare.ends_with(['?', '？'])
}

/// Returns true if a question asks for a number and the text has one of what it counts: `多少级`,
/// `how many steps`.
pub(crate) fn counts_what_is_asked(question: &str, text: &str) -> bool {
    const HOW_MANY: [&str; 3] = ["多少", "几", "how many"];
    let question = lowered(question);
    let asked = HOW_MANY
        .iter()
        .find_map(|sign| Some(question.split_once(sign)?.1));
    let Some(rest) = asked.map(str::trim_start) else {
        return false;
    };
    numbers(text).iter().any(|number| {
        let after = lowered(text[number.range.end..].trim_start());
        match rest.chars().next().filter(|c| is_han(*c)) {
            Some(unit) => after.starts_with(unit),
            None => {
                let counted = words(rest).into_iter().next();
                let near = words(&after).into_iter().take(3);
                let mut near = near.map(|word| stem(&word.lower).to_owned());
                counted.is_some_and(|word| near.any(|other| other == stem(&word.lower)))
            }
        }
    })
}

/// A question, cut into the persons and things it names and the words that ask about them.
#[derive(Debug, Clone)]
pub struct Question {
    /// The names of each entity that the question names.
    subjects: Vec<Vec<String>>,
    /// Stems of the other words.
    rest: Vec<String>,
    /// If it asks who holds something: the stems without the word for holding, which the key of a
    /// fact says in its own way.
    held: Option<Vec<String>>,
    asks_name: bool,
    /// True if it asks what somebody knows or believes.
    asks_mind: bool,
}

/// Words that ask for a number, with the word that counts: `几道`.
const COUNTING_HAN: [char; 1] = ['几'];
const COUNTING: [&str; 2] = ["many", "much"];
/// Words for holding something, longer ones first.
const HOLDING: &[&str] = &[
    "在谁手里",
    "在谁手中",
    "在谁手上",
    "在谁身上",
    "在谁那里",
    "谁手里有",
    "谁身上有",
    "拿着",
    "拿了",
    "拿走",
    "带着",
    "带了",
    "握着",
    "持有",
    "携带",
    "保管",
    "拿",
    "who has",
    "who holds",
    "who carries",
    "who keeps",
    "has got",
    "in whose hands",
    "holding",
    "carrying",
];
/// Beginnings of what somebody knows or does not know, and of a line that does not say it.
const INDIRECT: &[&str] = &[
    "who",
    "what",
    "why",
    "where",
    "how",
    "when",
    "which",
    "whether",
    "whose",
    "谁",
    "什么",
    "为什么",
    "为何",
    "何",
    "哪",
    "怎",
    "是谁",
    "是否",
    "有没有",
];

impl Question {
    pub fn of(question: &str, entities: &[Entity]) -> Question {
        let mut text = lowered(question);
        let mut subjects = Vec::new();
        for entity in entities {
            let mut names: Vec<String> = entity.names.iter().map(|name| lowered(name)).collect();
            names.sort_by_key(|name| std::cmp::Reverse(name.len()));
            let before = text.clone();
            for name in &names {
                text = without(&text, name);
            }
            if text != before {
                subjects.push(names);
            }
        }
        let asks_mind = content(&text).iter().any(|word| {
            [
                "know", "known", "believ", "suspect", "think", "知道", "相信", "以为", "怀疑",
            ]
            .contains(&stem(word))
        });
        let bare = HOLDING
            .iter()
            .fold(text.clone(), |bare, word| bare.replace(word, " "));
        let held = (bare != text).then(|| stems(&content(&without_asking(&bare))));
        text = without_asking(&text);
        let mut asks_name = false;
        for word in NAMING_HAN {
            asks_name |= text.contains(word);
            text = text.replace(word, " ");
        }
        let mut rest = content(&text);
        let before = rest.len();
        rest.retain(|word| !NAMING.contains(&word.as_str()));
        asks_name |= rest.len() < before;
        rest.retain(|word| !COUNTING.contains(&word.as_str()));
        Question {
            subjects,
            rest: stems(&rest),
            held,
            asks_name,
            asks_mind,
        }
    }

    /// Returns true if a line below `heading` answers the question.
    pub fn is_answered_by(&self, line: &str, heading: &str) -> bool {
        if !self.asks_mind && withholds(line) {
            return false;
        }
        let (line, heading) = (lowered(line), lowered(heading));
        let about = |names: &Vec<String>| {
            names
                .iter()
                .any(|name| without(&line, name) != line || without(&heading, name) != heading)
        };
        if !self.subjects.iter().all(about) {
            return false;
        }
        let said = stems(&content(&line));
        let is_holding = || {
            let key = plain(&line);
            let key = split_key(&key).and_then(|(key, _)| kind_of(key));
            matches!(key, Some(Kind::Holds | Kind::HeldBy))
        };
        let rest = match &self.held {
            Some(held) if is_holding() => held,
            _ => &self.rest,
        };
        let shared = rest.iter().filter(|word| said.contains(word)).count();
        if self.asks_name {
            let asked = rest.len();
            let named = heading.split('›').next_back().unwrap_or_default().trim();
            let is_other = !named.is_empty() && !self.subjects.iter().flatten().any(|n| n == named);
            return asked > 0 && shared == asked && (is_other || says_name(&line));
        }
        match rest.len() {
            0 => !self.subjects.is_empty(),
            asked => shared > 0 && shared * 3 >= asked * 2,
        }
    }
}

fn stems(words: &[String]) -> Vec<String> {
    words.iter().map(|word| stem(word).to_owned()).collect()
}

/// Returns true if a line says that somebody knows an answer, or does not, but not which one, or
/// if it is the question that a thread leaves open.
fn withholds(line: &str) -> bool {
    let said = plain(line);
    let Some((key, value)) = split_key(&said) else {
        return false;
    };
    if PROMISE.contains(&key.to_lowercase().as_str()) {
        return true;
    }
    match kind_of(key) {
        Some(Kind::DoesNotKnow) => true,
        Some(Kind::Knows | Kind::Believes) => {
            let value = lowered(value);
            let first = value.split(|c: char| !c.is_alphanumeric()).next();
            INDIRECT.iter().any(|word| match has_han(word) {
                true => value.starts_with(word),
                false => first == Some(word),
            })
        }
        _ => false,
    }
}

/// Removes the words that ask for a number: `几道铁栏` asks about `铁栏`.
fn without_counts(text: &str) -> String {
    let mut kept = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if COUNTING_HAN.contains(&c) {
            // The counter that follows belongs to the question.
            chars.next();
            kept.push(' ');
        } else {
            kept.push(c);
        }
    }
    kept
}

fn says_name(line: &str) -> bool {
    content(line)
        .iter()
        .any(|word| NAMING.contains(&word.as_str()))
        || NAMING_HAN.iter().any(|word| line.contains(word))
}

/// Removes a name from a text, in Latin script only as a whole word.
fn without(text: &str, name: &str) -> String {
    if name.is_empty() {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut at = 0;
    for (start, found) in text.match_indices(name) {
        let end = start + found.len();
        let inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric()) && !has_han(name);
        if inner(text[..start].chars().next_back()) || inner(text[end..].chars().next()) {
            continue;
        }
        kept.push_str(&text[at..start]);
        kept.push(' ');
        at = end;
    }
    kept + &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Place;

    fn entity(names: &[&str]) -> Entity {
        Entity {
            name: names[0].to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            at: Place::new("characters.md", 1),
        }
    }

    #[test]
    fn a_line_that_only_names_the_person_does_not_answer() {
        let entities = [
            entity(&["Joss Arden", "Joss", "the ferryman"]),
            entity(&["裘大", "老裘"]),
            entity(&["The gate"]),
            entity(&["关口"]),
        ];
        for (question, line, heading, answered) in [
            (
                "Which hand does Joss write with?",
                "drive: he rang no bell",
                "Joss Arden",
                false,
            ),
            (
                "Why does Joss never let anyone cross alone?",
                "he never lets anyone cross alone, because nine drowned",
                "Joss Arden",
                true,
            ),
            (
                "Who taught the ferryman to tie knots?",
                "Joss taught Tam to swim",
                "Tam",
                false,
            ),
            (
                "Who taught the ferryman to tie knots?",
                "Tam taught him to tie knots",
                "Joss Arden",
                true,
            ),
            ("Who is Joss?", "handed: left", "Joss Arden", true),
            (
                "Where did Pell hide the letter?",
                "Pell wants the bridge",
                "Pell",
                false,
            ),
            (
                "what is the smith called?",
                "the smith: paid in advance",
                "Odile",
                true,
            ),
            (
                "what is the smith called?",
                "the smith was paid in advance",
                "",
                false,
            ),
            (
                "Who cut the rope?",
                "does not know: who cut the rope",
                "Joss Arden",
                false,
            ),
            (
                "Who cut the rope?",
                "knows: who cut the rope",
                "Joss Arden",
                false,
            ),
            (
                "Does Joss know who cut the rope?",
                "does not know: who cut the rope",
                "Joss Arden",
                true,
            ),
            (
                "Who cut the rope?",
                "promise: who cut the rope?",
                "The cut rope",
                false,
            ),
            ("谁割断了绳？", "悬念：谁割断了绳？", "断绳", false),
            ("谁割断了绳？", "不知道：谁割断了绳", "裘大", false),
            ("老裘知道谁割断了绳吗？", "不知道：谁割断了绳", "裘大", true),
            ("How many bars has the gate?", "bars: 3", "The gate", true),
            ("关口有几道铁栏？", "铁栏：三道", "关口", true),
            (
                "谁拿着铜钥匙？",
                "持有：铜钥匙，得自陆承（自 ch04.2）",
                "裘大",
                true,
            ),
            (
                "铜钥匙在谁手里？",
                "持有：铜钥匙（自 ch04.2）",
                "裘大",
                true,
            ),
            (
                "谁拿着铜钥匙？",
                "持有：裴伯的账本（自 ch04.1）",
                "裘大",
                false,
            ),
            (
                "Who has the brass key?",
                "holds: the brass key, from Pell",
                "Joss Arden",
                true,
            ),
            (
                "Who is carrying the brass key?",
                "holds: the brass key",
                "Joss Arden",
                true,
            ),
            (
                "Who has the brass key?",
                "holds: the ledger",
                "Joss Arden",
                false,
            ),
            ("老裘的钥匙藏在哪里？", "老裘不让人独自过河", "裘大", false),
            ("老裘的钥匙藏在哪里？", "钥匙藏在钟座下", "裘大", true),
        ] {
            let question_ = Question::of(question, &entities);
            assert_eq!(
                question_.is_answered_by(line, heading),
                answered,
                "{question} / {line}"
            );
        }
    }
}
