//! Flows: several agents work on one memory.
//!
//! - `job` defines the jobs that the contract declares.
//! - `state` derives their status.
//! - `engine` starts ready jobs.
//! - `claim` ensures that only one worker does a job.
//! - `attempt` executes one job.
//! - `builtin` has the steps that Quipu performs itself.
//!
//! Progress is not stored. It is derived from markers, versions and the notes of attempts in the
//! journal, so a killed flow continues when it is started again.

mod agent;
mod assignment;
mod attempt;
mod builtin;
mod builtin_steps;
mod check;
mod checked;
mod claim;
mod commit;
mod conditions;
mod declare;
mod derivation;
mod engine;
mod estimate;
mod event;
mod expect;
mod folder;
mod gate;
mod idle;
pub(crate) mod job;
mod messages;
mod next;
mod note;
mod open_points;
mod questions;
mod redo;
mod replay;
mod round;
mod scripted;
mod shared;
mod snapshot;
mod state;
mod worker_loop;

pub use agent::{Agent, AgentReport, Ended, Ending, Stop, Task, Watch};
pub use attempt::AttemptError;
pub use builtin::derive::DeriveError;
pub(crate) use builtin::remember::{folded, table_rows};
pub use builtin::{Printed, Publisher};
pub use declare::{PlannedUnit, UnitPlan, load_unit_plan};
pub use engine::{Choice, Engine, FlowError, flow_now, refresh_panel};
pub use estimate::{Estimate, JobEstimate, StepUsage, estimate_flow};
pub use event::{Event, Summary};
pub use folder::{RunningAttempt, attempts_under_way, folder_of, prune_runs};
pub use gate::{Decided, GateError, decide_gate, settle_published};
pub use idle::{Idle, explain_idle};
pub use job::{Job, Output, PlannedJob, plan_batches, plan_jobs};
pub use next::{next_command, retry_command};
pub use note::{AttemptFact, AttemptNote, AttemptResult, ReadNote, Usage};
pub use open_points::{OpenPoint, open_points};
pub use replay::{Replay, ReplayError, replay};
pub use scripted::Scripted;
pub use snapshot::{FlowCache, Snapshot};
pub use state::{CurrentFiles, Flow, JobStatus, SentBack, State, derive_flow};
pub use worker_loop::{LeaveRule, Until};
