//! The `dir` setting: moves every path of a profile below one folder before paths are resolved.

use crate::manifest::ProfileFile;
use crate::path::ProjectPath;

/// Parses the folder in `dir`, without a trailing slash.
pub(crate) fn parse_dir(text: &str) -> Result<String, String> {
    let plain = text.trim_start_matches("./").trim_end_matches('/');
    if plain.contains(['*', '?', '{', '}', '[', ']']) {
        return Err(format!("`{text}` is a pattern, not a folder"));
    }
    ProjectPath::parse(plain)
        .map(|path| path.as_str().to_owned())
        .map_err(|error| error.to_string())
}

/// Moves every path of a profile file below a folder.
pub(crate) fn move_below(dir: &str, file: &mut ProfileFile) {
    let below = |path: &mut String| *path = format!("{dir}/{path}");
    file.folders
        .iter_mut()
        .for_each(|folder| below(folder.get_mut()));
    file.files
        .iter_mut()
        .for_each(|rule| below(rule.get_mut().path.get_mut()));
    for role in file.roles.values_mut().map(|role| role.get_mut()) {
        role.read
            .iter_mut()
            .chain(&mut role.deny)
            .for_each(|pointer| below(pointer.get_mut().path.get_mut()));
        role.write
            .iter_mut()
            .for_each(|pointer| below(pointer.get_mut().path.get_mut()));
        role.ask
            .iter_mut()
            .for_each(|pointer| below(pointer.get_mut().path.get_mut()));
        let from = role
            .rehearse
            .as_mut()
            .and_then(|rehearse| rehearse.from.as_mut());
        from.into_iter().for_each(|from| below(from.get_mut()));
    }
    for step in file.steps.iter_mut().map(|step| step.get_mut()) {
        step.reads
            .iter_mut()
            .chain(&mut step.writes)
            .for_each(below);
        let files = step
            .when
            .as_mut()
            .and_then(|when| when.get_mut().files.as_mut());
        files.into_iter().for_each(below);
        if let Some(remember) = step.remember.as_mut().map(|remember| remember.get_mut()) {
            below(&mut remember.from);
            remember
                .items
                .iter_mut()
                .for_each(|item| below(&mut item.to));
            remember
                .text
                .iter_mut()
                .chain(&mut remember.to)
                .for_each(below);
        }
    }
}
