//! A conversation with a model, independent of any provider's format.

use crate::outcome::Usage;
use serde_json::Value;

/// One message.
#[derive(Clone, Debug)]
pub enum Said {
    User(String),
    Assistant { text: String, calls: Vec<ToolCall> },
    Results(Vec<ToolResult>),
}

/// A tool call of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON, as the model wrote it.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub id: String,
    pub text: String,
    pub failed: bool,
}

/// A tool offered to the model.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    pub parameters: Value,
}

/// One complete answer of the model.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    pub end: End,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Turn,
    Length,
    Refusal,
}

/// The effect of one stream event.
pub enum Step {
    More,
    /// The answer is complete.
    Done,
    /// The server reports a failure.
    Failed(String),
    /// The event does not belong to the API.
    Garbage,
}

/// Assembles an answer from the events of a stream.
pub trait Assembly {
    fn take(&mut self, data: &str) -> Step;
    /// Whether the stream may end here.
    fn is_whole(&self) -> bool;
    fn finish(self: Box<Self>) -> Reply;
}
