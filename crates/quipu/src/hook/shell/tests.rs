//! Tests of the shell analysis: commands, and the deeds or verdicts that they must have.

use std::path::Path;
use std::process::Command;

use quipu_testkit::Playground;

use super::*;
use crate::hook::{DENIED, Event, HookArguments, hear};
use crate::session::{Names, Session};

fn told(command: &str) -> Vec<String> {
    let tell = |deed: Deed| match deed {
        Deed::Change { path } => format!("change {}", path.display()),
        Deed::Grow { path } => format!("grow {}", path.display()),
        Deed::Remove { path } => format!("remove {}", path.display()),
        Deed::Matching { how, name } => format!("{how:?} any {}", shown(&name)),
        other => format!("{other:?}"),
    };
    deeds(command, Path::new("/nowhere"))
        .into_iter()
        .map(tell)
        .collect()
}

#[test]
fn plain_writes_are_seen() {
    for (command, wanted) in [
        ("echo x > a.md", vec!["change a.md"]),
        ("echo x >> 'a b.md' 2>&1", vec!["grow a b.md"]),
        (
            "echo x >|a.md; true 2> err.log",
            vec!["change a.md", "change err.log"],
        ),
        ("make &> log", vec!["change log"]),
        ("echo x >&a.md", vec!["change a.md"]),
        ("make >& 'a b.md' 2>&1; echo 2 >& 1", vec!["change a b.md"]),
        (
            "cat <<'EOF' > a.md\nrm b.md\necho > c\nEOF\nrm d.md",
            vec!["change a.md", "remove d.md"],
        ),
        ("sed -i.bak -e s/a/b/ x y", vec!["change x", "change y"]),
        ("perl -pi -e 's/a/b/' x", vec!["change x"]),
        ("echo x | sudo tee -a 手稿/一.md", vec!["grow 手稿/一.md"]),
        ("rm -rf meta", vec!["remove meta"]),
        (
            "mv a.md b.md",
            vec!["remove a.md", "change b.md/a.md", "change b.md"],
        ),
        (
            "FOO=1 cp a.md b.md",
            vec!["change b.md/a.md", "change b.md"],
        ),
        ("bash -c 'echo x > a.md'", vec!["change a.md"]),
        ("dd if=/dev/zero of=a.md", vec!["change a.md"]),
        ("if true; then rm a.md; fi", vec!["remove a.md"]),
        ("F=a.md; rm \"$F\" b.md", vec!["remove a.md", "remove b.md"]),
        ("rm a.{md,txt}", vec!["remove a.md", "remove a.txt"]),
        ("rm *.md", vec!["Remove any *.md"]),
        ("echo x > $FILE", vec!["Change any …"]),
        // If the folder does not exist, the shell may stay where it was.
        ("cd meta; rm x", vec!["remove x", "remove meta/x"]),
    ] {
        assert_eq!(told(command), wanted, "{command}");
    }
}

#[test]
fn what_writes_nothing_is_no_deed() {
    for command in [
        "sed 's/a/b/' a.md",
        "grep '>' a.md",
        "echo \"a > b\"",
        "cat < a.md",
        "echo done # > a.md",
        "echo x >&2",
        "exec 3>&-",
        "git commit -m 'rm a.md'",
        "[ -f a.md ] && cat a.md",
        "diff <(sort a.md) <(sort b.md)",
    ] {
        assert_eq!(told(command), [""; 0], "{command}");
    }
}

/// A very long command is parsed in bounded time and depth, and hides nothing.
#[test]
fn a_command_full_of_syntax_is_read() {
    for filling in [
        "{}", "{a,b}", "$(", "`", "((", "\"$x", "*?", "$a", "<<A\n", "${", "[", "'", "\\", "$'\\x",
        "eval ",
    ] {
        let command = format!("rm a.md; true {}", filling.repeat(5_000));
        assert!(
            told(&command).contains(&"remove a.md".to_owned()),
            "{filling}"
        );
    }
    // The parser denies these at once, without a deep stack.
    for (open, close) in [
        ("$((", "))"),
        ("${a:-", "}"),
        ("a=(", ")"),
        ("$(", ")"),
        ("((", "))"),
        ("<(", ")"),
        ("@(", ")"),
        ("${a%", "}"),
    ] {
        let command = format!(
            "rm a.md; true {}{}",
            open.repeat(20_000),
            close.repeat(20_000)
        );
        assert!(told(&command).contains(&"remove a.md".to_owned()), "{open}");
    }
    let doubled = format!("F=ab; {} rm a.md", "F=$F$F; ".repeat(200));
    assert!(told(&doubled).contains(&"remove a.md".to_owned()));
    let pattern = Word(
        [
            vec![[Piece::Star, Piece::Char('a')]; 4].concat(),
            vec![Piece::Any; 100_000],
            vec![Piece::Char('x')],
        ]
        .concat(),
    );
    assert!(!pattern.matches(Path::new("/a/b/c.md")));
}

