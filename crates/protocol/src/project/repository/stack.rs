//! Derives the stack of a project from the manifests of its build tools.
//!
//! The manifests are untrusted: only plain names are taken from them.

use std::path::Path;

use quipu_contract::Language;
use serde_json::Value;

use super::{load_text, plain_name};

/// At most this many packages and scripts are named.
const MOST_NAMES: usize = 6;

/// The content of a manifest: version or edition, dependencies, scripts.
#[derive(Debug, Default)]
struct ProjectFacts {
    version: Option<String>,
    needs: Vec<String>,
    scripts: Vec<String>,
}

type Reader = fn(&str) -> ProjectFacts;

/// Known manifests, their stacks and their parsers.
const MANIFESTS: [(&str, &str, Reader); 20] = [
    ("Cargo.toml", "Rust", read_cargo),
    ("package.json", "Node.js", read_package),
    ("tsconfig.json", "TypeScript", |_| ProjectFacts::default()),
    ("deno.json", "Deno", |_| ProjectFacts::default()),
    ("pyproject.toml", "Python", read_pyproject),
    ("requirements.txt", "Python", read_requirements),
    ("setup.py", "Python", |_| ProjectFacts::default()),
    ("go.mod", "Go", read_go),
    ("pom.xml", "Java, Maven", |_| ProjectFacts::default()),
    ("build.gradle", "Java, Gradle", |_| ProjectFacts::default()),
    ("build.gradle.kts", "Kotlin, Gradle", |_| {
        ProjectFacts::default()
    }),
    ("Gemfile", "Ruby", |_| ProjectFacts::default()),
    ("composer.json", "PHP", |text| ProjectFacts {
        scripts: Vec::new(),
        ..read_package(text)
    }),
    ("mix.exs", "Elixir", |_| ProjectFacts::default()),
    ("Package.swift", "Swift", |_| ProjectFacts::default()),
    ("pubspec.yaml", "Dart", |_| ProjectFacts::default()),
    ("CMakeLists.txt", "C and C++, CMake", |_| {
        ProjectFacts::default()
    }),
    ("Makefile", "make", |_| ProjectFacts::default()),
    ("Dockerfile", "Docker", |_| ProjectFacts::default()),
    ("docker-compose.yml", "Docker Compose", |_| {
        ProjectFacts::default()
    }),
];

/// One line per existing manifest, with its file.
pub(super) fn describe_stack(root: &Path, language: Language) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (file, what, read) in MANIFESTS {
        let Some(text) = load_text(root, file) else {
            continue;
        };
        lines.push((file.to_owned(), render(file, what, &read(&text), language)));
    }
    lines
}

fn render(file: &str, what: &str, told: &ProjectFacts, language: Language) -> String {
    let version = told
        .version
        .as_deref()
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    let names = |names: &[String]| {
        let shown: Vec<&str> = names.iter().filter_map(|name| plain_name(name)).collect();
        let more = shown.len().saturating_sub(MOST_NAMES);
        let joined = shown[..shown.len() - more].join(if language == Language::Zh {
            "、"
        } else {
            ", "
        });
        match (shown.is_empty(), more, language) {
            (true, ..) => None,
            (_, 0, _) => Some(joined),
            (_, more, Language::En) => Some(format!("{joined} and {more} more")),
            (_, more, Language::Zh) => Some(format!("{joined}，另有 {more} 项")),
        }
    };
    let (needs, scripts) = (names(&told.needs), names(&told.scripts));
    match language {
        Language::En => {
            let needs = needs.map(|needs| format!(": {needs}")).unwrap_or_default();
            let scripts = scripts
                .map(|scripts| format!("; scripts: {scripts}"))
                .unwrap_or_default();
            format!("- {what}{version} ({file}){needs}{scripts}")
        }
        Language::Zh => {
            let needs = needs.map(|needs| format!("：{needs}")).unwrap_or_default();
            let scripts = scripts
                .map(|scripts| format!("；脚本：{scripts}"))
                .unwrap_or_default();
            format!("- {what}{version}（{file}）{needs}{scripts}")
        }
    }
}

