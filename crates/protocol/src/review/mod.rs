//! A panel of reviewing agents: their reports and comments, the combined result, the rounds of a
//! review, and the derived state file.

mod agree;
mod comment;
mod letter;
mod nothing;
mod passage;
mod report;
mod revise;
mod rounds;
mod state;
mod sum;

pub use comment::{Severity, Status};
pub use letter::{LetterError, write_letter};
pub use report::{Author, Report, ReportFault, parse_report};
pub use revise::{ReviseError, Revised, Revision, reply_path, revise};
pub use rounds::{Answer, Comment, Rounds};
pub use state::{
    AgentStatus, Member, PanelView, derive_panel, earlier_comments, panel_view, render_state,
};
pub use sum::{Conflict, Counts, Domain, SharedPassage, Sum, VERDICTS, sum_up};
