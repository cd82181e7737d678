//! The table of operations: every operation of Quipu, once for all interfaces.
//!
//! An operation's arguments are one type. The command line is derived from it, and so is the schema
//! for other interfaces.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::answer::{Answer, Failure};
use crate::ops;
use crate::session::Session;
use crate::uses::refuse_foreign;

/// One operation.
pub trait Operate: Args + FromArgMatches {
    /// The name: `append`, or two words for a command of a group: `lease take`.
    const NAME: &'static str;
    const ABOUT: &'static str;

    fn operate(self, session: &Session) -> Result<Answer, Failure>;
}

pub struct Operation {
    pub name: &'static str,
    pub about: &'static str,
    pub augment: fn(Command) -> Command,
    pub call: fn(&ArgMatches, &Session) -> Result<Answer, Failure>,
}

const fn row<T: Operate>() -> Operation {
    Operation {
        name: T::NAME,
        about: T::ABOUT,
        augment: T::augment_args,
        call: call::<T>,
    }
}

fn call<T: Operate>(matches: &ArgMatches, session: &Session) -> Result<Answer, Failure> {
    session.in_language(perform::<T>(matches, session))
}

fn perform<T: Operate>(matches: &ArgMatches, session: &Session) -> Result<Answer, Failure> {
    refuse_foreign(T::NAME, session)?;
    let arguments = T::from_arg_matches(matches).map_err(|e| Failure::usage(e.to_string(), ""))?;
    let result = arguments.operate(session);
    if result.is_ok() {
        session.refresh_panel();
    }
    result
}

/// The groups of two-word operations, with their descriptions.
pub const GROUPS: [(&str, &str); 17] = [
    ("story", "Show people, things and time of a novel"),
    ("task", "Manage the current task of one agent"),
    ("world", "Read and set shared facts by key"),
    ("knowledge", "Manage what one agent has learnt"),
    ("sessions", "List and search the records of past tasks"),
    ("todo", "Add, edit, start, complete and list todos"),
    ("state", "Read and change the state of the project"),
    ("contract", "Show the rules of a project"),
    ("profile", "List, print and copy the built-in profiles"),
    (
        "review",
        "Show a review panel, open its next round, write its letter",
    ),
    ("lease", "Reserve paths for longer than one commit"),
    ("fleet", "Show the workers of a project"),
    ("self", "Check what works on this machine"),
    ("git", "Merge branches of memory"),
    ("history", "Delete old versions from the journal"),
    ("key", "Manage your key for signing heads"),
    ("store", "Manage the shared PostgreSQL store"),
];

