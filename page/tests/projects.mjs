// The projects that are looked at: made by the program, or a tree that a scenario ends with.

import { cpSync, rmSync } from 'node:fs';
import { project } from './stage.mjs';

const scenarios = new URL('../../tests/scenarios/', import.meta.url).pathname;

function grown(name, scenario) {
  const made = project(name);
  cpSync(`${scenarios}${scenario}/after`, made.folder, { recursive: true });
  made.quipu('status', '--json');
  return made;
}

let first = null;

/** A book whose outline waits for a person. */
export function book() {
  const made = project('book');
  if (first) {
    cpSync(first, made.folder, { recursive: true });
    return made;
  }
  first = `${made.folder}-first`;
  made.quipu('init', '--profile', 'book', '--var', 'project=A small book', '--var', 'words=700');
  // The house style as it is: what follows the outline is the chapters.
  made.quipu('write', 'meta/style-guide.md', '--file', 'meta/house-style.md');
  made.write('source/path.rs', '/// A path.\npub struct Path;\n\nimpl Path {\n    /// Reads a path.\n    pub fn parse(text: &str) -> Path { Path }\n}\n');
  made.write('quipu.toml', `${made.read('quipu.toml')}\n[units.ch01]\ntitle = "Paths"\n\n[units.ch02]\ntitle = "Patterns"\n`);
  made.quipu('run', '--by', 'rehearse');
  cpSync(made.folder, first, { recursive: true });
  return made;
}
export const forget = () => { if (first) rmSync(first, { recursive: true, force: true }); };

export const novel = () => grown('novel', 'novel/five-chapters-en');
export const review = () => grown('review', 'review/guide');
export const worldlog = () => grown('worldlog', 'worldlog/guide');

export function relay() {
  const made = project('relay');
  made.quipu('init', '--profile', 'relay', '--var', 'project=Tern');
  made.quipu('todo', 'add', 'Write the parser', '--priority', 'high', '--tag', 'core', '--id', 'todo-1');
  made.quipu('todo', 'add', 'Name the release', '--id', 'todo-2');
  made.quipu('todo', 'add', 'Old idea', '--id', 'todo-3');
  made.quipu('todo', 'cancel', 'todo-3', '--reason', 'not wanted');
  made.quipu('decide', 'Sign in with tokens', '--id', 'ADR-001', '--context', 'three services', '--decision', 'signed tokens');
  made.quipu('decide', 'Sign in with sessions', '--id', 'ADR-002', '--supersedes', 'ADR-001', '--context', 'signing out at once', '--decision', 'sessions in the database');
  made.quipu('start', '--as', 'main', '--agent', 'ada');
  return made;
}

export const BAD_PATH = 'notes/<img src=x onerror=pwned()>.md';

/** What an agent with bad intentions could leave behind. */
export function hostile() {
  const made = project('hostile');
  made.write('quipu.toml', 'quipu = 1\n\n[vars]\nproject = "<script>pwned()</script>"\n\n[[files]]\npath = "notes/**"\nclass = "overwrite"\nabout = "<b onmouseover=pwned()>about</b>"\n\n[[files]]\npath = "log.md"\nclass = "append"\n');
  const text = [
    '# <script>pwned()</script> heading', '', '<script>pwned()</script>', '', '<img src=x onerror=pwned()> and <svg onload=pwned()>', '',
    '[click](javascript:pwned()) [tab](java\tscript:pwned()) [data](data:text/html,<script>pwned()</script>) [far](https://example.org/) [auto](<vbscript:pwned()>)', '',
    '![picture](https://example.org/pixel.png)', '', '<javascript:pwned()>', '', '[→ notes/a.md#<script>] [[javascript:pwned()]] [⊣ ../../etc/passwd]', '',
    '`<script>pwned()</script>`', '', '```html\n<script>pwned()</script>\n```', '', '| <script>pwned()</script> | [x](javascript:pwned()) |\n|---|---|\n| <iframe src="javascript:pwned()"> | b |', '',
    `${'>'.repeat(3000)} deep`, '', `${'['.repeat(2000)}x${']'.repeat(2000)}`,
  ].join('\n');
  made.write('notes/a.md', text);
  made.write(BAD_PATH, '# odd name\n');
  made.write('notes/wide.md', `# wide\n\n${'<b>x</b>'.repeat(40_000)}\n`);
  made.write('notes/long.txt', Array.from({ length: 120_000 }, (_, nth) => `line ${nth} <script>pwned()</script>`).join('\n'));
  made.write('notes/binary.bin', Buffer.from([0, 255, 254, 1, 2, 3]));
  made.quipu('status', '--json');
  made.quipu('append', 'log.md', '--text', '<script>pwned()</script>', '--agent', 'x');
  made.quipu('restore', 'notes/a.md', '--why', '<img src=x onerror=pwned()> why', '--at', '~0');
  return made;
}

