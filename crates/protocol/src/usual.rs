//! How long the texts of a role usually are, in tokens, from the words that the contract gives
//! them.

use quipu_contract::{Binding, Budget, Contract, Language, ProjectPath, Role, Tokens};

/// Tokens of ten words of prose about code, with the code it quotes: English, Chinese.
const TOKENS_OF_TEN_WORDS: (u64, u64) = (18, 13);
/// Room for an answer, in multiples of what is usually written: thinking about it, writing it, and
/// writing it again when it is sent back.
const ANSWERS: u64 = 3;
/// The least room for an answer: a short text takes thought, too.
const LEAST_RESERVE: Tokens = Tokens(4_000);

/// A text that a role writes: as many words as the shape of the file asks for, else as many as the
/// role's pointer says; none if neither does.
pub(crate) fn usual_tokens(
    contract: &Contract,
    role: Option<&Role>,
    binding: &Binding,
    path: &ProjectPath,
) -> Option<Tokens> {
    let number = |words: &String| {
        words
            .parse()
            .ok()
            .or_else(|| binding.get(words)?.trim().parse::<u64>().ok())
    };
    let shaped = contract
        .rule(path)
        .and_then(|rule| rule.shape.as_ref()?.words.as_ref())
        .and_then(number);
    let mut own = role
        .iter()
        .flat_map(|role| &role.writes)
        .filter(|write| write.path.fill(binding).matches(path.as_str()).is_some());
    let words = shaped.or_else(|| own.find_map(|write| write.words).map(u64::from))?;
    let (english, chinese) = TOKENS_OF_TEN_WORDS;
    Some(Tokens(
        words.saturating_mul(if contract.language == Language::Zh {
            chinese
        } else {
            english
        }) / 10,
    ))
}

/// The room for an answer follows from what the role writes, unless the contract states one or says
/// nothing of the length.
pub(crate) fn fit_reserve(
    contract: &Contract,
    role: &Role,
    binding: &Binding,
    budget: &mut Budget,
) {
    let paths = role
        .writes
        .iter()
        .filter(|write| !write.optional)
        .filter_map(|write| {
            let filled = write.path.fill(binding);
            ProjectPath::parse(filled.as_literal()?).ok()
        });
    let usual: Vec<Tokens> = paths
        .filter_map(|path| usual_tokens(contract, Some(role), binding, &path))
        .collect();
    if budget.reserve_is_stated || usual.is_empty() {
        return;
    }
    let wanted =
        Tokens(usual.into_iter().sum::<Tokens>().0.saturating_mul(ANSWERS)).max(LEAST_RESERVE);
    // Half of the window stays for reading, however long the text is to be.
    budget.reserve = wanted.min(Tokens(budget.window.saturating_sub(budget.system).0 / 2));
}
