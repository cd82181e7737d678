//! Flows: many agents, one memory, no chaos.
//!
//! `turn` says what the contract wants, `state` how far it is, `engine` starts what is ready,
//! `claim` sees to it that no one else does, `attempt` carries one turn out, `builtin` does what
//! Quipu does itself. Progress is stored nowhere: markers, versions and the notes of runs in the
//! journal tell it, so a flow that was killed goes on by being started again.

mod attempt;
mod builtin;
mod check;
mod claim;
mod commit;
mod declare;
mod derivation;
mod engine;
mod estimate;
mod event;
mod expect;
mod folder;
mod gate;
mod handiwork;
mod next;
mod note;
mod perform;
mod redo;
mod replay;
mod said;
mod scripted;
mod shared;
mod snapshot;
mod state;
mod stay;
mod turn;
mod when;

pub use attempt::AttemptError;
pub use builtin::derive::DeriveError;
pub(crate) use builtin::remember::{folded, table_rows};
pub use builtin::{Press, Printed};
pub use declare::{PlannedUnit, UnitPlan, load_unit_plan};
pub use engine::{Choice, Engine, FlowError, flow_now, refresh_panel};
pub use estimate::{Estimate, StepUsage, TurnEstimate, estimate_flow};
pub use event::{Event, Summary};
pub use folder::{Underway, folder_of, prune_runs, runs_under_way};
pub use gate::{Decided, GateError, decide_gate};
pub use next::next_command;
pub use note::{ReadNote, Ruling, RunFact, RunNote, Usage};
pub use perform::{Ended, Ending, Performer, Stop, Task, Told, Watch};
pub use replay::{Replay, ReplayError, replay};
pub use scripted::Scripted;
pub use snapshot::{Memory, Snapshot};
pub use state::{Flow, Now, SentBack, Standing, State, derive_flow};
pub use stay::{Stay, Until};
pub use turn::{Output, Planned, Turn, plan_batches, plan_turns};