/** A thousand files that lead to each other, one that nothing leads to, one that leads to too many. */
export function web(number = 1000) {
  const made = project('web');
  made.write('quipu.toml', 'quipu = 1\n\n[[files]]\npath = "**/*.md"\nclass = "state"\ntier = "L1"\n');
  const levels = ['premise', 'arc', 'chapter', 'scene'];
  let index = '# Index\n\n';
  for (let nth = 0; nth < number; nth += 1) {
    const near = [nth * 7 + 1, nth * 3 + 2].map((other) => `[→ pages/p${other % number}.md]`).join(' ');
    made.write(`pages/p${nth}.md`, `# Page ${nth}\n\n- [${levels[nth % 4]}] a fact ${near}\n`);
    if (nth % 40 === 0) index += `- [→ pages/p${nth}.md]\n`;
  }
  made.write('index.md', index);
  made.write('lost.md', '# Lost\n\nNothing leads here.\n');
  made.quipu('status', '--json');
  return made;
}

const RULES = `quipu = 1

[[files]]
path = "rules.md"
class = "sealed"

[[files]]
path = "log.md"
class = "append"

[[files]]
path = "notes/**"
class = "overwrite"
`;

/** A sealed, an append-only and a replaceable file, each with a history. */
export function plain() {
  const made = project('plain');
  made.write('quipu.toml', RULES);
  made.quipu('write', 'rules.md', '--text', '# Rules\n\nSpeak plainly.');
  made.quipu('append', 'log.md', '--text', 'first entry');
  made.quipu('append', 'log.md', '--text', 'second entry');
  for (const text of ['one', 'two', 'three']) made.quipu('write', 'notes/a.md', '--text', `# A\n\n${text}`, '--agent', text);
  return made;
}

/** Jobs for each unit, and no unit. */
export function unitless() {
  const made = project('unitless');
  made.write('quipu.toml', `quipu = 1

[[files]]
path = "drafts/{unit}.md"
class = "overwrite"

[roles.writer]
title = "Writer"
duty = "writing"

[[roles.writer.write]]
path = "drafts/{unit}.md"

[[steps]]
name = "write"
role = "writer"
each = "unit"
writes = ["drafts/{unit}.md"]
`);
  made.quipu('status');
  return made;
}

/** A book whose research failed three times for both chapters. */
export function stopped() {
  const made = book();
  made.quipu('approve', 'approve-outline');
  made.try('run', '--by', 'command:sh -c "exit 1"');
  return made;
}

/** A novel whose memory says who is where, and who knows what, from which chapter on. */
export function storied() {
  const made = project('storied');
  made.quipu('init', '--profile', 'novel', '--var', 'project=The Ferry');
  made.write('characters.md', `# Characters

## Joss Arden [arc]
- aliases: the ferryman
- where: the landing (from ch01, until ch03)
- where: prison (from ch03)
- knows: who cut the rope (from ch03)
- age: 41 (from ch01)
- age: 52 (from ch01)
- friend: Pell (from ch02, until ch03)
- enemy: Pell (from ch03)

## Pell
- holds: the brass key (from ch02)
- believes: Joss cut the rope (from ch01, until ch03)
`);
  made.write('manuscripts/ch01.md', '# The bridge\n\nJoss Arden finds the rope cut. He says nothing to Pell, who stands at the rail.\n\n<!-- CHAPTER_FINAL -->\n');
  made.write('chronicle.md', '# Chronicle\n\n## The bridge\n\n### ch01\n- when: 3 May 1911\n- Joss finds the rope cut\n');
  made.quipu('status', '--json');
  return made;
}
