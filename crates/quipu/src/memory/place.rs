//! Maps `/memories/…` to a path of the project.

use quipu_contract::ProjectPath;

use super::command::ToolError;

/// Resolves a place below the folder; `None` is the folder itself.
pub fn resolve(folder: &ProjectPath, path: &str) -> Result<Option<ProjectPath>, ToolError> {
    let Some(rest) = path.strip_prefix("/memories") else {
        return Err(ToolError(format!(
            "Path must start with /memories, got: {path}"
        )));
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => {
                return Err(ToolError(format!(
                    "Path {path} would escape /memories directory"
                )));
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    ProjectPath::parse(&format!("{folder}/{}", parts.join("/")))
        .map(Some)
        .map_err(|e| ToolError(e.to_string()))
}
