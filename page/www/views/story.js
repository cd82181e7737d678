// Story: does a new text contradict what is written, what presses on what, which promises are open.

import { html, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Card, Empty, Fault, Hint, Shown, Tabs, fileAt, go, useAct, useCall } from '../ui.js';
import { Plot } from '../plot.js';
import { Relations, Report } from './continuity.js';
import { Knows, Level, Place, Sheet, Timeline, Waive } from './novel.js';
import { Proposals } from './learned.js';
import { said } from '../sentences.js';
import { t } from '../words.js';

/** What memory says against itself. */
function Inside() {
  const found = useCall('check', { memory: true });
  return html`<${Card} title=${t('story.inside')}><${Shown} from=${found}>${(data) => html`
    ${data.conflicts.length === 0 && html`<${Empty}>${t('story.inside.none')}</${Empty}>`}
    ${data.waived > 0 && html`<p class="small muted">${t('story.waived', data.waived)}</p>`}
    ${data.conflicts.map((one) => html`<div class="conflict" key=${one.id}>
      <div class="sides"><blockquote>${one.text} <span class="small"><${Place} at=${one.at} /></span></blockquote><blockquote>${one.against_text} <span class="small"><${Place} at=${one.against} /></span></blockquote></div>
      <p class="small">${said(one.why)}</p><${Waive} id=${one.id} /></div>`)}`}</${Shown}></${Card}>`;
}

function Check() {
  const [text, setText] = useState('');
  const [found, setFound] = useState(null);
  const { busy, error, act } = useAct();
  const check = async (event) => {
    event.preventDefault();
    const told = await act(() => call('check', { claim: text }));
    if (told) setFound(told.data);
  };
  const open = found?.claims.filter((one) => one.verdict !== 'conflict' && one.evidence.length > 0) ?? [];
  return html`<${Card} title=${t('story.check')}>
    <form onSubmit=${check}><label>${t('story.paste')}<textarea rows="4" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></label>
      <div class="buttons"><button class="main" disabled=${busy || !text.trim()}>${busy ? t('loading') : t('story.do')}</button></div></form>
    <${Fault} error=${error} />
    <div role="status">${found && html`<p><strong class=${found.conflicts.length ? 'bad' : 'good'}>${found.conflicts.length ? t('story.conflicts', found.conflicts.length) : t('story.fine', found.claims.length)}</strong></p>`}</div>
    ${found?.conflicts.map((one) => html`<div class="conflict">
      <div class="sides"><div><h3>${t('story.new')} <span class="small"><${Place} at=${one.at} /></span></h3><blockquote>${one.claim}</blockquote></div>
      <div><h3>${t('story.written')} <span class="small"><${Place} at=${one.against} /></span> <${Level} of=${one.level} /></h3><blockquote>${one.evidence}</blockquote></div></div>
      <p class="small">${said(one.why)} <span class="muted">(${one.judge}, ${one.confidence.toFixed(2)})</span></p><${Waive} id=${one.id} /></div>`)}
    ${open.length > 0 && html`<details><summary>${t('story.unknown')} (${open.length})</summary><ul class="list">${open.slice(0, 50).map((one) => html`<li><p>${one.claim.text}</p><ul>${one.evidence.map((evidence) => html`<li class="small"><${Place} at=${evidence.at} /> <${Level} of=${evidence.level} /> ${evidence.text}</li>`)}</ul></li>`)}</ul></details>`}
  </${Card}>`;
}

function Tension({ theme }) {
  const tension = useCall('tension');
  return html`<${Card} title=${t('story.tension')}><${Shown} from=${tension}>${(data) => {
    if (data.tension.length === 0) return html`<${Empty}>${t('story.notension')}</${Empty}>`;
    const names = Array.from({ length: data.last }, (_, at) => String(at + 1));
    const shown = data.tension.slice(0, 6);
    const series = shown.flatMap((one, nth) => [{ label: `${one.target} [${t(`level.${one.level}`)}]`, values: one.curve, colour: nth },
      { label: '', values: names.map(() => one.threshold), dashed: true, colour: nth }]);
    return html`<${Plot} label=${t('story.tension')} names=${names} series=${series} theme=${theme} top=${Math.max(...shown.map((one) => one.threshold)) * 1.1} />
      <ul class="list">${data.tension.map((one) => { const [path, anchor] = one.target.split('#'); return html`<li>
        <div class="row wrap"><a class="path" href=${fileAt(path, { anchor })}>${one.target}</a><${Level} of=${one.level} /><span class="small">${one.curve.at(-1)} · ${t('story.threshold', one.threshold)}</span>${one.gives_way != null && html`<span class="tag s-failed">${t('gives.way')}: ${t('chapter.nth', one.gives_way)}</span>`}</div>
        <ul>${one.presses.map((press) => html`<li class="small">${t('chapter.nth', press.chapter)}, +${press.weight}: ${press.text} <${Place} at=${press.at} /></li>`)}</ul></li>`; })}</ul>`;
  }}</${Shown}></${Card}>`;
}

