// Now: what waits for a person and why, what runs, what is wrong, who holds what.

import { html, useEffect } from '../vendor/preact.js';
import { call } from '../api.js';
import { Card, Elapsed, Empty, Fault, FileLink, Hint, Sentence, Shell, Shown, Sign, StateTag, When, count, fileAt, place, took, useAct, useGet, when } from '../ui.js';
import { Decide, Decision, decides, isPath, jobAt, named } from './decide.js';
import { Flagged } from './flagged.js';
import { Proposals } from './learned.js';
import { Overlap, PageRun, Printed, RunButton } from './run.js';
import { own, reason, said, who } from '../sentences.js';
import { language, t } from '../words.js';

const Running = ({ attempt }) => html`<li>
  <div class="row"><${Sign} state="running" /><a href=${jobAt(attempt)}><strong>${named(attempt)}</strong></a>
    <span class="muted">${attempt.agent}</span><${Elapsed} since=${attempt.at} /></div>
  ${attempt.reads != null && html`<p class="small">${t('tokens.of', count(attempt.reads), count(attempt.budget))}</p>`}
  ${attempt.last && html`<p class="said">${attempt.last}</p>`}
</li>`;

const Worker = ({ worker }) => html`<li class="worker">
  <div class="row wrap"><${Sign} state=${worker.alive ? (worker.claims.length ? 'running' : 'ready') : 'failed'} />
    <strong>${worker.host}</strong> <span class="muted">${worker.agent} · ${worker.process}</span>
    <span class="muted small">${worker.alive ? t('since', when(worker.since)) : `${t('worker.dead')} ${when(worker.seen)}`}</span></div>
  <p class="small">${worker.claims.length === 0 ? t('worker.waits') : worker.claims.map((claim) => html`<a href=${jobAt(claim)}>${named(claim)}</a> `)}</p>
</li>`;

const SHOWN = 5;
const MANY = 24;

/** A job that stops others: why, what may be done, and what waits for it, folded. */
const Cause = ({ job }) => html`<li class="cause">
  <div class="row wrap"><${StateTag} state=${job.state} /><a href=${jobAt(job)}><strong>${named(job)}</strong></a> ${job.title && html`<span class="muted">${own(job.title)}</span>`}</div>
  ${job.why.slice(0, 4).map((line) => html`<p class="small"><${Sentence} of=${said(line)} /></p>`)}
  <${Printed} of=${job.failure} />
  ${decides(job) && html`<${Decide} job=${job} />`}
  ${job.retry && !job.objects && html`<div class="buttons"><${RunButton} job=${job} agent=${job.failure?.agent} main=${true} label=${t('run.failed.again')} /><a class="button" href=${jobAt(job, 'transcript')}>${t('now.transcript')}</a></div><${Shell} of=${job.retry} />`}
  ${job.blocks?.all > 0 && html`<details><summary>${t('now.blocks', count(job.blocks.all))}</summary>
    <ul class="plainlist columns3">${job.blocks.shown.map((one) => html`<li><a href=${jobAt(one)}>${named(one)}</a></li>`)}</ul>
    ${job.blocks.all > job.blocks.shown.length && html`<p class="small muted">${t('and.more', count(job.blocks.all - job.blocks.shown.length))}</p>`}</details>`}
</li>`;

const Stale = ({ job }) => html`<li>
  <div class="row wrap"><${StateTag} state="stale" /><a href=${jobAt(job)}><strong>${named(job)}</strong></a></div>
  ${job.why.slice(0, 4).map((line) => html`<p class="small"><${Sentence} of=${said(line)} /></p>`)}
  ${job.through.length === 0 && html`<${Decide} job=${job} />`}
</li>`;

const More = ({ of, shown, to }) => (of > shown ? html`<li class="small"><a href=${to}>${t('and.more', count(of - shown))}</a></li>` : null);

