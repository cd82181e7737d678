//! One assignment for an agent: the brief, the folders and the limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One piece of work for one agent.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The prompt.
    pub brief: String,
    /// The prompt with the whole view inside it, for agents that have no files.
    pub inline: Option<String>,
    /// The folder the agent may read.
    pub view: PathBuf,
    /// The folder the agent may write.
    pub out: PathBuf,
    /// The files expected in `out`, as relative paths. Without any, the final message is the
    /// result.
    pub outputs: Vec<String>,
    /// For outputs that end with a marker: the accepted last lines. An output with another last
    /// line is incomplete.
    pub last_lines: BTreeMap<String, Vec<String>>,
    /// The agent's identity, for its environment.
    pub names: Names,
    /// Time limit of all turns together.
    pub deadline: Duration,
    /// The folder for the transcript and the record of the sandbox.
    pub record: PathBuf,
    /// The command line of an MCP server for the agent's host.
    pub mcp: Option<Vec<String>>,
    /// The questions that the runtime answers while the agent works: `ask`, `check`.
    pub questions: Vec<String>,
    /// Folders that the agent's program must not reach even if they lie inside a system folder: the
    /// project.
    pub keep_out: Vec<PathBuf>,
    /// The language of the few lines that an adapter adds to the brief.
    pub language: Language,
    /// How much an agent may produce.
    pub bounds: Bounds,
}

/// The names that the agent's environment carries (`QUIPU_ROLE` and so on).
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub role: String,
    pub unit: Option<String>,
    pub agent: Option<String>,
    pub attempt: String,
}

/// The language of the text that an adapter adds to the brief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

/// Limits on an agent. Beyond them it is stopped or its output is dropped. In bytes, except
/// `tasks`.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Size of the transcript on disk. Further bytes are counted but not stored.
    pub transcript: u64,
    /// Size of one file that the agent's program writes.
    pub file: u64,
    /// Total size of the out folder.
    pub out: u64,
    /// Total size of the private home, including temporary files.
    pub home: u64,
    /// Memory of all processes of the program together.
    pub memory: u64,
    /// Number of processes and threads of the program that exist at once.
    pub tasks: u64,
    /// Size of the final message.
    pub message: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            transcript: 8 << 20,
            file: 256 << 20,
            out: 512 << 20,
            home: 4 << 30,
            memory: 8 << 30,
            tasks: 4096,
            message: 4 << 20,
        }
    }
}

impl Assignment {
    /// Returns the brief with the folders named, for an agent that works on files. `told` names the
    /// agent's other means.
    pub(crate) fn placed_brief(&self, told: &str) -> String {
        let mut text = self.brief.trim_end().to_string();
        let (read, write, message) = match self.language {
            Language::English => (
                "The files to read are in this folder",
                "Write each output to exactly this path",
                "Write no file. Your final message is the result.",
            ),
            Language::Chinese => (
                "要读的文件都在这个文件夹下",
                "每个产出必须写到下列路径",
                "不要写文件。你的最后一条消息就是结果。",
            ),
        };
        let colon = if self.language == Language::Chinese {
            "："
        } else {
            ": "
        };
        text.push_str(&format!("\n\n{read}{colon}`{}`\n", self.view.display()));
        text.push_str(told);
        if self.outputs.is_empty() {
            text.push_str(&format!("{message}\n"));
        } else {
            for output in &self.outputs {
                text.push_str(&format!(
                    "{write}{colon}`{}`\n",
                    self.out.join(output).display()
                ));
            }
        }
        text
    }

    /// Returns the message that sends faulty work back to the agent.
    pub(crate) fn returned(&self, fault: &str) -> String {
        let fault = fault.trim();
        match self.language {
            Language::English => {
                format!(
                    "Your output was checked and not accepted:\n\n{fault}\n\nFix exactly this. \
                     All other requirements still apply."
                )
            }
            Language::Chinese => {
                format!("你的产出经检查未通过：\n\n{fault}\n\n请只修正这一点。其余要求不变。")
            }
        }
    }

    /// Returns the environment variables that give a program its identity and its folders.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let folder = |path: &Path| path.display().to_string();
        let mut pairs = vec![
            ("QUIPU_ROLE".to_string(), self.names.role.clone()),
            ("QUIPU_ATTEMPT".to_string(), self.names.attempt.clone()),
            ("QUIPU_VIEW".to_string(), folder(&self.view)),
            ("QUIPU_OUT".to_string(), folder(&self.out)),
        ];
        pairs.extend(
            self.names
                .unit
                .iter()
                .map(|unit| ("QUIPU_UNIT".to_string(), unit.clone())),
        );
        pairs.extend(
            self.names
                .agent
                .iter()
                .map(|agent| ("QUIPU_AGENT".to_string(), agent.clone())),
        );
        pairs
    }
}
