//! The table of operations: everything Quipu does, once, whatever the door.
//!
//! An operation's arguments are one type. The command line is derived from it, and so is the
//! schema that other doors offer.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::answer::{Answer, Failure};
use crate::ops;
use crate::session::Session;

/// One thing that can be done.
pub trait Operate: Args + FromArgMatches {
    /// `append`, or two words for a command of a group: `lease take`.
    const NAME: &'static str;
    const ABOUT: &'static str;

    fn operate(self, session: &Session) -> Result<Answer, Failure>;
}

/// A row of the table.
pub struct Operation {
    pub name: &'static str,
    pub about: &'static str,
    pub augment: fn(Command) -> Command,
    pub call: fn(&ArgMatches, &Session) -> Result<Answer, Failure>,
}

const fn row<T: Operate>() -> Operation {
    Operation { name: T::NAME, about: T::ABOUT, augment: T::augment_args, call: call::<T> }
}

fn call<T: Operate>(matches: &ArgMatches, session: &Session) -> Result<Answer, Failure> {
    let arguments = T::from_arg_matches(matches).map_err(|e| Failure::usage(e.to_string(), ""))?;
    arguments.operate(session)
}

/// The groups of two-word operations, with what they are about.
pub const GROUPS: [(&str, &str); 4] = [
    ("contract", "The resolved rules of a project"),
    ("profile", "The built-in profiles"),
    ("lease", "The right to write some paths for longer than one commit"),
    ("git", "Merging branches of memory"),
];

/// Every operation, in the order that help shows.
pub const TABLE: &[Operation] = &[
    row::<ops::init::Init>(),
    row::<ops::status::Status>(),
    row::<ops::view::View>(),
    row::<ops::brief::Brief>(),
    row::<ops::read::Read>(),
    row::<ops::recall::Recall>(),
    row::<ops::ask::Ask>(),
    row::<ops::check::Check>(),
    row::<ops::waive::Waive>(),
    row::<ops::learn::Learn>(),
    row::<ops::links::Links>(),
    row::<ops::threads::Threads>(),
    row::<ops::tension::Tension>(),
    row::<ops::lint::Lint>(),
    row::<ops::append::Append>(),
    row::<ops::write::Write>(),
    row::<ops::commit::Commit>(),
    row::<ops::amend::Amend>(),
    row::<ops::restore::Restore>(),
    row::<ops::remove::Remove>(),
    row::<ops::move_file::Move>(),
    row::<ops::split::Split>(),
    row::<ops::log::Log>(),
    row::<ops::show::Show>(),
    row::<ops::diff::Diff>(),
    row::<ops::blame::Blame>(),
    row::<ops::verify::Verify>(),
    row::<ops::doctor::Doctor>(),
    row::<ops::contract::ContractShow>(),
    row::<ops::contract::ContractSchema>(),
    row::<ops::profile::ProfileList>(),
    row::<ops::profile::ProfileShow>(),
    row::<ops::profile::ProfileEject>(),
    row::<ops::lease::LeaseTake>(),
    row::<ops::lease::LeaseRenew>(),
    row::<ops::lease::LeaseRelease>(),
    row::<ops::lease::LeaseList>(),
    row::<ops::git::GitSetup>(),
    row::<ops::git::GitMerge>(),
    row::<ops::demo::Demo>(),
];
