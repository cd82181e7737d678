//! A conversation with a model, free of any provider's form.

use crate::outcome::Usage;
use serde_json::Value;

/// One contribution.
#[derive(Clone, Debug)]
pub enum Said {
    User(String),
    Assistant { text: String, calls: Vec<ToolCall> },
    Results(Vec<ToolResult>),
}

/// A tool that the model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON, as the model wrote it.
    pub arguments: String,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub id: String,
    pub text: String,
    pub failed: bool,
}

/// A tool that is offered.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    pub parameters: Value,
}

/// One answer of the model, whole.
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

/// What an event of a stream amounts to.
pub enum Step {
    More,
    /// The answer is whole.
    Done,
    /// The server says that it failed.
    Failed(String),
    /// The event is none that the interface has.
    Garbage,
}

/// Puts an answer together from the events of a stream.
pub trait Assembly {
    fn take(&mut self, data: &str) -> Step;
    /// Whether the stream may end here.
    fn is_whole(&self) -> bool;
    fn finish(self: Box<Self>) -> Reply;
}