/// Time and memory are bounded. A command beyond the bound is denied.
#[test]
fn a_command_that_does_very_much_is_not_judged() {
    let folders = "cd a;cd b;cd c;cd d;cd e;";
    let many = |one: &str, times: usize| {
        (0..times)
            .map(|at| one.replace('N', &at.to_string()))
            .collect::<String>()
    };
    for command in [
        format!("{folders}{}", many("ln -s bN cN;", 4_000)),
        format!("{folders}{}", many(": >> delegations/N.md;", 4_000)),
        many(
            "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b};",
            2_000,
        ),
        format!("env {} rm x", many("-a xN ", 4_000)),
    ] {
        let told = told(&command);
        assert!(
            told.last().unwrap().starts_with("TooMuch"),
            "{:?}",
            told.last()
        );
        assert!(told.len() < 20_000, "{command:.60}");
    }
    assert!(
        !told(&many("ln -s bN cN; echo x >> cN;", 300))
            .iter()
            .any(|deed| deed.starts_with("TooMuch"))
    );
}

/// A project in a repository with a file of each class; `meta/glossary.md` was changed since the
/// last commit of git.
fn project() -> Playground {
    let play = Playground::local();
    let write = |path: &str, text: &str| {
        let file = play.root().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write(".gitignore", ".quipu/\n");
    write("meta/glossary.md", "- lease\n");
    write("outline.md", "# Outline\n");
    write(
        ".claude/settings.json",
        "{\"hooks\": \"quipu hook stop\"}\n",
    );
    write("src/main.rs", "fn main() {}\n");
    write("new/glossary.md", "gone\n");
    write("list", "notes.txt\noutline.md\n");
    write(
        "fix.diff",
        "--- a/meta/glossary.md\n+++ b/meta/glossary.md\n@@ -1 +1 @@\n-- lease\n+- lock\n",
    );
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
        let done = Command::new("git")
            .arg("-C")
            .arg(play.root())
            .args(identity)
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "x"]);
    write("meta/glossary.md", "- lease\n- fence\n");
    write("src/main.rs", "fn main() { }\n");
    play.open().scan_status().unwrap();
    play
}

fn is_denied(play: &Playground, command: &str) -> bool {
    let agent = Names {
        agent: Some("ada".into()),
        ..Names::default()
    };
    let session = Session::new(play.root().to_owned(), agent, Names::default()).unwrap();
    let call = serde_json::json!({"tool_name": "Bash", "cwd": play.root(), "tool_input": {"command": command}}).to_string();
    let answer = hear(
        Event::PreTool,
        Ok(call),
        HookArguments {
            budget: 1_000,
            in_fields: false,
            is_unheard: false,
        },
        &session,
    );
    assert!(
        answer.exit == DENIED || answer.exit == 0,
        "{command}: exit {}",
        answer.exit
    );
    answer.exit == DENIED
}