/** What is wrong with the texts. Reading all links may take long, so it comes after the rest. */
function Concerns({ found }) {
  const { broken, overdue, premises } = found;
  const at = (text) => { const [, path, line] = /^(.*):(\d+)$/.exec(text) ?? [null, text]; return html`<${FileLink} path=${path} line=${line} />`; };
  return html`${broken.shown.slice(0, SHOWN).map((one) => html`<li><div class="row wrap"><span class="tag s-failed">${t('broken')}</span>${at(one.at)}<span>→ <code>${one.to}</code></span></div>
      ${one.near && html`<p class="small">${t('near', one.near)}</p>`}</li>`)}<${More} of=${broken.all} shown=${Math.min(SHOWN, broken.shown.length)} to=${place('graph')} />
    ${overdue.shown.slice(0, SHOWN).map((one) => html`<li><div class="row wrap"><span class="tag s-failed">${t('thread.overdue')}</span><a href=${place('story')}>${one.name}</a> <span class="small">${t('due')} ${one.due}</span> ${at(one.at)}</div>
      ${one.promise && html`<p class="small">${one.promise}</p>`}</li>`)}<${More} of=${overdue.all} shown=${Math.min(SHOWN, overdue.shown.length)} to=${place('story')} />
    ${premises.shown.slice(0, SHOWN).map((one) => { const [path, anchor] = one.target.split('#'); return html`<li><div class="row wrap"><span class="tag s-failed">${t('premise.failed')}</span><${FileLink} path=${path} anchor=${anchor}>${one.title || one.target}</${FileLink}>
      <span class="small">${t('chapter.nth', one.chapter)}</span></div></li>`; })}<${More} of=${premises.all} shown=${Math.min(SHOWN, premises.shown.length)} to=${place('story')} />`;
}

/** What the project has made: the book, its chapters, and what the last steps wrote. */
function Made({ book, made }) {
  const chapters = book?.chapters ?? [];
  const rest = made.filter((path) => !chapters.includes(path));
  if (!book?.contents && chapters.length + rest.length === 0) return null;
  return html`<${Card} title=${t('now.made')}>
    ${(book?.contents || book?.ebook) && html`<div class="buttons">${book.contents && html`<a class="button main" href=${book.contents} target="_blank" rel="noopener">${t('now.book')}</a>`}${book.ebook && html`<a class="button" href=${book.ebook} download>${t('now.ebook')}</a>`}</div>`}
    ${chapters.length > 0 && html`<h3>${t('now.chapters', chapters.length)}</h3><ul class="plainlist columns3">${chapters.slice(0, MANY).map((path) => html`<li><${FileLink} path=${path} /></li>`)}</ul>${chapters.length > MANY && html`<p class="small muted">${t('and.more', count(chapters.length - MANY))}</p>`}`}
    ${rest.length > 0 && html`<h3>${t('now.last')}</h3><ul class="plainlist columns3">${rest.slice(0, MANY).map((path) => html`<li><${FileLink} path=${path} /></li>`)}</ul>`}</${Card}>`;
}

/** Whether a value of the state says anything. */
const isSaid = (of) => (Array.isArray(of) ? of.some(isSaid) : of && typeof of === 'object' ? Object.values(of).some(isSaid) : of !== null && of !== undefined && of !== '');
/** A value of the state: short texts and lists as they are, objects key by key. */
function Value({ of }) {
  if (Array.isArray(of)) return of.length === 0 ? html`<span class="muted">–</span>` : html`<ul class="plainlist">${of.map((one) => html`<li><${Value} of=${one} /></li>`)}</ul>`;
  if (of && typeof of === 'object') {
    if (typeof of.item === 'string') return html`<strong>${of.item}</strong>${of.reason && html`: ${of.reason}`}${of.since && html` <span class="small muted"><${When} at=${of.since} /></span>`}`;
    return html`<dl class="facts">${Object.entries(of).filter(([, value]) => isSaid(value)).map(([key, value]) => html`<dt>${t(`state.key.${key}`)}</dt><dd><${Value} of=${value} /></dd>`)}</dl>`;
  }
  return of === null || of === '' ? html`<span class="muted">–</span>` : String(of);
}

const PROGRESS = { reported: 's-done', reported_twice: 's-done', running: 's-running', dead: 's-failed', overdue: 's-failed' };
const STATE = ['phase', 'current_task', 'progress', 'notes'];
/** Where a project with sessions stands: what is done, blocked and next, and who works on what. */
function Standing() {
  const found = useGet('standing');
  const { state, path, delegations = [] } = found.data ?? {};
  if (!state && delegations.length === 0) return html`<${Fault} error=${found.error} />`;
  const shown = Object.fromEntries(STATE.filter((key) => isSaid(state?.[key])).map((key) => [key, state[key]]));
  return html`<${Card} title=${t('now.standing')}>
    ${Object.keys(shown).length > 0 && html`<${Value} of=${shown} />`}
    ${delegations.length > 0 && html`<h3>${t('now.delegations')}</h3><ul class="list">${delegations.map((one) => html`<li><div class="row wrap"><span class="tag ${PROGRESS[one.progress] ?? ''}">${t(`delegation.${one.progress}`)}</span><${FileLink} path=${one.path}>${one.id}</${FileLink}>${one.deadline && html` <span class="small muted">${t('due')} ${one.deadline}</span>`}</div>
      <p class="clip">${one.task}</p>${one.reports.length > 0 && html`<p class="said clip">${one.reports.at(-1)}</p>`}</li>`)}</ul>`}
    ${path && html`<p class="small"><${FileLink} path=${path} /></p>`}</${Card}>`;
}

