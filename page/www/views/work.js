// Work: todos, decisions with their chains, sessions, metrics over time, review scores.

import { html, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Card, Dialog, Empty, Fault, FileLink, Hint, Shown, Tabs, fileAt, go, useAct, useCall } from '../ui.js';
import { useRoving } from '../keys.js';
import { Plot } from '../plot.js';
import { language, t } from '../words.js';

const COLUMNS = ['pending', 'in_progress', 'blocked', 'completed', 'cancelled'];
// The moves that lead from one column to another, as the command line has them.
const MOVES = {
  pending: { in_progress: ['todo start'], blocked: ['todo block'], completed: ['todo start', 'todo done'], cancelled: ['todo cancel'] },
  in_progress: { blocked: ['todo block'], completed: ['todo done'], cancelled: ['todo cancel'] },
  blocked: { pending: ['todo unblock'], in_progress: ['todo unblock', 'todo start'], cancelled: ['todo cancel'] },
  completed: {}, cancelled: {},
};
const PRIORITIES = ['critical', 'high', 'medium', 'low'];
const SHOWN = 40;
const KIND = 'text/x-quipu-todo';

/** The fields of a new todo, or of one that is changed; a note is added to those that are there. */
function TodoForm({ todo, onClose }) {
  const { busy, error, act } = useAct();
  const [given, setGiven] = useState(todo ? { title: todo.title, description: todo.description ?? '', priority: todo.priority, note: '' } : { title: '', description: '', priority: 'medium', due: '', assignee: '', tag: '' });
  const change = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  const send = async (event) => {
    event.preventDefault();
    const filled = Object.fromEntries(Object.entries(given).filter(([name, value]) => value.trim() && (!todo || name === 'note' || value !== (todo[name] ?? ''))));
    if (filled.tag) filled.tag = filled.tag.split(/[\s,，]+/).filter(Boolean);
    if (await act(() => (todo ? call('todo edit', { id: todo.id, ...filled }) : call('todo add', filled)))) onClose();
  };
  const line = (name, kind = 'text') => html`<label>${t(`todo.${name}`)}<input type=${kind} value=${given[name]} onInput=${change(name)} /></label>`;
  const area = (name) => html`<label>${t(`todo.${name}`)}<textarea rows="3" value=${given[name]} onInput=${change(name)}></textarea></label>`;
  return html`<${Dialog} title=${todo ? `${t('todo.edit')}: ${todo.title}` : t('todo.add')} onClose=${onClose}><form class="fields" onSubmit=${send}>
    ${line('title')}${area('description')}
    <label>${t('priority')}<select value=${given.priority} onChange=${change('priority')}>${PRIORITIES.map((p) => html`<option value=${p}>${t(`priority.${p}`)}</option>`)}</select></label>
    ${todo ? area('note') : html`${line('due', 'date')}${line('assignee')}${line('tag')}`}
    <${Fault} error=${error} />
    <div class="buttons"><button class="main" disabled=${busy || !given.title.trim()}>${todo ? t('todo.save') : t('todo.add')}</button><button type="button" onClick=${onClose}>${t('cancel')}</button></div></form></${Dialog}>`;
}

