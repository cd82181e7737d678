//! Reads the memory that is published for readers: the terms in force, and references between
//! chapters.
//!
//! Only files that the actor may read are used.

use quipu_contract::{Actor, Form};
use quipu_publish::{Reference, Term};

use super::PublishError;
use crate::files::read::may_read_whole;
use crate::flow::{folded, table_rows};
use crate::project::open::Project;

/// The text and path of the file of a form. None if there is no such file, or the actor may not
/// read it.
fn text_of(
    project: &Project,
    actor: &Actor,
    form: Form,
) -> Result<Option<(String, String)>, PublishError> {
    let rule = project.contract.of_form(form).next();
    let Some(path) = rule
        .and_then(|rule| rule.path.as_literal())
        .and_then(|path| quipu_contract::ProjectPath::parse(path).ok())
    else {
        return Ok(None);
    };
    if may_read_whole(project, actor, &path).is_err() {
        return Ok(None);
    }
    let text = project
        .store
        .read(&path)?
        .and_then(|(bytes, _)| String::from_utf8(bytes).ok());
    Ok(text.map(|text| (path.to_string(), text)))
}

/// The terms of the glossary, in the order in which the book introduces them.
pub(super) fn collect_terms(project: &Project, actor: &Actor) -> Result<Vec<Term>, PublishError> {
    Ok(text_of(project, actor, Form::Glossary)?
        .map_or_else(Vec::new, |(_, text)| terms_in_force(&text)))
}

/// The newest row of a term is in force. A row that supersedes another term replaces it. A row
/// without a definition is ignored.
fn terms_in_force(text: &str) -> Vec<Term> {
    let mut terms: Vec<(String, Term)> = Vec::new();
    for (_, cells) in table_rows(text) {
        let cell = |at: usize| {
            cells
                .get(at)
                .map_or("", |cell| cell.trim())
                .replace("\\|", "|")
        };
        let key = folded(&cell(0));
        let superseded = folded(&cell(3));
        let term = Term {
            term: cell(0),
            definition: cell(1),
            chapter: cell(2),
        };
        terms.retain(|(known, _)| *known != superseded || *known == key);
        match terms.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = term,
            None => terms.push((key, term)),
        }
    }
    let is_said = |text: &str| !["", "-", "—"].contains(&text.trim());
    terms
        .into_iter()
        .map(|(_, term)| term)
        .filter(|term| is_said(&term.term) && is_said(&term.definition))
        .collect()
}

/// The rows of the cross-references.
pub(super) fn collect_references(
    project: &Project,
    actor: &Actor,
) -> Result<Vec<Reference>, PublishError> {
    let Some((path, text)) = text_of(project, actor, Form::References)? else {
        return Ok(Vec::new());
    };
    let reference = |(line, cells): (usize, Vec<String>)| {
        let cell = |at: usize| {
            cells
                .get(at)
                .map_or("", |cell| cell.trim())
                .replace("\\|", "|")
        };
        Reference {
            from: cell(0),
            to: cell(1),
            about: cell(2),
            path: path.clone(),
            line,
        }
    };
    Ok(table_rows(&text).into_iter().map(reference).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_row_of_a_term_is_in_force() {
        let text = "# Glossary\n\n| term | definition | chapter | supersedes |\n|---|---|---|---|\n| lease | a right | ch01 | |\n\
            | *Knot* | a tie | ch01 | |\n| cord | a \\| b | ch01 | |\n| Lease | a loan | ch02 | ch01 |\n| tie | a knot | ch03 | knot |\n| cord | — | ch03 | cord |\n";
        let found: Vec<(String, String, String)> = terms_in_force(text)
            .into_iter()
            .map(|term| (term.term, term.definition, term.chapter))
            .collect();
        let of = |term: &str, definition: &str, chapter: &str| {
            (term.to_owned(), definition.to_owned(), chapter.to_owned())
        };
        assert_eq!(
            found,
            [of("Lease", "a loan", "ch02"), of("tie", "a knot", "ch03")]
        );
    }
}