const number = (text) => { const found = /\d+/.exec(text ?? ''); return found ? Number(found[0]) : null; };
const TONE = { overdue: 'failed', due: 'stale', open: 'ready', ahead: 'pending', closed: 'done' };

function Threads() {
  const threads = useCall('threads');
  return html`<${Card} title=${t('story.threads')}><${Shown} from=${threads}>${(data) => {
    if (data.threads.length === 0) return html`<${Empty}>${t('story.nothreads')}</${Empty}>`;
    const ends = data.threads.flatMap(({ thread }) => [number(thread.planted), number(thread.due), number(thread.closed)]);
    const last = Math.max(data.at ?? 1, 1, ...ends.filter((n) => n !== null));
    const left = (n) => `${(100 * (n - 0.5)) / last}%`;
    return html`<ul class="threads">${data.threads.map(({ standing, thread }) => {
      const [planted, due, closed] = [number(thread.planted), number(thread.due), number(thread.closed)];
      const until = closed ?? due ?? last;
      return html`<li><div class="row wrap"><strong>${thread.name}</strong><span class="tag s-${TONE[standing]}">${t(`thread.${standing}`)}</span><span class="small"><${Place} at=${thread.at} /></span></div>
        ${thread.promise && html`<p class="small">${thread.promise}</p>`}
        ${planted !== null && html`<div class="track" role="img" aria-label=${[thread.planted && `${t('planted')} ${thread.planted}`, thread.due && `${t('due')} ${thread.due}`, thread.closed && `${t('closed')} ${thread.closed}`].filter(Boolean).join(', ')}>
          <span class="span s-${TONE[standing]}" style=${{ left: left(planted), width: `${(100 * Math.max(0.15, until - planted)) / last}%` }}></span>
          <span class="dot" style=${{ left: left(planted) }}></span>${due !== null && html`<span class="dot due" style=${{ left: left(due) }}></span>`}${closed !== null && html`<span class="dot end" style=${{ left: left(closed) }}></span>`}
          ${data.at != null && html`<span class="here" style=${{ left: left(data.at) }}></span>`}</div>
        <p class="small muted">${t('planted')} ${thread.planted}${thread.due && html` · ${t('due')} ${thread.due}`}${thread.closed && html` · ${t('closed')} ${thread.closed}`}</p>`}</li>`;
    })}</ul>`;
  }}</${Shown}></${Card}>`;
}

const Tensions = ({ theme }) => html`<div class="stacks"><div><${Proposals} /><${Check} /><${Inside} /><${Tension} theme=${theme} /></div><div><${Threads} /></div></div>`;

export function Story({ query, project, theme }) {
  const tabs = [['check', t('story.tab.check')], ['people', t('story.tab.people')], ['time', t('story.tab.time')], ['knows', t('story.tab.knows')], ['relations', t('story.tab.relations')], ['report', t('story.tab.report')]];
  const tab = project.has.memory && tabs.some(([name]) => name === query.tab) ? query.tab : 'check';
  return html`<${Hint} of="story" />${project.has.memory && html`<${Tabs} label=${t('story')} chosen=${tab} onChoose=${(name) => go('story', { ...query, tab: name })} of=${tabs} />`}
    <div class="body" role=${project.has.memory ? 'tabpanel' : undefined}>${{
      check: () => html`<${Tensions} theme=${theme} />`, people: () => html`<${Sheet} query=${query} />`,
      time: () => html`<${Timeline} query=${query} />`, knows: () => html`<${Knows} query=${query} />`,
      relations: () => html`<${Relations} query=${query} />`, report: () => html`<${Report} />`,
    }[tab]()}</div>`;
}
