//! The worldlog: tasks, their session records, and the knowledge learnt from them.
//!
//! | file | owns |
//! |---|---|
//! | `names` | headings and keys in both languages |
//! | `raw` | texts of a file, byte for byte |
//! | `task` | the working memory for one task |
//! | `session` | the record of one task and its name |
//! | `knowledge` | patterns, errors, lessons, and numbers counted from sessions |
//! | `matching`, `proposal` | knowledge that matches a task; candidates for patterns |
//! | `meanings` | vectors of lessons |
//! | `beginning` | starting a task |
//! | `metrics`, `plot` | measurements of learning |
//! | `closing` | the texts that close a task |
//! | `ending`, `world` | closing a task, and the world, in the draft of a finish |
//! | `calls` | warnings about an agent's own calls |
//! | `past` | the sessions of a project; the only file here that reads folders |

mod beginning;
mod calls;
mod closing;
mod ending;
mod kept;
mod knowledge;
mod matching;
mod meanings;
mod metrics;
mod names;
mod past;
mod plot;
mod proposal;
mod raw;
mod session;
mod task;
mod world;

pub(crate) use beginning::has_task;
pub use beginning::{begin_task, find_matches};
pub use calls::{Call, Calls, Limits};
pub use closing::{ACTIVITY, FACTS, Lack, TaskReport, WorldChange, compose_session, merge_world};
pub use ending::own_sessions;
pub(crate) use ending::{TASK_KEYS, WORLD_KEYS, close_task};
pub use knowledge::{
    Counted, ErrorPattern, Knowledge, Pattern, add_idea, add_lesson, count_pattern, names_pattern,
    put_error, put_pattern, read_knowledge, recount, uses,
};
pub use matching::{Kind as MatchKind, Match};
pub use metrics::{Gain, Metrics, Point, measure};
pub use past::{
    PastSession, load_sessions, load_sessions_of, newest_sessions, stem, write_derived,
};
pub use plot::{render_blocks, render_svg};
pub use proposal::{Proposal, pattern_after, propose};
pub use session::{
    Outcome, Session, SessionName, nth_name, parse_session_name, plan_keywords, read_session,
    render_session, session_stem,
};
pub use task::{
    NewTask, Standing, Task, TaskError, Todo, add_todo, clear_task, finish_todo, move_todo, note,
    read_task, start_task, strike_todo,
};
pub(crate) use world::close_world;
pub use world::refuse_before_finish;
