//! The words of `quipu check`, in both languages.

use quipu_claims::{Asked, SceneEvidence, Verdict};
use quipu_contract::Language;
use quipu_protocol::{Checking, Kept, Unwaived};
use quipu_recall::Tier;

use crate::answer::count;

/// Says what was judged, by whom, and what nobody has judged. `asked` names the text as in the
/// command line.
pub fn summary(checking: &Checking, asked: &str, language: Language) -> Vec<String> {
    let counts = Counts::of(checking);
    let mut lines = vec![match language {
        Language::En => counts.in_english(),
        Language::Zh => counts.in_chinese(),
    }];
    let total = counts.claims;
    if total == 0 {
        return lines;
    }
    let hit = |of: fn(&quipu_claims::Checked) -> Asked| {
        let claims = checking.claims.iter();
        claims.filter(|claim| of(claim) == Asked::Hit).count()
    };
    let (memory, manuscripts) = (hit(|claim| claim.l1), hit(|claim| claim.l2));
    lines.push(match language {
        Language::En => {
            format!(
                "evidence: memory has some for {memory} of {total}, manuscripts for {manuscripts}"
            )
        }
        Language::Zh => {
            format!("依据：{total} 条中，记忆有 {memory} 条的，定稿有 {manuscripts} 条的")
        }
    });
    if checking.by_rules == 0 && counts.judged == 0 {
        lines.push(match language {
            Language::En => {
                "memory has no fact that rules can read: write one as `key: value` below \
                             the name of its owner, such as `- handed: left`"
                    .to_owned()
            }
            Language::Zh => {
                "记忆里没有规则能读的事实：在所属的人或物的标题下写成“键：值”，例如“- 惯用手：左”"
                    .to_owned()
            }
        });
    }
    if counts.is_open() {
        lines.push(match (language, checking.has_sources) {
            (Language::En, true) => format!("to let a model judge: quipu check {asked} --prompt"),
            (Language::Zh, true) => format!("交给模型判断：quipu check {asked} --prompt"),
            (Language::En, false) => {
                "there is nothing to judge by: memory has no facts, and no chapter is final"
                    .to_owned()
            }
            (Language::Zh, false) => "无从判断：记忆里没有事实，也没有定稿".to_owned(),
        });
    }
    lines
}

/// How many claims were judged, and how many scenes by a model.
struct Counts {
    claims: usize,
    conflicts: usize,
    consistent: usize,
    by_rules: usize,
    scenes: usize,
    judged: usize,
    judges: Vec<String>,
}

impl Counts {
    fn of(checking: &Checking) -> Counts {
        let claims = &checking.claims;
        let mut judges = Vec::new();
        let mut judged = 0;
        for asked in &checking.scenes {
            if let Some(judge) = checking.judged.get(&asked.scene.number) {
                judged += 1;
                if !judges.contains(judge) {
                    judges.push(judge.clone());
                }
            }
        }
        let agrees = claims
            .iter()
            .filter(|one| one.verdict == Verdict::Consistent);
        Counts {
            claims: claims.len(),
            conflicts: checking.conflicts.len(),
            consistent: agrees.count(),
            by_rules: checking.ruled,
            scenes: checking.scenes.len(),
            judged,
            judges,
        }
    }

    /// Whether there are claims that neither rules nor a model have judged.
    fn is_open(&self) -> bool {
        self.by_rules < self.claims && self.judged < self.scenes
    }

    fn in_english(&self) -> String {
        let claims = count(self.claims, "claim");
        let found = match (self.conflicts, self.consistent) {
            (0, 0) if self.is_open() => String::new(),
            (0, 0) => "no conflict found; ".to_owned(),
            (0, consistent) => format!("no conflict found, {consistent} consistent; "),
            (conflicts, 0) => format!("{}; ", count(conflicts, "conflict")),
            (conflicts, consistent) => {
                format!(
                    "{}, {consistent} consistent; ",
                    count(conflicts, "conflict")
                )
            }
        };
        let rules = match self.by_rules {
            0 => "rules could judge none".to_owned(),
            all if all == self.claims => "rules judged all".to_owned(),
            some => format!("rules could judge {some}"),
        };
        let (judges, open) = (self.judges.join(", "), self.claims - self.by_rules);
        let models = match (self.judged, self.scenes) {
            _ if open == 0 && self.judged == 0 => String::new(),
            (0, _) if self.by_rules == 0 => ", and no model has judged the text".to_owned(),
            (0, _) => format!(", and no model has judged the other {open}"),
            (judged, scenes) if judged == scenes => {
                format!(", and a model has judged every scene ({judges})")
            }
            (judged, scenes) => {
                format!(", and a model has judged {judged} of {scenes} scenes ({judges})")
            }
        };
        match self.claims {
            0 => "no sentence to check".to_owned(),
            _ => format!("{claims}: {found}{rules}{models}"),
        }
    }