function Todo({ todo, onMove, onEdit }) {
  const targets = Object.keys(MOVES[todo.status] ?? {});
  const drag = (event) => { event.dataTransfer.setData(KIND, todo.id); event.dataTransfer.effectAllowed = 'move'; };
  return html`<li class="todo p-${todo.priority}" draggable=${targets.length > 0} onDragStart=${drag}>
    <p><strong>${todo.title}</strong></p>
    <p class="small row wrap"><span class="tag p-${todo.priority}">${t(`priority.${todo.priority}`)}</span>${todo.assignee && html`<span>@${todo.assignee}</span>`}${todo.due && html`<span>${t('due')} ${todo.due}</span>`}${todo.tags.map((tag) => html`<span class="muted">#${tag}</span>`)}</p>
    ${todo.description && html`<p class="small clip">${todo.description}</p>`}
    ${todo.notes && html`<p class="small muted clip">${todo.notes}</p>`}
    <p class="row spread"><code class="small muted">${todo.id}</code><span class="buttons small"><button type="button" aria-label=${`${t('todo.edit')}: ${todo.title}`} onClick=${() => onEdit(todo)}>${t('todo.edit')}</button></span>${targets.length > 0 && html`<label class="small"><span class="hidden">${t('todo.move')}: ${todo.title}</span>
      <select value="" onChange=${(e) => { onMove(todo, e.target.value); e.target.value = ''; }}><option value="">${t('todo.move')} …</option>${targets.map((name) => html`<option value=${name}>${t(`todo.${name}`)}</option>`)}</select></label>`}</p>
  </li>`;
}

const RANK = Object.fromEntries(PRIORITIES.map((name, nth) => [name, nth]));
const ORDERS = {
  priority: (a, b) => RANK[a.priority] - RANK[b.priority],
  due: (a, b) => (a.due ?? '9999').localeCompare(b.due ?? '9999'),
  title: (a, b) => a.title.localeCompare(b.title, language()),
};
const fits = (todo, { q = '', who = '', tag = '' }) => (!who || todo.assignee === who) && (!tag || todo.tags.includes(tag))
  && [todo.id, todo.title, todo.description, todo.notes].some((text) => (text ?? '').toLowerCase().includes(q.toLowerCase()));

/** Which todos are shown, in which order. The address has it, so that a selection can be linked to. */
function Filter({ todos, query }) {
  const change = (name) => (event) => go('work', { ...query, [name]: event.target.value }, { replace: true });
  const all = (list) => [...new Set(list.filter(Boolean))].sort();
  const [people, tags] = [all(todos.map((todo) => todo.assignee)), all(todos.flatMap((todo) => todo.tags))];
  const choice = (name, label, values) => values.length > 0 && html`<label><span class="label">${label}</span><select value=${query[name] ?? ''} onChange=${change(name)}><option value="">${t('class.all')}</option>${values.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`;
  return html`<div class="row wrap filters todo-filters" role="search" aria-label=${t('todo.filter')}><label class="grow"><span class="label">${t('todo.filter')}</span><input type="search" value=${query.q ?? ''} onInput=${change('q')} /></label>
    ${choice('who', t('todo.assignee'), people)}${choice('tag', t('todo.tag'), tags)}
    <label><span class="label">${t('order')}</span><select value=${query.sort ?? ''} onChange=${change('sort')}><option value="">${t('todo.added')}</option>${Object.keys(ORDERS).map((name) => html`<option value=${name}>${t(`todo.by.${name}`)}</option>`)}</select></label></div>`;
}

function Todos({ query }) {
  const list = useCall('todo list', { all: true });
  const { busy, error, act } = useAct();
  const [title, setTitle] = useState('');
  const [priority, setPriority] = useState('medium');
  const [blocking, setBlocking] = useState(null);
  const [reason, setReason] = useState('');
  const [over, setOver] = useState(null);
  const [editing, setEditing] = useState(null);
  const board = useRoving('li.todo');
  const follow = (todo, to, given = {}) => act(async () => {
    for (const operation of MOVES[todo.status][to]) await call(operation, { id: todo.id, ...(operation === 'todo block' ? given : {}) });
    return true;
  });
  const move = (todo, to) => {
    if (!MOVES[todo.status]?.[to]) return;
    if (to === 'blocked') setBlocking(todo);
    else follow(todo, to);
  };
  const add = async (event) => {
    event.preventDefault();
    if (await act(() => call('todo add', { title, priority }))) setTitle('');
  };
  return html`<form class="row wrap" onSubmit=${add}><label class="grow"><span class="hidden">${t('todo.new')}</span><input placeholder=${t('todo.new')} value=${title} onInput=${(e) => setTitle(e.target.value)} /></label>
      <label><span class="hidden">${t('priority')}</span><select value=${priority} onChange=${(e) => setPriority(e.target.value)}>${PRIORITIES.map((p) => html`<option value=${p}>${t(`priority.${p}`)}</option>`)}</select></label>
      <button class="main" disabled=${busy || !title.trim()}>${t('todo.add')}</button><button type="button" onClick=${() => setEditing('new')}>${t('todo.more')} …</button></form>
    <${Fault} error=${error} />
    <${Shown} from=${list}>${(data) => html`<${Filter} todos=${data.todos} query=${query} /><div class="columns" ref=${board}>${COLUMNS.map((name) => {
      const all = data.todos.filter((todo) => todo.status === name && fits(todo, query));
      if (ORDERS[query.sort]) all.sort(ORDERS[query.sort]);
      const closed = name === 'completed' || name === 'cancelled';
      const shown = ORDERS[query.sort] || !closed ? all.slice(0, closed ? SHOWN : 200) : all.slice(-SHOWN).reverse();
      const drop = (event) => {
        event.preventDefault();
        setOver(null);
        const todo = data.todos.find((one) => one.id === event.dataTransfer.getData(KIND));
        if (todo) move(todo, name);
      };
      return html`<section class="column ${over === name ? 'over' : ''}" data-status=${name} onDragOver=${(e) => { e.preventDefault(); setOver(name); }} onDragLeave=${() => setOver(null)} onDrop=${drop}>
        <h2>${t(`todo.${name}`)} <span class="number muted">${all.length}</span></h2>
        ${all.length === 0 && html`<p class="small muted">${t('todo.none')}</p>`}
        <ul>${shown.map((todo) => html`<${Todo} key=${todo.id} todo=${todo} onMove=${move} onEdit=${setEditing} />`)}</ul>
        ${shown.length < all.length && html`<p class="small muted">${t('todo.newest', shown.length, all.length)}</p>`}</section>`;
    })}</div>`}</${Shown}>
    ${editing && html`<${TodoForm} todo=${editing === 'new' ? null : editing} onClose=${() => setEditing(null)} />`}
    ${blocking && html`<${Dialog} title=${`${t('todo.blocked')}: ${blocking.title}`} onClose=${() => setBlocking(null)}>
      <form onSubmit=${(event) => { event.preventDefault(); follow(blocking, 'blocked', { reason }); setBlocking(null); setReason(''); }}>
        <label>${t('todo.reason')}<textarea rows="3" required value=${reason} onInput=${(e) => setReason(e.target.value)}></textarea></label>
        <div class="buttons"><button class="main" disabled=${!reason.trim()}>${t('todo.blocked')}</button><button type="button" onClick=${() => setBlocking(null)}>${t('cancel')}</button></div></form></${Dialog}>`}`;
}

function Decisions() {
  const list = useCall('decisions');
  return html`<${Shown} from=${list}>${({ decisions }) => {
    const [before, after] = t('superseded', '\n').split('\n');
    if (decisions.length === 0) return html`<${Empty}>${t('decisions.none')}</${Empty}>`;
    const jump = (id) => html`<a href=${`#/work?tab=decisions`} onClick=${(event) => { event.preventDefault(); document.getElementById(`d-${id}`)?.scrollIntoView({ block: 'center' }); }}>${id}</a>`;
    return html`<ol class="list decisions">${[...decisions].reverse().map((one) => html`<li id=${`d-${one.id}`} class=${one.superseded_by ? 'past' : ''}>
      <div class="row wrap"><code>${one.id}</code><strong>${one.title}</strong>${one.status && html`<span class="tag">${t(`adr.${one.superseded_by ? 'Superseded' : one.status}`)}</span>`}<span class="muted small">${one.date}</span></div>
      ${one.decision && html`<p>${one.decision}</p>`}${one.why && html`<p class="small">${one.why}</p>`}
      ${(one.context || one.alternatives || one.consequences) && html`<details><summary>${t('job.overview')}</summary>${['context', 'alternatives', 'consequences'].filter((key) => one[key]).map((key) => html`<p class="small">${one[key]}</p>`)}</details>`}
      ${one.supersedes.length > 0 && html`<p class="small">← ${t('supersedes')} ${one.supersedes.map((id) => html`${jump(id)} `)}</p>`}
      ${one.superseded_by && html`<p class="small">→ ${before}${jump(one.superseded_by)}${after}</p>`}</li>`)}</ol>`;
  }}</${Shown}>`;
}

function Sessions() {
  const list = useCall('sessions list', { most: 100 });
  return html`<${Shown} from=${list}>${({ sessions }) => (sessions.length === 0 ? html`<${Empty}>${t('sessions.none')}</${Empty}>` : html`<ul class="list">${sessions.map(({ path, session }) => html`<li>
    <div class="row wrap"><a class="path" href=${fileAt(path)}>${session.name}</a><span class="tag">${session.type}</span>${session.agent && html`<span>${session.agent}</span>`}${session.rounds != null && html`<span class="muted small">${t('rounds', session.rounds)}</span>`}</div>
    <p class="small clip">${session.problem}</p></li>`)}</ul>`)}</${Shown}>`;
}

function Metrics({ theme }) {
  const found = useCall('metrics', { of: 'all' });
  return html`<p class="hint">${t('metrics.about')}</p><${Shown} from=${found}>${({ metrics }) => {
    if (metrics.points.length === 0) return html`<${Empty}>${t('sessions.none')}</${Empty}>`;
    const series = ['reuse', 'growth', 'gain'].map((name) => ({ label: t(name), values: metrics.points.map((point) => point[name]) }));
    return html`<${Plot} label=${t('work.metrics')} names=${metrics.points.map((point) => point.date)} series=${series} theme=${theme} top=${1} />
      <div class="wide" tabIndex="0" role="group" aria-label=${t('work.metrics')}><table><thead><tr><th scope="col">${t('session')}</th>${['reuse', 'growth', 'gain'].map((name) => html`<th scope="col">${t(name)}</th>`)}</tr></thead>
        <tbody>${[...metrics.points].reverse().slice(0, 50).map((point) => html`<tr><td>${point.session}</td><td class="number">${point.reuse.toFixed(2)}</td><td class="number">${point.growth.toFixed(2)}</td><td class="number">${point.gain?.toFixed(2) ?? '–'}</td></tr>`)}</tbody></table></div>`;
  }}</${Shown}>`;
}

const Bar = ({ of }) => html`<span class="score" aria-hidden="true"><span style=${{ width: `${(100 * of) / 5}%` }}></span></span>`;

const SEVERITIES = ['critical', 'important', 'minor'];
const CLOSED = ['addressed', 'declined', 'withdrawn'];
const isOpen = (one) => !CLOSED.includes(one.status);

/** The comments of all rounds: what is to be done, by severity and line, then what is resolved. */
function Comments({ panel }) {
  const byLine = (all) => [...all].sort((a, b) => a.line - b.line);
  const entry = (one) => html`<li key=${one.id} id=${`c-${one.id}`}>
    <div class="row wrap"><code>${one.id}</code>${!isOpen(one) && html`<span class="tag s-done">${t(`comment.${one.status}`)}</span>`}
      ${(one.path ?? panel.manuscript) && html`<${FileLink} path=${one.path ?? panel.manuscript} line=${one.line} />`}
      ${(one.gone || one.was) && html`<span class="small muted">${one.gone ? t('comment.gone') : t('comment.was', one.was)}</span>`}</div>
    <blockquote class="small">${isOpen(one) ? (one.answer?.quote ?? one.quote) : one.quote}</blockquote><p>${one.text}</p>
    ${one.answer && html`<p class="small muted">${t('comment.round', one.answer.round)} (${t(`comment.${one.status}`)}): ${one.answer.text}</p>`}</li>`;
  const closed = panel.comments.filter((one) => !isOpen(one));
  return html`${SEVERITIES.map((severity) => {
    const open = byLine(panel.comments.filter((one) => isOpen(one) && one.severity === severity));
    return open.length > 0 && html`<${Card} title=${`${t(`severity.${severity}`)}: ${open.length}`}><ol class="list">${open.map(entry)}</ol></${Card}>`;
  })}
    ${closed.length > 0 && html`<${Card} title=${t('comment.closed')}><details><summary>${closed.length}</summary><ol class="list">${byLine(closed).map(entry)}</ol></details></${Card}>`}`;
}

function Review() {
  const found = useCall('review status');
  return html`<${Shown} from=${found}>${(panel) => html`
    ${panel.sum && html`<${Card} title=${`${t('overall')}: ${panel.sum.overall.toFixed(2)}`}><p class="small muted">${t('overall.how')}</p><p>${t('by.scores')}: <strong>${t(`verdict.${panel.sum.verdict}`)}</strong>${panel.verdict && html` · ${t('verdict')}: <strong>${t(`verdict.${panel.verdict}`)}</strong>`}</p>
      <ul class="bars">${panel.sum.domains.map((domain) => html`<li><span>${t(`phase.${domain.name}`)}</span><${Bar} of=${domain.mean} /><span class="number">${domain.mean.toFixed(1)}</span></li>`)}</ul>
      ${panel.sum.conflicts.length > 0 && html`<h3>${t('conflicts')}</h3><ul>${panel.sum.conflicts.map((one) => html`<li class="small"><strong>${one.comments.join(' ↔ ')}</strong>: ${one.ruling ?? '–'}</li>`)}</ul>`}</${Card}>`}
    <div class="wide" tabIndex="0" role="group" aria-label=${t('work.review')}><table class="members"><thead><tr><th scope="col">${t('agent')}</th><th scope="col">${t('status')}</th><th scope="col">${t('score')}</th><th scope="col">${t('confidence')}</th><th scope="col">${t('summary')}</th></tr></thead>
      <tbody>${panel.members.map((one) => html`<tr><th scope="row"><a href=${fileAt(one.path)}>${one.id}</a> <span class="muted">${one.title}</span></th><td class="state">${t(`member.${one.status}`)}</td>
        <td>${one.report && html`<${Bar} of=${one.report.score} /> <span class="number">${one.report.score}</span>`}</td><td class="number">${one.report?.confidence}</td>
        <td class="small">${one.report?.summary}${one.faults?.map((fault) => html`<p><${FileLink} path=${one.path} line=${fault.line} /> ${fault.what}</p>`)}</td></tr>`)}</tbody></table></div>
    <${Comments} panel=${panel} />`}</${Shown}>`;
}

export function Work({ query, project, theme }) {
  const { has } = project;
  const tabs = [...(has.todos ? [['todos', t('work.todos')]] : []), ...(has.decisions ? [['decisions', t('work.decisions')]] : []),
    ...(has.sessions ? [['sessions', t('work.sessions')], ['metrics', t('work.metrics')]] : []), ...(has.reports ? [['review', t('work.review')]] : [])];
  if (tabs.length === 0) return html`<${Empty}>${t('work.none')}</${Empty}>`;
  const tab = tabs.some(([name]) => name === query.tab) ? query.tab : tabs[0][0];
  return html`${tab !== 'metrics' && html`<${Hint} of=${tab} />`}<${Tabs} label=${t('work')} chosen=${tab} onChoose=${(name) => go('work', { tab: name })} of=${tabs} />
    <div role="tabpanel" class="body">${{ todos: () => html`<${Todos} query=${query} />`, decisions: () => html`<${Decisions} />`, sessions: () => html`<${Sessions} />`, metrics: () => html`<${Metrics} theme=${theme} />`, review: () => html`<${Review} />` }[tab]()}</div>`;
}
