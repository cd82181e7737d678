//! A panel of reviewing agents: their reports and comments, the combined result, the rounds of a
//! review, and the derived state file.

mod agree;
mod carried;
mod checks;
mod comment;
mod extract;
mod letter;
mod matter;
mod nothing;
mod passage;
mod report;
mod revise;
mod revised;
mod rounds;
mod sentences;
mod state;
mod sum;

pub use checks::{Checks, make_checks};
pub use comment::{Severity, Status};
pub(crate) use extract::{extract_state, round_of};
pub use letter::{LetterError, write_letter};
pub(crate) use report::without_places;
pub use report::{Author, Report, ReportFault, parse_report};
pub use revise::{ReviseError, Revised, Revision, reply_path, revise};
pub use revised::{Changes, Concern, answers_to, changed_passages, is_by_comment};
pub use rounds::{Answer, Comment, Matter, Rounds};
pub use state::{
    AgentStatus, Earlier, Member, PanelView, derive_panel, load_earlier, panel_view, render_state,
};
pub use sum::{Conflict, Counts, Domain, SharedPassage, Sum, VERDICTS, sum_up};
