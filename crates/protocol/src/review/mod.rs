//! A panel of reviewing agents: their reports, the combined result, and the derived state file.

mod agree;
mod nothing;
mod report;
mod state;
mod sum;

pub use report::{Report, ReportFault, parse_report};
pub use state::{AgentStatus, Member, PanelView, derive_panel, panel_view, render_state};
pub use sum::{Conflict, Domain, Issue, Sum, VERDICTS, sum_up};