/// Ways to write `meta/glossary.md`, which is append-only, `outline.md`, which is sealed, the
/// contract, or the journal.
const DENIED_WRITES: &[&str] = &[
    "echo x > meta/glossary.md",
    "echo x >| meta/glossary.md",
    "echo x &> meta/glossary.md",
    "echo x 1<> meta/glossary.md",
    ": > ./meta/../meta/glossary.md",
    "echo x > \"$PWD/meta/glossary.md\"",
    "echo x > meta/gloss'ary'.md",
    "echo x > meta/$'gloss\\x61ry.md'",
    "echo x > outline.md",
    "cat <<EOF > meta/glossary.md\nx\nEOF",
    "printf x | tee meta/glossary.md",
    "printf x | sudo -u root tee meta/glossary.md > /dev/null",
    "dd if=/dev/null of=meta/glossary.md",
    "truncate -s 0 meta/glossary.md",
    "cp /dev/null meta/glossary.md",
    "cp new/glossary.md meta/",
    "cp -t meta new/glossary.md",
    "cp -r new/. meta",
    "install -m 644 /dev/null meta/glossary.md",
    "rsync new/glossary.md meta/glossary.md",
    "mv new/glossary.md meta/glossary.md",
    "mv meta elsewhere",
    "ln -sf /dev/null meta/glossary.md",
    "ln meta/glossary.md /tmp/second-name",
    "ln -s meta/glossary.md x && echo y > x",
    "ln -s ../outline.md new/y; echo gone > new/y",
    "ln -sT .. new/up; echo gone > new/up/outline.md",
    "cp -l outline.md new/x && echo gone > new/x",
    "rm meta/glossary.md",
    "rm -rf meta",
    "rm -rf ./m*",
    "rm -rf .qui*",
    "unlink outline.md",
    "shred -n 3 outline.md",
    "sed -i s/a/b/ meta/glossary.md",
    "sed -i s/a/b/ meta/*.md",
    "sed -i s/a/b/ */gloss?ry.md",
    "sed -i s/a/b/ meta/[a-h]lossary.md",
    "sed -i s/a/b/ meta/{x,glossary}.md",
    "sed --in-place=.bak s/a/b/ meta/glossary.md",
    "sed -n 'w meta/glossary.md' new/glossary.md",
    "perl -pi -e s/a/b/ meta/glossary.md",
    "perl -e 'open(F, \">meta/glossary.md\")'",
    "awk 'BEGIN { print \"x\" > \"meta/glossary.md\" }'",
    "cd meta && echo x > glossary.md",
    "cd nowhere; echo x > meta/glossary.md",
    "(cd /tmp); echo x > meta/glossary.md",
    // A `cd` that is not run, is run elsewhere, fails, or is taken back.
    "cd new && make && cd - && rm outline.md",
    "cd new && pushd /tmp && popd && cd .. && rm outline.md",
    "D=$(cd new && pwd); rm outline.md",
    "cd new && make & rm outline.md",
    "cd new | cat; rm outline.md",
    "build() { cd new; }; rm outline.md",
    "bash -c 'cd new'; rm outline.md",
    "true || cd /tmp; echo x > quipu.toml",
    "if false; then cd new; fi; rm outline.md",
    "case x in y) cd new;; esac; rm outline.md",
    "cd new extra || rm outline.md",
    "cd {new,meta}; rm outline.md",
    "cd new && cd /tmp && cd - && rm ../outline.md",
    "true || cd /tmp; rm -rf .quipu",
    "env -C meta rm glossary.md",
    "env --chdir=meta rm glossary.md",
    "rm ~+/meta/glossary.md",
    "cd new && rm ~-/outline.md",
    "cd new && rm $OLDPWD/outline.md",
    "rm ${X:-meta/glossary.md}",
    "rm ${X:=meta/glossary.md}",
    "X=meta/glossary.md; rm ${X:-other}",
    "cd meta && apply_patch <<'E'\n*** Begin Patch\n*** Delete File: glossary.md\n*** End Patch\nE",
    "F=meta/glossary.md; echo x > $F",
    "F=meta/glossary.md && rm \"${F}\"",
    "D=meta; rm $D/glossary.md",
    "rm $UNKNOWN/glossary.md",
    "sed -i s/a/b/ meta/$f",
    "rm `echo meta/glossary.md`",
    "rm $(echo meta/glossary.md)",
    "echo $(rm meta/glossary.md)",
    "echo \"$(rm meta/glossary.md)\"",
    "R=rm; $R meta/glossary.md",
    "\\rm meta/glossary.md",
    "/bin/rm meta/glossary.md",
    "timeout 5 nice -n 3 rm meta/glossary.md",
    "env -i A=b rm meta/glossary.md",
    "eval 'rm meta/glossary.md'",
    "eval rm meta/glossary.md",
    "bash -c 'rm meta/glossary.md'",
    "bash <<< 'rm meta/glossary.md'",
    "bash <<'E'\nrm meta/glossary.md\nE",
    "echo 'rm meta/glossary.md' | sh",
    "echo meta/glossary.md | xargs rm",
    "ls meta/glossary.md | xargs -I{} sed -i s/a/b/ {}",
    "find meta -name '*.md' -delete",
    "find . -name glossary.md -exec sed -i s/a/b/ {} +",
    "find meta -type f | xargs rm",
    "for f in meta/*.md; do rm \"$f\"; done",
    "while true; do rm meta/glossary.md; done",
    "f() { rm meta/glossary.md; }; f",
    "true && { echo x > meta/glossary.md; }",
    "tee >(cat > meta/glossary.md) < new/glossary.md",
    "python3 -c \"open('meta/glossary.md','w').write('x')\"",
    "python3 - <<'E'\nfrom pathlib import Path\nPath('meta/glossary.md').write_text('x')\nE",
    "python3 -c \"import os; os.system('rm meta/glossary.md')\"",
    "node -e \"require('fs').writeFileSync('meta/glossary.md', 'x')\"",
    "ruby -e \"File.write('meta/glossary.md', 'x')\"",
    "ed meta/glossary.md",
    "vim -es -c '%d' -c wq meta/glossary.md",
    "curl -o meta/glossary.md https://example.org",
    "wget -O meta/glossary.md https://example.org",
    "sort -o meta/glossary.md new/glossary.md",
    "patch -p1 < fix.diff; patch -p1 -i fix.diff",
    "git apply fix.diff",
    "git checkout -- meta/glossary.md",
    "git checkout HEAD meta/glossary.md",
    "git checkout .",
    "git restore .",
    "git -C meta restore glossary.md",
    "git stash",
    "git checkout -f",
    "git checkout $(git rev-parse HEAD) -- meta/glossary.md",
    "git restore --source=$B meta/glossary.md",
    "git stash -m wip",
    "git apply <<'E'\n--- a/outline.md\n+++ b/outline.md\n@@ -1 +1 @@\n-a\n+b\nE",
    "rsync -a --delete new/ ./",
    "apply_patch '*** Begin Patch\n*** Delete File: outline.md\n*** End Patch'",
    "python3 - x <<'E'\nopen('outline.md','w').write('x')\nE",
    "git switch --discard-changes -",
    "git checkout-index -f -a",
    "git read-tree -u --reset HEAD",
    "git diff --output=outline.md",
    "git archive -o outline.md HEAD",
    "git bundle create outline.md HEAD",
    // The folder of this test may be a hidden one.
    "rm -rf ../* ../.[a-z]*",
    "git stash push -- meta",
    "git reset --hard",
    "git rm meta/glossary.md",
    "git mv meta/glossary.md x.md",
    "git clean -fdx",
    "echo x > quipu.toml",
    "sed -i s/a/b/ .quipu/journal/*.jsonl",
    "rm $D/.quipu/index.db",
    // Blanks are those of a shell alone.
    "echo \r#; rm outline.md",
    "echo \u{a0}#; rm outline.md",
    "echo \u{3000}#; rm outline.md",
    "echo \u{c}#; rm outline.md",
    // Commands in here-documents and arithmetic.
    "cat <<E\n$(rm outline.md)\nE",
    "cat <<E\n`rm outline.md`\nE",
    "cat <<-E\n\t${X:-$(rm outline.md)}\nE",
    "cat <<< \"$(rm outline.md)\"",
    "cat < `rm outline.md`",
    "cat < \"$(rm outline.md)\"",
    "((x=1<<EOF))\nrm outline.md\nEOF",
    "echo $(( $(rm outline.md) ))",
    "echo \"$(( 1 + `rm outline.md` ))\"",
    "(( $(rm outline.md) ))",
    "echo $((rm outline.md); true)",
    "((rm outline.md); true)",
    "git commit -m \"$(cat <<'EOF'\nDon't :)\nEOF\n)\"; rm outline.md",
    "x=$(echo 1 # don't\n); rm outline.md",
    "echo \"$(echo \"$(echo ')')\")\"; rm outline.md",
    "x=1 y=${x#$(rm outline.md)}",
    // Options before the command.
    "bash -o pipefail -c 'rm outline.md'",
    "bash -euo pipefail -c 'rm outline.md'",
    "bash +x -c 'rm outline.md'",
    "bash --rcfile x -c 'rm outline.md'",
    "bash -c 'rm \"$1\"' _ outline.md",
    "bash -c \"echo $X; rm outline.md\"",
    "env -i rm outline.md",
    "sudo -n rm outline.md",
    "sudo -s rm outline.md",
    "sudo -S rm outline.md",
    "sudo -p x rm outline.md",
    "exec -c rm outline.md",
    "exec -a foo rm outline.md",
    "env -S 'rm outline.md'",
    "env -iS 'rm' outline.md",
    "env --split-string='rm outline.md'",
    // More cases than the analysis tracks.
    "cd a;cd b;cd c;cd d;cd e;cd f;cd g;cd h;cd new;cd ..; rm outline.md",
    "cd a;cd b;cd c;cd d;cd e;cd f;cd g;cd h;cd new;cd ..; python3 -c \"open('outline.md', 'w')\"",
    "eval eval eval eval eval eval eval eval eval rm outline.md",
    "rm {,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}outline.md",
    "{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}rm outline.md",
    "eval rm {,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}outline.md",
    // Blocks with a name, processes and patterns.
    "function f { rm outline.md; }; f",
    "function f() { rm outline.md; }; f",
    "coproc N { rm outline.md; }",
    "coproc rm outline.md",
    "rm <(echo) outline.md",
    "cat > >(rm outline.md)",
    "shopt -s extglob\nrm @(outline).md",
    "shopt -s extglob\nrm !(x).md",
    "for d in /tmp meta; do cd $d; rm glossary.md; done",
    // Variables.
    "x=outline.mdx; rm ${x%x}",
    "x=outline.md.bak; rm ${x%.*}",
    "x=/a/b/outline.md; rm ${x##*/}",
    "x=OUTLINE.MD; rm ${x,,}",
    "x=outline.md; rm ${x:0}",
    "x=inline.md; rm ${x/in/out}",
    "x=outline.md; rm ${x@E}",
    "x=outline.md; y=x; rm ${!y}",
    "a=(x outline.md); rm ${a[1]}",
    "a=(x outline.md); rm \"${a[@]}\"",
    "declare -a a=([3]=outline.md); rm ${a[3]}",
    "a[0]=outline.md; rm ${a[0]}",
    "x=out; x+=line.md; rm $x",
    "x=meta/glossary; rm $x手; rm $x.md",
    "set -- outline.md; rm \"$@\"",
    "set -- outline.md; rm $1",
    // Clusters of options.
    "curl -fsSLo outline.md https://example.org",
    "curl -so outline.md https://example.org",
    "curl -sO https://example.org/outline.md",
    "wget -qO outline.md https://example.org",
    "sort -uo outline.md new/glossary.md",
    "cp -vt. /x/outline.md",
    "cp -vt . /x/outline.md",
    "cp --target . /x/outline.md",
    "ln -sft . /x/outline.md",
    "ln -sf /x/outline.md",
    // Text that is piped into a shell.
    "printf '%s' 'rm outline.md' | bash",
    "printf '%s\\n' 'rm outline.md' | bash -s",
    "cat <<< 'rm outline.md' | bash",
    "echo 'rm outline.md' | bash /dev/stdin",
    ". /dev/stdin <<< 'rm outline.md'",
    "source <(echo rm outline.md)",
    "bash <(printf %s 'rm outline.md')",
    // Diffs that are read, piped or printed by git.
    "patch -p1 < fix.diff",
    "git apply < fix.diff",
    "git am < fix.diff",
    "cat fix.diff | patch -p1",
    "cat fix.diff | git apply",
    "cat <<'E' | git apply\n--- a/outline.md\n+++ b/outline.md\n@@ -1 +1 @@\n-a\n+b\nE",
    "echo \"--- a/outline.md\n+++ b/outline.md\" | git apply",
    "patch -p1 <<< \"$(cat fix.diff)\"",
    "git apply *.diff",
    "cd new; patch -p1 -d .. < ../fix.diff",
    "patch -d meta -p2 < fix.diff",
    "cd nowhere; git apply fix.diff",
    "git diff meta/glossary.md | git apply -R",
    "git diff | git apply -R",
    // Names that a command reads.
    "echo outline.md x.md | xargs rm -f",
    "printf '%s\\n' outline.md x.md | xargs rm -f",
    "ls | xargs rm",
    "ls | grep out | xargs rm",
    "ls | grep -v log | xargs rm",
    "ls | xargs sed -i s/one/two/",
    "ls meta | xargs -I{} rm meta/{}",
    "xargs rm <<< outline.md",
    "xargs rm <<E\noutline.md\nE",
    "xargs rm < list",
    "xargs -a list rm",
    "cat list | xargs --max-procs 4 rm",
    "grep -rl x . | xargs sed -i s/x/y/",
    "grep -rl --include='*.md' x | xargs sed -i s/x/y/",
    "rg -l x | xargs sed -i s/x/y/",
    "git ls-files | xargs sed -i s/x/y/",
    "git grep -l x | xargs sed -i s/x/y/",
    "sed -i s/x/y/ $(grep -rl x .)",
    "sed -i s/x/y/ `git ls-files`",
    "find . -name '*.md' | grep -v node_modules | xargs sed -i s/x/y/",
    "find . -name '*.md' | xargs grep -l x | xargs sed -i s/x/y/",
    "find . -name '*.md' | sort | head -5 | while read -r f; do sed -i s/x/y/ \"$f\"; done",
    "while IFS= read -r f; do rm \"$f\"; done < <(find . -name '*.md')",
    "while read f; do rm $f; done < list",
    "read F < list; rm $F",
    "while read f; do rm $f; done <<E\noutline.md\nE",
    "find . -name '*.md' -exec bash -c 'for f; do rm \"$f\"; done' _ {} +",
    "find . -iname '*.MD' -delete",
    "rm $(ls *.md | head -1)",
    "rm `ls outline.md`",
    "for f in $(git ls-files); do sed -i s/x/y/ $f; done",
    // Programs in other languages.
    "python3 -c \"$(cat <<'E'\nopen('outline.md','w').write('x')\nE\n)\"",
    "bash -c \"$(cat <<'E'\nrm outline.md\nE\n)\"",
    "echo \"open('outline.md','w')\" | python3",
    "python3 -c \"import subprocess; subprocess.run(['rm','outline.md'])\"",
    "python3 -c \"import subprocess; c = ['rm', '-f', 'outline.md']; subprocess.run(c)\"",
    "node -e \"require('child_process').spawnSync('rm', ['outline.md'])\"",
    "python3 - outline.md <<'E'\nimport sys\nopen(sys.argv[1],'w').write('x')\nE",
    "python3 -X utf8 - <<'E'\nopen('outline.md','w').write('x')\nE",
    // A here-document ends where the shell ends it.
    "cat > /tmp/x.mk <<EOF\n\tEOF\nit's\nEOF\nrm outline.md",
    "x=$(cat <<EOF\nfoo\nEOF)\nrm outline.md",
    "cat <<-EOF\n\tit's\n\tEOF\nrm outline.md",
    "cat <<E$(echo)F\nit's\nE$(echo)F\nrm outline.md",
    "python3 -c \"import shutil; shutil.rmtree('meta')\"",
    "python3 -c \"import os; os.remove('outline.md')\"",
    "python3 -c \"import pathlib; [p.unlink() for p in pathlib.Path('meta').glob('*.md')]\"",
    "python3 -c \"import glob, os; [os.remove(f) for f in glob.glob('meta/*.md')]\"",
    "python3 -c \"from pathlib import Path; (Path('meta') / 'glossary.md').write_text('x')\"",
    "perl -e \"unlink 'outline.md'\"",
    "node -e \"fs.rmSync('meta', {recursive: true})\"",
    "php -r \"unlink('outline.md');\"",
    "uv run python -c \"open('outline.md','w')\"",
    "poetry run rm outline.md",
    "busybox rm outline.md",
    "rsync -a --remove-source-files meta/glossary.md /tmp/",
    "split -l 1 new/glossary.md outline.md; mv -t . /x/outline.md",
    "cat new/glossary.md | sponge outline.md",
    "gzip meta/glossary.md",
    // Files that set up the hosts of agents.
    "rm -rf .claude",
    "rm .claude/*.json",
    "mv .claude /tmp/x",
    "echo '{}' > .mcp.json",
    // bash runs everything before a syntax error.
    "rm outline.md\n)",
    "rm outline.md\necho \"unclosed",
    "x=$(case y in y) rm outline.md;; esac)",
];