/// Every operation, in the order of the help.
pub const TABLE: &[Operation] = &[
    row::<ops::init::Init>(),
    row::<ops::start::Start>(),
    row::<ops::finish::Finish>(),
    row::<ops::todo::TodoAdd>(),
    row::<ops::todo::TodoChange>(),
    row::<ops::todo::TodoStart>(),
    row::<ops::todo::TodoBlock>(),
    row::<ops::todo::TodoUnblock>(),
    row::<ops::todo::TodoDone>(),
    row::<ops::todo::TodoCancel>(),
    row::<ops::todo::TodoList>(),
    row::<ops::todo::TodoShow>(),
    row::<ops::todo::TodoReview>(),
    row::<ops::decide::Decide>(),
    row::<ops::decide::Decisions>(),
    row::<ops::note::Note>(),
    row::<ops::note::Fact>(),
    row::<ops::state::StateGet>(),
    row::<ops::state::StateSet>(),
    row::<ops::state::StateMerge>(),
    row::<ops::delegate::Delegate>(),
    row::<ops::delegate::Report>(),
    row::<ops::delegate::Collect>(),
    row::<ops::status::Status>(),
    row::<ops::view::View>(),
    row::<ops::brief::Brief>(),
    row::<ops::run::Run>(),
    row::<ops::worker::Worker>(),
    row::<ops::fleet::FleetStatus>(),
    row::<ops::gate::Approve>(),
    row::<ops::gate::Reject>(),
    row::<ops::replay::Replay>(),
    row::<ops::review::ReviewStatus>(),
    row::<ops::review::ReviewRevise>(),
    row::<ops::review::ReviewLetter>(),
    row::<ops::read::Read>(),
    row::<ops::recall::Recall>(),
    row::<ops::task::TaskStart>(),
    row::<ops::task::TaskTodo>(),
    row::<ops::task::TaskNote>(),
    row::<ops::task::TaskStatus>(),
    row::<ops::world::WorldGet>(),
    row::<ops::world::WorldSet>(),
    row::<ops::world::WorldNote>(),
    row::<ops::knowledge::KnowledgeShow>(),
    row::<ops::knowledge::KnowledgePattern>(),
    row::<ops::knowledge::KnowledgeLesson>(),
    row::<ops::sessions::SessionsList>(),
    row::<ops::sessions::SessionsSearch>(),
    row::<ops::metrics::Metrics>(),
    row::<ops::ask::Ask>(),
    row::<ops::check::Check>(),
    row::<ops::waive::Waive>(),
    row::<ops::learn::Learn>(),
    row::<ops::links::Links>(),
    row::<ops::threads::Threads>(),
    row::<ops::tension::Tension>(),
    row::<ops::story::StorySheet>(),
    row::<ops::story::StoryProgression>(),
    row::<ops::story::StoryTimeline>(),
    row::<ops::story::StoryKnows>(),
    row::<ops::story::StoryMet>(),
    row::<ops::story::StoryRelations>(),
    row::<ops::story::StoryReport>(),
    row::<ops::lint::Lint>(),
    row::<ops::append::Append>(),
    row::<ops::write::Write>(),
    row::<ops::commit::Commit>(),
    row::<ops::amend::Amend>(),
    row::<ops::restore::Restore>(),
    row::<ops::remove::Remove>(),
    row::<ops::publish::Publish>(),
    row::<ops::move_file::Move>(),
    row::<ops::split::Split>(),
    row::<ops::log::Log>(),
    row::<ops::show::Show>(),
    row::<ops::diff::Diff>(),
    row::<ops::blame::Blame>(),
    row::<ops::verify::Verify>(),
    row::<ops::head::Head>(),
    row::<ops::head::KeyNew>(),
    row::<ops::head::KeyShow>(),
    row::<ops::doctor::Doctor>(),
    row::<ops::history::HistoryPrune>(),
    row::<ops::capture::CaptureCommand>(),
    row::<ops::contract::ContractShow>(),
    row::<ops::contract::ContractSchema>(),
    row::<ops::profile::ProfileList>(),
    row::<ops::profile::ProfileShow>(),
    row::<ops::profile::ProfileEject>(),
    row::<ops::lease::LeaseTake>(),
    row::<ops::lease::LeaseRenew>(),
    row::<ops::lease::LeaseRelease>(),
    row::<ops::lease::LeaseList>(),
    row::<ops::trust::Trust>(),
    row::<ops::git::GitSetup>(),
    row::<ops::git::GitMerge>(),
    row::<ops::sync::Sync>(),
    row::<ops::checkout::Checkout>(),
    row::<ops::store::StorePush>(),
    row::<ops::store::StorePull>(),
    row::<ops::store::StoreStatus>(),
    row::<ops::store::StoreMigrate>(),
    row::<ops::store::StoreRoles>(),
    row::<ops::import::Import>(),
    row::<ops::integrate::Integrate>(),
    row::<ops::eject::Eject>(),
    row::<ops::self_check::SelfCheck>(),
    row::<ops::serve::Serve>(),
    row::<ops::mcp::Mcp>(),
    row::<ops::hook::Hook>(),
    row::<ops::memory_tool::MemoryTool>(),
    row::<ops::shell::Completions>(),
    row::<ops::shell::Man>(),
    row::<ops::demo::Demo>(),
];
