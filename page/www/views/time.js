// Time and cost: when each attempt ran, and what steps, units and agents took, beside the estimate.

import { html, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { Card, Empty, Fault, Hint, Shown, Tabs, When, count, go, took, useAct, useGet, when } from '../ui.js';
import { useRoving } from '../keys.js';
import { jobAt, named } from './decide.js';
import { t } from '../words.js';

const LANE = 22;
const WIDE = 1000;
/** A pause that is longer than this part of all work is drawn this long. */
const PAUSE = 0.04;

/** Bars in lanes of their agents: attempts of one agent at the same time lie below each other. Long pauses are cut. */
function lay(attempts, running) {
  const bars = [...attempts.filter((one) => one.begun).map((one) => ({ ...one, from: Date.parse(one.begun), to: Date.parse(one.ended) })),
    ...running.map((one) => ({ ...one, ruling: 'running', from: Date.parse(one.at), to: Date.now() }))].sort((a, b) => a.from - b.from);
  const busy = [];
  for (const { from, to } of bars) {
    const last = busy.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to); else busy.push({ from, to: Math.max(to, from + 1) });
  }
  const work = busy.reduce((sum, one) => sum + one.to - one.from, 0);
  let at = 0;
  busy.forEach((one, nth) => {
    at += nth > 0 ? Math.min(one.from - busy[nth - 1].to, work * PAUSE) : 0;
    one.at = at;
    at += one.to - one.from;
  });
  const place = (moment) => { const one = busy.findLast((span) => span.from <= moment) ?? busy[0]; return (WIDE * (one.at + Math.min(moment, one.to) - one.from)) / Math.max(1, at); };
  const agents = new Map();
  for (const bar of bars) {
    const lanes = agents.get(bar.agent) ?? [];
    let lane = lanes.findIndex((end) => end <= bar.from);
    if (lane < 0) lane = lanes.length;
    lanes[lane] = bar.to;
    agents.set(bar.agent, lanes);
    Object.assign(bar, { lane, x: place(bar.from), wide: Math.max(2, place(bar.to) - place(bar.from)) });
  }
  let row = 0;
  const rows = [...agents].map(([agent, lanes]) => { const first = row; row += lanes.length; return { agent, first, lanes: lanes.length }; });
  const firsts = new Map(rows.map((one) => [one.agent, one.first]));
  bars.forEach((bar) => { bar.row = firsts.get(bar.agent) + bar.lane; });
  const pauses = busy.slice(1).map((one) => (WIDE * one.at) / Math.max(1, at));
  return { bars, rows, high: row * LANE, pauses, days: busy };
}

function Timeline({ data }) {
  const { bars, rows, high, pauses, days } = lay(data.attempts, data.running);
  if (bars.length === 0) return html`<${Empty}>${t('time.none')}</${Empty}>`;
  const [first, last] = [when(new Date(days[0].from)), when(new Date(days.at(-1).to))];
  return html`<div class="lanes"><div class="names">${rows.map((one) => html`<span style=${{ height: `${one.lanes * LANE}px` }}>${one.agent || t('time.quipu')}</span>`)}</div>
    <div class="wide" tabIndex="0" role="group" aria-label=${t('time.line')}><svg class="lines-of-work" viewBox=${`0 0 ${WIDE} ${high}`} preserveAspectRatio="none" style=${{ height: `${high}px` }} aria-hidden="true">
      ${pauses.map((x) => html`<path class="pause" d=${`M${x} 0V${high}`} />`)}
      ${bars.map((bar) => html`<a href=${jobAt(bar)} tabindex="-1"><rect class="r-${bar.ruling}" x=${bar.x} y=${bar.row * LANE + 3} width=${bar.wide} height=${LANE - 6}><title>${`${named(bar)} · ${bar.agent || t('time.quipu')} · ${took((bar.to - bar.from) / 1000)} · ${t(`ruling.${bar.ruling}`)}`}</title></rect></a>`)}
    </svg></div></div>
    <p class="row wrap small muted spread"><span>${first}</span><span>${took((days.at(-1).to - days[0].from) / 1000)}</span>${last !== first && html`<span>${last}</span>`}</p>
    <p class="row wrap legend">${['accepted', 'failed', 'running'].map((one) => html`<span class="key"><span class="swatch r-${one}" aria-hidden="true"></span>${t(`ruling.${one}`)}</span>`)}${pauses.length > 0 && html`<span class="key"><span class="swatch pause" aria-hidden="true"></span>${t('time.pause')}</span>`}</p>`;
}

const money = (cost) => (cost === null || cost === undefined ? '–' : cost.toFixed(cost < 1 ? 4 : 2));

/** Tokens, where an agent reported any. */
const used = (sum, name) => (sum.input + sum.output > 0 ? count(sum[name]) : '–');

/** What the jobs of an estimate come to, for each name of a group. */
function sums(jobs, nameOf) {
  const found = {};
  for (const job of jobs) {
    const name = nameOf(job) ?? '';
    const sum = found[name] ??= { input: 0, output: 0, cost: null };
    sum.input += job.input;
    sum.output += job.output;
    if (job.cost !== undefined) sum.cost = (sum.cost ?? 0) + job.cost;
  }
  return found;
}