/// Everyday commands of people and agents.
const ALLOWED: &[&str] = &[
    "ls *.md",
    "ls -la meta/",
    "cat meta/glossary.md | sort | head",
    "grep -rn lease meta/*.md > /tmp/found.txt",
    "grep -o 'w outline.md' x 2>/dev/null",
    "cargo test 2>&1 | tail -5",
    "cargo build --release && ./target/release/x --out=$OUT",
    "git status",
    "git diff HEAD -- meta/glossary.md",
    "git add -A && git commit -m \"docs: rm meta/glossary.md > outline.md\"",
    "git stash list; git stash show",
    "git switch main; git diff --stat; git log -p --follow x",
    "rm -f ../*.log",
    "git checkout -b topic",
    "git checkout -- src/main.rs",
    "git stash push -- src",
    "git restore --staged meta/glossary.md",
    "git clean -n -fdx",
    "git log --oneline -- meta",
    "echo '- fence' >> meta/glossary.md",
    "tee -a meta/glossary.md <<< '- fence'",
    "echo x > drafts/ch01.md",
    "echo x > notes.txt",
    "echo x > \"$TMPFILE\"",
    "echo x > ./$name.md; echo x > \"$PWD/$name\"",
    "tmp=$(mktemp -d); cp meta/glossary.md \"$tmp\"; rm -rf \"$tmp\"",
    "tmp=$(mktemp -d); echo x > $tmp/outline.md",
    "cp meta/glossary.md /tmp/copy-of-glossary.md",
    "cp meta/glossary.md \"$BACKUP/\"",
    "rm -rf target/* node_modules",
    "rm -f *.log *.tmp",
    "sed -i s/a/b/ src/*.rs",
    "sed -n 1,20p meta/glossary.md",
    "find . -name '*.rs' -exec grep -l x {} +",
    "find . -name '*.tmp' -delete",
    "find . -name '*.rs' | xargs wc -l",
    "for f in meta/*.md; do wc -l \"$f\"; done",
    "python3 -c \"print(open('meta/glossary.md').read().count('word'))\"",
    "python3 -c \"open('meta/glossary.md','a').write('- x')\"",
    "python3 scripts/build.py > /tmp/log 2>&1",
    "awk '{ print $1 }' meta/glossary.md",
    "jq . state.json | less",
    "test -f outline.md && echo there",
    "npm run build; make -j4",
    "quipu append meta/glossary.md --text '- rm outline.md'",
    "for i in {1..9}; do echo $i; done > /tmp/x",
    "if [[ $a > $b ]]; then echo x; fi",
    "tar czf /tmp/x.tgz meta",
    "diff <(sort meta/glossary.md) <(sort new/glossary.md)",
    "mkdir -p build && touch build/x",
    "cd new && rm outline.md",
    "cd new; cd ../new && rm outline.md",
    "cd /tmp && echo x > outline.md && rm outline.md",
    "set -euo pipefail; cd src && cargo build 2>&1 | tee /tmp/build.log | tail -20",
    "bash -euo pipefail -c 'cd src && ls | wc -l > /tmp/n'",
    "cat > notes.txt <<EOF\nThe price is $5, and $HOME is `hostname`; see $(date +%F). Don't rm outline.md > x.\nEOF",
    "cat <<'EOF' > /tmp/fix.sh\n#!/bin/bash\nrm -f outline.md\nEOF\nchmod +x /tmp/fix.sh",
    "git add -A && git commit -m \"$(cat <<'EOF'\nfix: don't rm outline.md\n\n- (one) > two\nEOF\n)\" && git log -1",
    "curl -fsSL https://example.org/install.sh -o /tmp/install.sh && curl -fsSLo /tmp/x.tgz https://example.org/outline.md",
    "curl -s -XPOST -H 'Accept: text/plain' -d @meta/glossary.md https://example.org | jq -r .id",
    "env -i PATH=/usr/bin HOME=/tmp RUST_LOG=debug cat outline.md",
    "sudo -n -u postgres psql -c 'select 1' -o /tmp/out.txt < outline.md",
    "sudo apt-get install -y jq && timeout -k 5 60 npm test -- --watch=false",
    "for ((i=0; i<10; i++)); do (( i > 5 )) && echo $((i * 2 + (i << 1))) >> /tmp/n; done",
    "n=$(wc -l < outline.md); if (( n > 100 )); then echo long; fi",
    "for f in meta/*.md; do cp \"$f\" \"/tmp/$(basename \"${f%.md}\").txt\"; done",
    "cd src && cargo fmt; cd ../new && ls; cd ../meta && wc -l *; cd .. && cd src; cd ../new; cd ..; cd src && touch x.rs",
    "diff <(sort meta/glossary.md) <(cd new && sort glossary.md) > /tmp/diff.txt",
    "files=(meta/glossary.md outline.md); wc -l \"${files[@]}\"; for f in \"${files[@]}\"; do head -1 \"$f\"; done",
    "exec 3< outline.md; read -r line <&3; exec 3<&-",
    "python3 - <<'E'\nimport subprocess\nprint(subprocess.run(['git', 'log', '--', 'outline.md'], capture_output=True))\nE",
    "cp -rt /tmp meta outline.md",
    "rsync -rt meta/ /tmp/meta/",
    "git diff HEAD~1 > /tmp/x.diff; git apply --check fix.diff",
    "git show HEAD:meta/glossary.md | head -3",
    "find . -name '*.rs' | grep -v target | xargs sed -i s/x/y/",
    "git ls-files src | xargs sed -i s/x/y/",
    "grep -rl x src | xargs sed -i s/x/y/",
    "ls | wc -l; ls meta | xargs -n1 echo",
    "ls | grep '\\.log$' | xargs rm -f; ls | grep tmp | xargs rm -rf",
    "find . -type f | grep '\\.pyc$' | xargs rm",
    "rm -rf $(ls -d n*) $(find . -name __pycache__)",
    "git diff HEAD -- src | git apply -R; git diff > x.diff && git apply x.diff",
    "find . -name '*.md' | while read -r f; do wc -l \"$f\"; done",
    "cat list | while read f; do echo \"$f\"; done",
    "git commit -m \"$(cat <<'E'\nrm outline.md\nE\n)\"",
    "python3 -c \"import subprocess; print(subprocess.run(['cat','outline.md']))\"",
    "for f in $(git ls-files '*.rs'); do head -1 $f; done",
    "cat <<'E' | python3\nprint(open('outline.md').read())\nE",
    "python3 -c \"import pathlib; [p.unlink() for p in pathlib.Path('target').glob('*.o')]\"",
    "python3 -c \"import shutil; shutil.rmtree('node_modules'); print('a/b'.split('/'))\"",
    "gh pr create --title x --body \"$(cat <<'E'\n## Summary\n- rm outline.md > x\nE\n)\"",
];

/// Writes that the text of a command does not show. Afterwards `status` flags the changed files,
/// and `restore` undoes the changes (`tests/scenarios/book/hooks`).
const NOT_SEEN: &[&str] = &[
    "bash write.sh",
    "make clean",
    "python3 write.py",
    "rm \"$F\"",
    "python3 -c \"open('meta/gloss' + 'ary.md','w')\"",
    "echo cm0gbWV0YS9nbG9zc2FyeS5tZA== | base64 -d | sh",
    "tar xf archive.tar",
    "git checkout other-branch",
    "alias r=rm; r meta/glossary.md",
];

#[test]
fn commands_that_write_what_the_contract_protects_are_denied_and_no_others() {
    let play = project();
    let wrong = |commands: &[&'static str], wanted: bool| {
        commands
            .iter()
            .copied()
            .filter(|c| is_denied(&play, c) != wanted)
            .collect::<Vec<_>>()
    };
    assert_eq!(wrong(DENIED_WRITES, true), [""; 0], "not denied");
    assert_eq!(wrong(ALLOWED, false), [""; 0], "denied");
    assert_eq!(
        wrong(NOT_SEEN, false),
        [""; 0],
        "seen after all: move it to the first table"
    );
}
