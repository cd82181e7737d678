//! Comments on one matter: the report that weighs the panel joins those that say the same, and from
//! the next round on the first of them is answered for all.
//!
//! Pure: the issues of such a report and comments in, joined comments out.

use std::collections::BTreeMap;

use super::report::PlacedIssue;
use super::rounds::{Answer, Comment, Matter};

/// The comments that a report joins.
pub(super) struct Matters {
    /// The comment that answers for a comment.
    joined_to: BTreeMap<String, String>,
    /// The joined comments by the one that answers for them, with the severity of all.
    joined: BTreeMap<String, PlacedIssue>,
}

impl Matters {
    /// Finds the comments that a report joins. Findings of Quipu itself, under the id `checks`, are
    /// left out: they are checked again.
    pub fn of(issues: &[PlacedIssue], checks: &str) -> Matters {
        let mut matters = Matters {
            joined_to: BTreeMap::new(),
            joined: BTreeMap::new(),
        };
        let is_checked = |id: &String| id.split_once('.').is_some_and(|(by, _)| by == checks);
        for mut issue in issues.iter().cloned() {
            issue.comments.retain(|id| !is_checked(id));
            let [first, others @ ..] = issue.comments.as_slice() else {
                continue;
            };
            for other in others {
                matters.joined_to.insert(other.clone(), first.clone());
            }
            if !others.is_empty() {
                matters.joined.insert(first.clone(), issue);
            }
        }
        matters
    }

    /// Marks comments as joined. Those that are joined already follow the one that answers for them.
    pub fn join(&self, comments: &mut [Comment]) {
        for comment in comments.iter_mut().filter(|c| c.is_open()) {
            let answers = comment.joined_to.as_ref().unwrap_or(&comment.id);
            if let Some(first) = self.joined_to.get(answers) {
                comment.joined_to = Some(first.clone());
                comment.matter = None;
            } else if let Some(issue) = self.joined.get(&comment.id) {
                comment.severity = issue.severity;
                let before = comment.matter.take().map(|matter| matter.with);
                let with = issue.comments[1..].iter().cloned();
                comment.matter = Some(Matter {
                    with: before.into_iter().flatten().chain(with).collect(),
                    text: issue.text.clone(),
                });
            }
        }
    }
}

/// Gives joined comments the status and the answer of the one that answers for them.
pub(super) fn follow(comments: &mut [Comment]) {
    let answered: BTreeMap<String, Comment> = comments
        .iter()
        .filter(|c| c.matter.is_some())
        .map(|c| (c.id.clone(), c.clone()))
        .collect();
    for comment in comments.iter_mut() {
        let first = comment.joined_to.as_ref().and_then(|id| answered.get(id));
        let newer = |first: &&Comment| {
            let round = |c: &Comment| c.answer.as_ref().map(|answer| answer.round);
            round(first) > round(comment)
        };
        if let Some(first) = first.filter(newer) {
            comment.status = first.status;
            // It keeps the place of its own words.
            comment.answer = first.answer.clone().map(|answer| Answer {
                line: None,
                quote: None,
                ..answer
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::comment::{Cited, Severity, Status, WrittenComment};

    fn comment(id: &str) -> Comment {
        let written = WrittenComment {
            line: 1,
            severity: Severity::Minor,
            cited: Cited {
                path: None,
                lines: (1, 1),
                quote: "words".into(),
            },
            text: "Mend it.".into(),
        };
        Comment::new(id.into(), id.split('.').next().unwrap(), 1, &written)
    }

    fn issue(severity: Severity, ids: &[&str], text: &str) -> PlacedIssue {
        PlacedIssue {
            line: 1,
            severity,
            comments: ids.iter().map(|id| (*id).to_owned()).collect(),
            text: text.into(),
        }
    }

    #[test]
    fn the_first_comment_of_a_matter_answers_for_all() {
        let mut comments = ["s1.1", "s2.1", "r1.1", "w1.1"].map(comment);
        let issues = [
            issue(Severity::Important, &["d.1", "s1.1", "s2.1"], "No method."),
            issue(Severity::Minor, &["r1.1"], "A comma."),
        ];
        let one = Matters::of(&issues, "d");
        one.join(&mut comments);
        assert_eq!(comments[0].severity, Severity::Important);
        assert_eq!(comments[0].matter.as_ref().unwrap().with, ["s2.1"]);
        assert_eq!(comments[1].joined_to.as_deref(), Some("s1.1"));
        assert!(comments[2].is_asked() && comments[2].matter.is_none());
        comments[0].status = Status::Partly;
        comments[0].answer = Some(Answer {
            round: 2,
            line: Some(3),
            quote: Some("new words".into()),
            text: "Half of it.".into(),
        });
        follow(&mut comments);
        assert_eq!(comments[1].status, Status::Partly);
        assert_eq!(comments[1].answer.as_ref().unwrap().text, "Half of it.");
        assert_eq!(comments[1].last_quote(), "words");
        assert_eq!(comments[3].status, Status::Open);
        // A later round joins the matter to another.
        let issues = [issue(Severity::Critical, &["w1.1", "s1.1"], "No method.")];
        let two = Matters::of(&issues, "d");
        two.join(&mut comments);
        assert_eq!(comments[0].joined_to.as_deref(), Some("w1.1"));
        assert_eq!(comments[1].joined_to.as_deref(), Some("w1.1"));
        assert_eq!(comments[3].severity, Severity::Critical);
        assert_eq!(comments.iter().filter(|c| c.is_asked()).count(), 2);
    }
}
