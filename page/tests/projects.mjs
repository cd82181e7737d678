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
