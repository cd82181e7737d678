//! The six commands of Anthropic's memory tool, on a folder of the project under the contract.
//!
//! Texts and errors are those of the reference (`BetaLocalFilesystemMemoryTool` of the `anthropic`
//! package), because models were trained on them. A refusal by the contract is an error in Quipu's
//! own words.

mod command;
mod place;
mod text;

pub use command::{Command, ToolError, perform};