/** What the flow has cost until now. */
function SoFar() {
  const { data } = useGet('effort', { most: 0 });
  if (!data || data.all.attempts === 0) return null;
  const { attempts, input, output, cost, seconds } = data.all;
  return html`<p class="small sofar"><a href=${place('time')}>${t('now.sofar', count(attempts), took(seconds))}</a>${input + output > 0 && html` · ${count(input)} + ${count(output)} ${t('tokens')}`}${cost !== null && ` · ${cost.toFixed(2)}`}</p>`;
}

/** Steps that have nothing to do, because no unit is declared. */
const WithoutUnits = ({ flow }) => html`<p class="notice">${t('now.nounits', flow.without_units.map((name) => t(`step.${name}`)).join(', '))} ${flow.declared_by ? t('now.declares', t(`step.${flow.declared_by}`)) : t('now.declare')}</p>`;

function Held({ lease }) {
  const { busy, error, act } = useAct();
  const free = () => act(() => call('lease release', { token: lease.token }));
  return html`<li><div class="row wrap"><span class="tag">${t('lease')}</span><strong>${who(lease.holder)}</strong>
      <span class="muted">${t('until', when(lease.until))}</span>
      <button type="button" class="plain" disabled=${busy} onClick=${free}>${t('release')}</button></div>
    <p class="small">${lease.paths.map((path) => (isPath(path) ? html`<${FileLink} path=${path} /> ` : html`<code>${path}</code> `))}</p>
    <${Fault} error=${error} /></li>`;
}

const order = ['done', 'running', 'ready', 'waiting', 'stale', 'failed', 'blocked', 'pending', 'skipped'];

function Progress({ counts }) {
  const of = Object.fromEntries(counts);
  const all = counts.reduce((sum, [, number]) => sum + number, 0) || 1;
  const there = order.filter((state) => of[state]);
  return html`<div class="meter" role="img" aria-label=${there.map((s) => `${of[s]} ${t(`state.${s}`)}`).join(', ')}>
      ${there.map((state) => html`<span class="s-${state}" style=${{ width: `${(100 * of[state]) / all}%` }}></span>`)}</div>
    <p class="row wrap">${there.map((state) => html`<span class="tag s-${state}"><${Sign} state=${state} /> ${of[state]} ${t(`state.${state}`)}</span>`)}</p>`;
}

function Yours({ data }) {
  const flow = data.flow;
  const decisions = flow?.waiting ?? [];
  const causes = flow?.causes ?? [];
  if (decisions.length + causes.length + data.flagged.length + data.losses.length === 0) return null;
  const more = (data.flagged_all ?? 0) - Math.min(SHOWN, data.flagged.length);
  return html`<${Card} title=${t('now.yours')} tone="attention"><ul class="list">
    ${decisions.map((job) => html`<li key=${named(job)}><${Decision} job=${job} /></li>`)}
    ${causes.map((job) => html`<${Cause} key=${named(job)} job=${job} />`)}
    <${Overlap} causes=${causes} />
    ${flow?.causes_all > causes.length && html`<${More} of=${flow.causes_all} shown=${causes.length} to=${place('flow')} />`}
    ${data.losses.map((loss) => html`<li key=${loss.what}><div class="row wrap"><span class="tag s-failed">${t('class.flagged')}</span><span>${loss.what}</span></div><p class="small">${loss.help}</p></li>`)}
    ${data.flagged.slice(0, SHOWN).map((file) => html`<li key=${file.path}><div class="row wrap"><span class="tag s-failed">${t('class.flagged')}</span><a class="path" href=${fileAt(file.path)}>${file.path}</a></div><${Flagged} path=${file.path} /></li>`)}
    ${more > 0 && html`<li class="small"><a href=${place('memory', { class: 'flagged' })}>${t('and.more', count(more))}</a></li>`}</ul></${Card}>`;
}

/** How the flow stands, where nothing waits for a person. */
function Standstill({ flow, running }) {
  const of = Object.fromEntries(flow.counts.filter(([, number]) => number > 0));
  const done = Object.keys(of).length > 0 && Object.keys(of).every((state) => state === 'done' || state === 'skipped') && flow.without_units.length === 0;
  if (done) return html`<p class="small sofar">${t(of.skipped ? 'now.allskipped' : 'now.alldone')} <a href=${place('memory')}>${t('now.results')}</a></p>`;
  return html`<p class="small muted sofar">${of.ready && !running ? t('now.ready', count(of.ready)) : t('now.none.yours')}</p>`;
}