    fn in_chinese(&self) -> String {
        let found = match (self.conflicts, self.consistent) {
            (0, 0) if self.is_open() => String::new(),
            (0, 0) => "未发现冲突；".to_owned(),
            (0, consistent) => format!("未发现冲突，{consistent} 条相符；"),
            (conflicts, 0) => format!("{conflicts} 处冲突；"),
            (conflicts, consistent) => format!("{conflicts} 处冲突，{consistent} 条相符；"),
        };
        let rules = match self.by_rules {
            0 => "规则一条也判不了".to_owned(),
            all if all == self.claims => "规则全部判过".to_owned(),
            some => format!("规则能判 {some} 条"),
        };
        let (judges, open) = (self.judges.join("、"), self.claims - self.by_rules);
        let models = match (self.judged, self.scenes) {
            _ if open == 0 && self.judged == 0 => String::new(),
            (0, _) if self.by_rules == 0 => "，也没有模型判过".to_owned(),
            (0, _) => format!("，其余 {open} 条没有模型判过"),
            (judged, scenes) if judged == scenes => format!("，每个场景都有模型判过（{judges}）"),
            (judged, scenes) => format!("，{scenes} 个场景中有 {judged} 个由模型判过（{judges}）"),
        };
        match self.claims {
            0 => "没有可查的句子".to_owned(),
            _ => format!("{} 条说法：{found}{rules}{models}", self.claims),
        }
    }
}

/// Renders a conflict: both places, both texts, the reason.
pub fn render_conflict(conflict: &Unwaived, language: Language) -> String {
    let Unwaived {
        id,
        at,
        claim,
        against,
        evidence,
        tier,
        level,
        confidence,
        judge,
        why,
        kept,
    } = conflict;
    let verb = match (language, conflict.is_old()) {
        (Language::En, false) => "conflict",
        (Language::En, true) => "old     ",
        (Language::Zh, false) => "冲突",
        (Language::Zh, true) => "旧判断",
    };
    let tier = match *tier {
        "L2" => tier_name(Tier::L2, language),
        _ => tier_name(Tier::L1, language),
    };
    let level = level.map(|name| format!(" [{}]", level_name(name, language)));
    let level = level.unwrap_or_default();
    let kept = match kept {
        None => String::new(),
        Some(kept) => format!("    {}\n", since(kept, language)),
    };
    format!(
        "{verb}  {at} ⇄ {against}  {tier}{level}  {confidence:.2}  {judge}  {id}\n    {claim}\n    {evidence}\n    {why}\n{kept}"
    )
}

/// States where a judgement is kept, and whether its scene is the same.
pub fn since(kept: &Kept, language: Language) -> String {
    let at = &kept.at;
    match (language, kept.old) {
        (Language::En, false) => format!("judged before, {at}; the scene has not changed since"),
        (Language::En, true) => format!("judged before, {at}; the scene has changed since"),
        (Language::Zh, false) => format!("先前的判断，见 {at}；此后场景未改"),
        (Language::Zh, true) => format!("先前的判断，见 {at}；此后场景已改"),
    }
}

fn tier_name(tier: Tier, language: Language) -> &'static str {
    match (tier, language) {
        (Tier::L2, Language::En) => "manuscript",
        (Tier::L2, Language::Zh) => "定稿",
        (_, Language::En) => "memory",
        (_, Language::Zh) => "记忆",
    }
}

fn level_name(name: &str, language: Language) -> &str {
    match (language, name) {
        (Language::Zh, "premise") => "前提",
        (Language::Zh, "arc") => "弧",
        (Language::Zh, "chapter") => "章",
        (Language::Zh, "scene") => "场景",
        (_, name) => name,
    }
}

/// Lists the evidence of a scene.
pub fn render_scene(here: &str, asked: &SceneEvidence, language: Language) -> String {
    let scene = &asked.scene;
    if asked.evidence.is_empty() {
        return String::new();
    }
    let (number, first, last) = (scene.number, scene.first_line, scene.last_line);
    let mut text = match language {
        Language::En => {
            let claims = count(scene.claims.len(), "claim");
            format!("scene {number}  {here}:{first}-{last}  {claims}\n")
        }
        Language::Zh => {
            let claims = scene.claims.len();
            format!("场景 {number}  {here}:{first}-{last}  {claims} 条说法\n")
        }
    };
    for one in &asked.evidence {
        let tier = tier_name(one.tier, language);
        let level = one
            .level
            .map(|level| format!(" [{}]", level_name(level.name(), language)))
            .unwrap_or_default();
        let about = match (one.about.as_str(), language) {
            ("", _) => String::new(),
            (about, Language::En) => format!("{about}: "),
            (about, Language::Zh) => format!("{about}："),
        };
        let holds = one
            .holds
            .as_ref()
            .map(|holds| format!("({holds}) "))
            .unwrap_or_default();
        text.push_str(&format!(
            "    - {} {tier}{level}  {holds}{about}{}\n",
            one.at, one.text
        ));
    }
    text
}
