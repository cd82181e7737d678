//! The `lease` commands: take, renew, release and list leases. The store grants them.

use clap::Args;
use quipu_contract::{Actor, Language};
use quipu_protocol::{Project, ReadScope};
use quipu_store::{Lease, LeaseToken, Who};
use serde_json::json;

use crate::answer::{Answer, Failure, in_language};
use crate::session::Session;
use crate::table::Operate;

/// Long enough for one agent's call, short enough that a dead agent does not block a day.
const DEFAULT_SECONDS: u64 = 15 * 60;

/// The store's limit without renewal.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;

#[derive(Debug, Args)]
pub struct LeaseTake {
    /// The paths to reserve; wildcards allowed
    #[arg(required = true)]
    paths: Vec<String>,
    /// The duration in seconds; at most one day
    #[arg(long = "for", value_name = "SECONDS", default_value_t = DEFAULT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=LONGEST_SECONDS))]
    seconds: u64,
}

impl Operate for LeaseTake {
    const NAME: &'static str = "lease take";
    const ABOUT: &'static str = "Take a lease; prints ID:FENCE for --lease";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let lease = project
            .store
            .take_lease(&session.actor, &self.paths, self.seconds)?;
        Ok(told(&lease).say(held(project.contract.language, &lease)))
    }
}

#[derive(Debug, Args)]
pub struct LeaseRenew {
    /// The lease, as `lease take` printed it
    #[arg(value_name = "ID:FENCE")]
    token: String,
    /// The duration from now, in seconds; at most one day
    #[arg(long = "for", value_name = "SECONDS", default_value_t = DEFAULT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=LONGEST_SECONDS))]
    seconds: u64,
}

impl Operate for LeaseRenew {
    const NAME: &'static str = "lease renew";
    const ABOUT: &'static str = "Extend a lease";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let token = parse(&self.token)?;
        let project = session.project()?;
        let lease = project
            .store
            .renew_lease(&session.actor, &token, self.seconds)?;
        Ok(told(&lease).say(held(project.contract.language, &lease)))
    }
}

#[derive(Debug, Args)]
pub struct LeaseRelease {
    /// The lease, as `lease take` printed it; people may omit the fence number
    #[arg(value_name = "ID[:FENCE]")]
    token: String,
}

impl Operate for LeaseRelease {
    const NAME: &'static str = "lease release";
    const ABOUT: &'static str = "Release a lease";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let (id, fence) = match LeaseToken::parse(&self.token) {
            Some(token) => (token.id, Some(token.fence)),
            None => (self.token, None),
        };
        let project = session.project()?;
        let lease = project.store.release_lease(&session.actor, &id, fence)?;
        Ok(told(&lease).say(in_language(project.contract.language, "released", "已释放")))
    }
}

#[derive(Debug, Args)]
pub struct LeaseList {}

impl Operate for LeaseList {
    const NAME: &'static str = "lease list";
    const ABOUT: &'static str = "List current leases";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let leases = shown_leases(&*session.project()?, &session.actor)?;
        let text = leases
            .iter()
            .map(|l| {
                format!(
                    "{}  {}  until {}  {}\n",
                    l.token(),
                    l.holder,
                    l.until,
                    l.paths.join(" ")
                )
            })
            .collect::<String>();
        let answer = Answer::new(
            json!(leases.iter().map(described).collect::<Vec<_>>()),
            text,
        );
        Ok(if leases.is_empty() {
            answer.say("no leases")
        } else {
            answer
        })
    }
}

/// Returns the leases that an actor may see: its own, and those on files that it reads.
pub fn shown_leases(project: &Project, actor: &Actor) -> Result<Vec<Lease>, Failure> {
    let (scope, own) = (ReadScope::of(project, actor), Who::from(actor));
    let mut leases = project.store.leases()?;
    leases.retain(|lease| lease.holder == own || scope.names_all(&lease.paths));
    Ok(leases)
}

fn parse(text: &str) -> Result<LeaseToken, Failure> {
    LeaseToken::parse(text)
        .ok_or_else(|| Failure::usage(format!("`{text}` is not a lease"), "quipu lease list"))
}

fn held(language: Language, lease: &Lease) -> String {
    in_language(
        language,
        format!("held until {}", lease.until),
        format!("租约至 {}", lease.until),
    )
}

fn told(lease: &Lease) -> Answer {
    Answer::new(described(lease), lease.token().to_string())
}

/// Returns the public fields of a lease; its other fields are private to the store.
pub fn described(lease: &Lease) -> serde_json::Value {
    json!({
        "token": lease.token().to_string(),
        "holder": lease.holder,
        "paths": lease.paths,
        "until": lease.until,
    })
}
