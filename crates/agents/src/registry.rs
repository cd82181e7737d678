//! Resolves a name to an agent.

use crate::acp::AcpAgent;
use crate::adapter::Adapter;
use crate::command::CommandAgent;
use crate::host::{HostError, Hosts, Via};
use crate::http::HttpAgent;
use crate::person::PersonAgent;
use crate::sandbox::Sandbox;

/// The caller's settings, independent of the host.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The model to request, if the host allows a choice.
    pub model: Option<String>,
    pub sandbox: Sandbox,
}

/// Resolves a name to its agent. Agents without a host (a rehearsal) implement [`Adapter`]
/// elsewhere.
pub fn resolve_agent(
    name: &str,
    hosts: &Hosts,
    setting: &Setting,
) -> Result<Box<dyn Adapter>, HostError> {
    let host = hosts.resolve(name)?;
    let (name, model, sandbox) = (
        name.to_string(),
        setting.model.clone(),
        setting.sandbox.clone(),
    );
    Ok(match host.via {
        Via::Command => Box::new(CommandAgent {
            name,
            host,
            model,
            sandbox,
        }),
        Via::Acp => Box::new(AcpAgent {
            name,
            host,
            model,
            sandbox,
        }),
        Via::Http => Box::new(HttpAgent::new(name, host, model)?),
        Via::Person => Box::new(PersonAgent { name }),
    })
}