/** What is found to be in order, of what this project has. */
const inOrder = (flow, project) => [flow && 'now.none.stale', 'now.none.links', project.has.threads && 'now.none.story'].filter(Boolean);

export function Now({ project }) {
  const now = useGet('now');
  const concerns = useGet('concerns');
  // The links of very many files are not read after every commit: the server says when it pays to ask again.
  const again = concerns.error?.status === 504 ? 2000 : concerns.data?.again;
  useEffect(() => {
    if (!again) return undefined;
    const timer = setTimeout(concerns.reload, again + 50);
    return () => clearTimeout(timer);
  }, [concerns.data, concerns.error]);
  return html`<${Hint} of="now" /><${Shown} from=${now}>${(data) => {
    const flow = data.flow;
    const waits = data.flagged.length + data.losses.length > 0 || (flow && flow.waiting.length + flow.causes.length > 0);
    const found = concerns.data;
    const wrong = (flow?.stale.length ?? 0) + (found ? found.broken.all + found.overdue.all + found.premises.all : 0);
    return html`<div class="stacks"><div>
      <${Yours} data=${data} />
      ${project.has.memory && html`<${Proposals} />`}
      <${Standing} />
      ${flow && html`<${PageRun} />`}
      ${flow && html`<${Card} title=${t('now.running')}>
        ${data.attempts.length === 0 ? html`<${Empty}>${t('now.none.running')}</${Empty}>` : html`<ul class="list">${data.attempts.map((attempt) => html`<${Running} key=${attempt.attempt} attempt=${attempt} />`)}</ul>`}
        ${data.attempts.length === 0 && flow?.ready.length > 0 && html`<div class="buttons"><${RunButton} main=${true} label=${t('run.go')} /></div>
          <${Shell} of="quipu run --by NAME" />`}
      </${Card}>`}
      ${data.workers.length > 0 && html`<${Card} title=${t('now.workers')}><ul class="list">${data.workers.map((worker) => html`<${Worker} key=${worker.id} worker=${worker} />`)}</ul></${Card}>`}
      ${!(waits && found && wrong === 0) && html`<${Card} title=${t('now.trouble')}>
        ${wrong === 0 && html`<${Empty}>${found ? inOrder(flow, project).map((key) => t(key)).join(language() === 'zh' ? '' : ' ') : t(concerns.error && flow ? 'now.none.stale' : 'loading')}</${Empty}>`}
        <ul class="list">${flow?.stale.map((job) => html`<${Stale} key=${named(job)} job=${job} />`)}${flow?.stale.length > 0 && html`<li><div class="buttons"><${RunButton} stale=${true} label=${t('run.allstale')} /></div></li>`}${found && html`<${Concerns} found=${found} />`}</ul>
        ${concerns.error && (concerns.error.status === 504 ? html`<p class="small muted">${t('graph.long')}</p>` : html`<${Fault} error=${concerns.error} />`)}
      </${Card}>`}
      <${Card} title=${t('now.held')}>
        ${data.leases.length + data.sessions.length === 0 && html`<${Empty}>${t('now.none.held')}</${Empty}>`}
        <ul class="list">${data.leases.map((lease) => html`<${Held} key=${lease.token} lease=${lease} />`)}
        ${data.sessions.map((session) => html`<li><div class="row wrap"><span class="tag">${t('session')}</span><strong>${who(session.who)}</strong>
          <span class="muted small">${t('since', when(session.since))}${session.over && ` · ${t('session.over')}`}</span></div></li>`)}</ul>
      </${Card}></div><div>
      <${Made} book=${data.book} made=${flow?.made ?? []} />
      ${flow && html`<${Card} title=${t('now.progress')}><${Progress} counts=${flow.counts} /><${SoFar} />
        ${flow.without_units.length > 0 && html`<${WithoutUnits} flow=${flow} />`}
        ${!waits && html`<${Standstill} flow=${flow} running=${data.attempts.length > 0} />`}</${Card}>`}
      <${Card} title=${t('now.recent')}><ol class="list">${data.recent.map((entry) => html`<li><div class="row wrap"><a href=${place('journal', { seq: entry.seq })}>@${entry.seq}</a>
        <strong>${who(entry.who)}</strong> <span class="muted small"><${When} at=${entry.at} /></span></div>
        <p class="small clip">${reason(entry.why) ?? entry.paths.join(', ')}</p></li>`)}</ol></${Card}>
    </div></div>
    ${!flow && html`<p class="hint">${t('now.noflow')}</p>`}`;
  }}</${Shown}>`;
}
