//! Answers about scenes that somebody saved: one file, or a folder with `scene-N.json`.

use std::path::PathBuf;

use quipu_claims::Ruling;
use quipu_protocol::{Accept, SceneJudge};

use crate::session::Session;

pub struct SavedAnswers<'s> {
    session: &'s Session,
    name: String,
    path: PathBuf,
}

impl<'s> SavedAnswers<'s> {
    pub fn at(session: &'s Session, path: &str) -> SavedAnswers<'s> {
        SavedAnswers {
            session,
            name: format!("answers:{path}"),
            path: path.into(),
        }
    }
}

impl SceneJudge for SavedAnswers<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn judge(
        &self,
        scene: usize,
        _prompt: &str,
        accept: Accept<'_>,
    ) -> Result<Option<Vec<Ruling>>, String> {
        let is_folder = self.session.folder.join(&self.path).is_dir();
        let file = match is_folder {
            true => self.path.join(format!("scene-{scene}.json")),
            false => self.path.clone(),
        };
        // In a folder, a scene without an answer has not been judged yet.
        if is_folder && !self.session.folder.join(&file).exists() {
            return Ok(None);
        }
        let bytes = self
            .session
            .load_file(&file)
            .map_err(|failure| failure.what)?;
        let named = |fault: String| format!("{}: {fault}", file.display());
        accept(&String::from_utf8_lossy(&bytes))
            .map(Some)
            .map_err(named)
    }
}