fn keys(value: Option<&toml::Value>) -> Vec<String> {
    value
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

fn read_cargo(text: &str) -> ProjectFacts {
    let Ok(manifest) = text.parse::<toml::Table>() else {
        return ProjectFacts::default();
    };
    let package = manifest.get("package");
    let edition = package.and_then(|package| package.get("edition")?.as_str());
    let mut needs = keys(manifest.get("dependencies"));
    needs.extend(keys(
        manifest
            .get("workspace")
            .and_then(|workspace| workspace.get("dependencies")),
    ));
    ProjectFacts {
        version: edition
            .and_then(plain_name)
            .map(|edition| format!("edition {edition}")),
        needs,
        scripts: Vec::new(),
    }
}

fn read_package(text: &str) -> ProjectFacts {
    let Ok(manifest) = serde_json::from_str::<Value>(text) else {
        return ProjectFacts::default();
    };
    let keys = |name: &str| {
        manifest
            .get(name)
            .and_then(Value::as_object)
            .map(|keys| keys.keys().cloned().collect::<Vec<_>>())
    };
    let mut needs = keys("dependencies").unwrap_or_default();
    needs.extend(keys("require").unwrap_or_default());
    needs.extend(keys("devDependencies").unwrap_or_default());
    ProjectFacts {
        version: None,
        needs,
        scripts: keys("scripts").unwrap_or_default(),
    }
}

fn read_pyproject(text: &str) -> ProjectFacts {
    let Ok(manifest) = text.parse::<toml::Table>() else {
        return ProjectFacts::default();
    };
    let project = manifest.get("project");
    let listed = project.and_then(|project| project.get("dependencies")?.as_array());
    let mut needs: Vec<String> = listed
        .into_iter()
        .flatten()
        .filter_map(|need| package_of(need.as_str()?))
        .collect();
    let poetry = manifest
        .get("tool")
        .and_then(|tool| tool.get("poetry")?.get("dependencies"));
    needs.extend(keys(poetry).into_iter().filter(|name| name != "python"));
    let version = project.and_then(|project| project.get("requires-python")?.as_str());
    let plain = |version: &&str| {
        version.len() <= 20
            && version
                .chars()
                .all(|c| c.is_ascii_digit() || ".,<>=!~* ".contains(c))
    };
    ProjectFacts {
        version: version.filter(plain).map(str::to_owned),
        needs,
        scripts: keys(project.and_then(|project| project.get("scripts"))),
    }
}

fn read_requirements(text: &str) -> ProjectFacts {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', '-']));
    ProjectFacts {
        needs: lines.filter_map(package_of).collect(),
        ..ProjectFacts::default()
    }
}

/// Extracts `httpx` from `httpx[http2]>=0.27; python_version > "3.8"`.
fn package_of(need: &str) -> Option<String> {
    let end = need
        .find(|c: char| !c.is_alphanumeric() && !"._-".contains(c))
        .unwrap_or(need.len());
    Some(need[..end].to_owned()).filter(|name| !name.is_empty())
}

fn read_go(text: &str) -> ProjectFacts {
    let version = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("go "))
        .and_then(|version| plain_name(version.trim()));
    let needs = text
        .lines()
        .map(|line| line.trim().trim_start_matches("require ").trim())
        .filter(|line| line.contains(" v") && !line.ends_with("// indirect"));
    let needs = needs
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| name.contains('.'))
        .map(str::to_owned)
        .collect();
    ProjectFacts {
        version: version.map(str::to_owned),
        needs,
        scripts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_tell_the_stack() {
        let line = |file: &str, text: &str| {
            let (_, what, read) = MANIFESTS
                .into_iter()
                .find(|(name, ..)| *name == file)
                .unwrap();
            render(file, what, &read(text), Language::En)
        };
        assert_eq!(
            line(
                "Cargo.toml",
                "[package]\nedition = \"2024\"\n[dependencies]\nserde = \"1\"\ntokio = \"1\"\n"
            ),
            "- Rust edition 2024 (Cargo.toml): serde, tokio"
        );
        assert_eq!(
            line(
                "package.json",
                r#"{"dependencies": {"express": "4"}, "scripts": {"test": "rm -rf /", "x`y": ""}}"#
            ),
            "- Node.js (package.json): express; scripts: test"
        );
        assert_eq!(
            line(
                "pyproject.toml",
                "[project]\nrequires-python = \">=3.11\"\ndependencies = [\"httpx[http2]>=0.27\", \"rich\"]\n"
            ),
            "- Python >=3.11 (pyproject.toml): httpx, rich"
        );
        assert_eq!(
            line(
                "go.mod",
                "module x.org/y\n\ngo 1.22\n\nrequire (\n\tgithub.com/a/b v1.0.0\n\tgithub.com/c/d v1 // indirect\n)\n"
            ),
            "- Go 1.22 (go.mod): github.com/a/b"
        );
        for (file, _, read) in MANIFESTS {
            for broken in ["", "{", "[", "\u{0}", "= \"\n\n{{"] {
                let _ = (file, read(broken));
            }
        }
    }
}