function Group({ title, of, estimate, naming = (name) => name }) {
  const names = [...new Set([...Object.keys(of), ...Object.keys(estimate ?? {})])];
  const heads = ['attempts', 'failed', 'took', 'input', 'output', 'cost', ...(estimate ? ['estimated', 'estimated.cost'] : [])];
  const row = (name) => {
    const one = of[name] ?? { attempts: 0, failed: 0, seconds: 0, input: 0, output: 0, cost: null };
    const expected = estimate?.[name];
    return html`<tr><th scope="row">${naming(name) || '–'}</th><td class="number">${count(one.attempts)}</td><td class="number ${one.failed ? 'bad' : ''}">${count(one.failed)}</td><td class="number">${took(one.seconds)}</td>
      <td class="number">${used(one, 'input')}</td><td class="number">${used(one, 'output')}</td><td class="number">${money(one.cost)}</td>
      ${estimate && html`<td class="number">${expected ? `${count(expected.input)} + ${count(expected.output)}` : '–'}</td><td class="number">${money(expected?.cost)}</td>`}</tr>`;
  };
  return html`<div class="wide" tabIndex="0" role="group" aria-label=${title}><table class="figures"><thead><tr><th scope="col">${title}</th>${heads.map((name) => html`<th scope="col">${t(`time.${name}`)}</th>`)}</tr></thead><tbody>${names.map(row)}</tbody></table></div>`;
}

/** The estimate is computed from the views of all jobs, which takes a while: only on request. */
function Estimates({ data, query }) {
  const { busy, error, act } = useAct();
  const [found, setFound] = useState(null);
  const ask = async () => {
    const both = await act(() => Promise.all([get('estimate', { again: true }), get('estimate', {})]));
    if (both) setFound(both);
  };
  const group = query.of ?? 'steps';
  const nameOf = { steps: (job) => job.job.step, units: (job) => job.job.unit };
  const [whole, left] = found ?? [];
  return html`<div class="buttons"><button type="button" disabled=${busy} onClick=${ask}>${t(busy ? 'loading' : 'time.compare')}</button></div><${Fault} error=${error} />
    ${left && html`<p>${t('time.left', left.jobs.length, count(left.input), count(left.output))}${left.cost !== undefined && ` · ${money(left.cost)}`}</p><p class="small muted">${t('time.whole', count(whole.input), count(whole.output))}${whole.cost === undefined && ` ${t('time.noprice')}`}</p>`}
    <${Tabs} label=${t('time.groups')} chosen=${group} onChoose=${(of) => go('time', { ...query, of })} of=${[['steps', t('time.steps')], ['units', t('time.units')], ['agents', t('time.agents')]]} />
    <div role="tabpanel"><${Group} title=${t(`time.${group}`)} of=${data[group]} naming=${group === 'steps' ? (name) => name && t(`step.${name}`) : undefined} estimate=${whole && nameOf[group] ? sums(whole.jobs, nameOf[group]) : null} /></div>`;
}

const LISTED = 200;
function Attempts({ data }) {
  const rows = useRoving('tbody tr');
  return html`<details><summary>${t('time.list', count(data.attempts_all))}</summary><div class="wide" tabIndex="0" role="group" aria-label=${t('time.attempts')} ref=${rows}><table class="figures"><thead><tr>${['attempt', 'agent', 'begun', 'took', 'input', 'output', 'cost'].map((name) => html`<th scope="col">${t(`time.${name}`)}</th>`)}</tr></thead>
    <tbody>${data.attempts.slice(-LISTED).reverse().map((one) => html`<tr key=${one.attempt}><th scope="row"><a href=${jobAt(one)}>${named(one)}</a> ${one.ruling === 'failed' && html`<span class="tag s-failed">${t('ruling.failed')}</span>`}</th><td>${one.agent}</td><td>${one.begun && html`<${When} at=${one.begun} />`}</td>
      <td class="number">${one.begun ? took((Date.parse(one.ended) - Date.parse(one.begun)) / 1000) : '–'}</td><td class="number">${one.usage ? count(one.usage.input) : '–'}</td><td class="number">${one.usage ? count(one.usage.output) : '–'}</td><td class="number">${money(one.usage?.cost)}</td></tr>`)}</tbody></table></div></details>`;
}

export function Time({ query }) {
  const effort = useGet('effort');
  return html`<${Hint} of="time" /><${Shown} from=${effort}>${(data) => html`
    <div class="tiles">${[['attempts', count(data.all.attempts)], ['failed', count(data.all.failed)], ['took', took(data.all.seconds)], ['input', used(data.all, 'input')], ['output', used(data.all, 'output')], ['cost', money(data.all.cost)]].map(([name, said]) => html`<p class="tile"><span class="label">${t(`time.${name}`)}</span><strong class="number">${said}</strong></p>`)}</div>
    <${Card} title=${t('time.line')}><${Timeline} data=${data} /><${Attempts} data=${data} /></${Card}>
    <${Card} title=${t('time.groups')}><${Estimates} data=${data} query=${query} /></${Card}>`}</${Shown}>`;
}
