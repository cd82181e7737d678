//! Answers about scenes that somebody saved: one file, stdin, or a folder with `scene-N.json`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use quipu_claims::{Answered, Ruling};
use quipu_contract::Actor;
use quipu_protocol::{Accept, SceneJudge};

use crate::session::Session;

pub struct SavedAnswers<'s> {
    session: &'s Session,
    name: String,
    path: PathBuf,
    /// The scenes that a judgement was asked for, with whether there was an answer.
    asked: RefCell<Vec<(usize, bool)>>,
}

impl<'s> SavedAnswers<'s> {
    pub fn at(session: &'s Session, path: &str) -> SavedAnswers<'s> {
        SavedAnswers {
            session,
            name: match (&session.actor, path) {
                (
                    Actor::Agent {
                        agent: Some(agent), ..
                    },
                    _,
                ) => agent.to_string(),
                (_, "-") => "answers:stdin".to_owned(),
                // The name of the file: a record of the project names no folder of one machine.
                _ => match Path::new(path).file_name() {
                    Some(name) => format!("answers:{}", name.to_string_lossy()),
                    None => "answers".to_owned(),
                },
            },
            path: path.into(),
            asked: RefCell::default(),
        }
    }

    /// Names the scenes that nobody has answered.
    pub fn unanswered(&self) -> Option<String> {
        let asked = self.asked.borrow();
        let missing = asked.iter().filter(|(_, is_answered)| !is_answered);
        let numbers: Vec<String> = missing.map(|(scene, _)| scene.to_string()).collect();
        (!numbers.is_empty()).then(|| {
            format!(
                "not judged, without an answer in {}: scene {}",
                self.path.display(),
                numbers.join(", ")
            )
        })
    }
}

impl SceneJudge for SavedAnswers<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn answered(&self) -> Answered {
        Answered::Earlier
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
        let is_answered = !is_folder || self.session.folder.join(&file).exists();
        let mut asked = self.asked.borrow_mut();
        if !is_folder && !asked.is_empty() {
            return Err(format!(
                "{} answers one question, and the draft has several: name its scene with \
                 --scene N, or save each answer as FOLDER/scene-N.json",
                file.display()
            ));
        }
        asked.push((scene, is_answered));
        if !is_answered {
            return Ok(None);
        }
        let loaded = match file.as_os_str() == "-" {
            true => self.session.load_stdin(),
            false => self.session.load_file(&file),
        };
        let bytes = loaded.map_err(|failure| failure.what)?;
        let named = |fault: String| format!("{}: {fault}", file.display());
        accept(&String::from_utf8_lossy(&bytes))
            .map(Some)
            .map_err(named)
    }
}
