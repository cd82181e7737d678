// Who a person of the story is, what happens when, and who knows what: as memory and manuscripts say.

import { html, useEffect, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Card, Dialog, Empty, Fault, FileLink, Shown, go, place, useAct, useCall, useGet } from '../ui.js';
import { said } from '../sentences.js';
import { t } from '../words.js';

export function Place({ at }) {
  const [, path, line] = /^(.*):(\d+)$/.exec(at) ?? [null, at, null];
  return path === 'claim' ? html`<span class="muted">${t('line', line)}</span>` : html`<${FileLink} path=${path} line=${line} />`;
}

export const Level = ({ of }) => (of ? html`<span class="tag level-${of}">${t(`level.${of}`)}</span>` : null);

const Period = ({ of }) => (of?.from || of?.until ? html` <span class="tag">${[of.from && t('from', of.from), of.until && t('until', of.until)].filter(Boolean).join(t('comma'))}</span>` : null);

/** The question whether a contradiction is meant. `within`: the file with the sentence, if it has one. */
export function Waive({ id, within }) {
  const { busy, error, act } = useAct();
  const [asking, setAsking] = useState(false);
  const [why, setWhy] = useState('');
  const send = async (event) => {
    event.preventDefault();
    if (await act(() => call('waive', { id, why, in: within }))) setAsking(false);
  };
  return html`<div class="buttons"><button type="button" onClick=${() => setAsking(true)}>${t('waive')} …</button></div>
    ${asking && html`<${Dialog} title=${`${t('waive')}: ${id}`} onClose=${() => setAsking(false)}><form onSubmit=${send}>
      <label>${t('waive.why')}<textarea rows="3" required value=${why} onInput=${(e) => setWhy(e.target.value)}></textarea></label><${Fault} error=${error} />
      <div class="buttons"><button class="main" disabled=${busy || !why.trim()}>${t('waive')}</button><button type="button" onClick=${() => setAsking(false)}>${t('cancel')}</button></div></form></${Dialog}>`}`;
}

/** Fields that narrow a view. The address has them, so that a view can be linked to. */
export function Fields({ query, fields }) {
  const [given, setGiven] = useState(query);
  const names = useGet('names');
  useEffect(() => { setGiven(query); }, [JSON.stringify(query)]);
  const send = (event) => { event.preventDefault(); go('story', given); };
  return html`<form class="row wrap filters" onSubmit=${send}>
    ${fields.includes('name') && html`<label class="grow"><span class="label">${t('novel.name')}</span><input type="search" list="names" value=${given.name ?? ''} onInput=${(e) => setGiven({ ...given, name: e.target.value, key: undefined, other: undefined })} /></label>
      <datalist id="names">${names.data?.names.map((name) => html`<option value=${name}></option>`)}</datalist>`}
    ${fields.includes('at') && html`<label><span class="label">${t('novel.at')}</span><input type="search" value=${given.at ?? ''} placeholder=${t('novel.example')} onInput=${(e) => setGiven({ ...given, at: e.target.value })} /></label>`}
    <button class="main">${t('novel.show')}</button></form>`;
}

/** What memory says against a fact: the same contradictions as in its check. */
const Against = ({ fact, conflicts }) => conflicts.filter((one) => one.at === fact.at || one.against === fact.at).map((one) => html`<p class="small bad" key=${one.id}>
  ${t('novel.contradicts')} <${Place} at=${one.at === fact.at ? one.against : one.at} />: ${said(one.why)}</p>`);

/** The key of a fact leads to its values over the chapters. */
const Fact = ({ of, owner, conflicts }) => html`<li class="fact"><div class="row wrap">${of.key && html`<a href=${place('story', { tab: 'people', name: owner, key: of.key })}><strong>${of.key}</strong></a>`}<span>${of.value}</span><${Period} of=${of.period} /><${Level} of=${of.level} /></div>
  <p class="small"><${Place} at=${of.at} />${of.source && html` ← <code class="path">${of.source}</code>`}</p><${Against} fact=${of} conflicts=${conflicts} /></li>`;

function Appearances({ of }) {
  const chapters = Object.entries(of.by_chapter);
  if (chapters.length === 0) return html`<${Empty}>${t('novel.unseen')}</${Empty}>`;
  const most = Math.max(...chapters.map(([, times]) => times));
  return html`<p class="small">${t('novel.first')} <${Place} at=${of.first} /> · ${t('novel.last')} <${Place} at=${of.last} /></p>
    <p class="small">${Object.entries(of.by_name).map(([name, times]) => html`<span class="tag">${name} ${times}</span> `)}</p>
    <ul class="bars chapters">${chapters.map(([chapter, times]) => html`<li><span>${t('chapter.nth', chapter)}</span><span class="score" aria-hidden="true"><span style=${{ width: `${(100 * times) / most}%` }}></span></span><span class="number">×${times}</span></li>`)}</ul>`;
}

function Progression({ name, fact }) {
  const found = useCall('story progression', { name, key: fact });
  return html`<${Shown} from=${found}>${({ values }) => html`<${Card} title=${t('novel.over', fact)}><ol class="list">${values.map((one) => html`<li><div class="row wrap"><span>${one.value}</span><${Period} of=${one.period} /></div>
    <p class="small"><${Place} at=${one.at} /></p></li>`)}</ol></${Card}>`}</${Shown}>`;
}

function Met({ name, query }) {
  const [other, setOther] = useState(query.other ?? '');
  const ask = (event) => { event.preventDefault(); go('story', { ...query, other }); };
  return html`<${Card} title=${t('novel.met')}><form class="row wrap filters" onSubmit=${ask}>
      <label class="grow"><span class="label">${t('novel.other')}</span><input type="search" list="names" value=${other} onInput=${(e) => setOther(e.target.value)} /></label><button>${t('novel.show')}</button></form>
    ${query.other && html`<${LastMet} key=${query.other} one=${name} other=${query.other} />`}</${Card}>`;
}

function LastMet({ one, other }) {
  const found = useCall('story met', { one, other });
  return html`<${Shown} from=${found}>${({ met }) => (met === null ? html`<${Empty}>${t('novel.nevermet')}</${Empty}>`
    : html`<p><strong>${met.point}</strong> ${met.scene} <span class="small"><${Place} at=${met.at} /></span></p>
      ${met.passages.map((passage) => html`<blockquote>${passage.text} <span class="small"><${Place} at=${passage.at} /></span></blockquote>`)}`)}</${Shown}>`;
}

function SheetOf({ name, at, query }) {
  const sheet = useCall('story sheet', { name, at: at || undefined });
  const conflicts = useCall('check', { memory: true }).data?.conflicts ?? [];
  return html`<${Shown} from=${sheet}>${(data) => html`<div class="stacks"><div><${Card} title=${data.name}>
      <p class="small">${data.names.slice(1).join(', ')} ${data.at && html`<${Place} at=${data.at} />`}</p>
      ${data.facts.length + data.about.length === 0 ? html`<${Empty}>${t('novel.nofacts')}</${Empty}>` : html`<ul class="list">${data.facts.map((fact) => html`<${Fact} of=${fact} owner=${data.name} conflicts=${conflicts} />`)}
        ${data.about.map((one) => html`<li class="fact"><div class="row wrap"><strong>${one.what}</strong><a href=${place('story', { tab: 'people', name: one.who })}>${one.who}</a><${Period} of=${one.fact.period} /></div><p class="small"><${Place} at=${one.fact.at} /></p><${Against} fact=${one.fact} conflicts=${conflicts} /></li>`)}</ul>`}</${Card}></div>
    <div>${query.key && html`<${Progression} key=${query.key} name=${data.name} fact=${query.key} />`}
      <${Card} title=${t('novel.appears')}><${Appearances} of=${data.appearances} /></${Card}><${Met} name=${data.name} query=${query} /></div></div>`}</${Shown}>`;
}

export const Sheet = ({ query }) => html`<${Fields} query=${query} fields=${['name', 'at']} />
  ${query.name ? html`<${SheetOf} key=${query.name} name=${query.name} at=${query.at} query=${query} />` : html`<${Empty}>${t('novel.pick')}</${Empty}>`}`;

export function Timeline({ query }) {
  const timeline = useCall('story timeline', { of: query.name || undefined });
  return html`<${Fields} query=${query} fields=${['name']} /><${Shown} from=${timeline}>${({ moments }) => (moments.length === 0 ? html`<${Empty}>${t('novel.notime')}</${Empty}>`
    : html`<ol class="timeline">${moments.map((moment) => html`<li><h2>${moment.point}${moment.when && html` <span class="small muted">${moment.when}</span>`}</h2>
      <ul class="list">${moment.events.map((event) => html`<li class="event">${event.text} <span class="small"><${Place} at=${event.at} /></span></li>`)}
      ${moment.changes.map((change) => html`<li><span class="tag ${change.begins ? 's-done' : 's-pending'}">${t(change.begins ? 'begins' : 'ends')}</span> <a href=${`#/story?${new URLSearchParams({ tab: 'people', name: change.owner })}`}>${change.owner}</a> ${change.text} <span class="small"><${Place} at=${change.at} /></span></li>`)}</ul></li>`)}</ol>`)}</${Shown}>`;
}

const MIND = { knows: 's-done', believes: 's-stale', 'does-not-know': 's-pending' };

export function Knows({ query }) {
  const found = useCall('story knows', { name: query.name || undefined, at: query.at || undefined });
  return html`<${Fields} query=${query} fields=${['name', 'at']} /><${Shown} from=${found}>${({ knowledge }) => {
    if (knowledge.length === 0) return html`<${Empty}>${t('novel.noone')}</${Empty}>`;
    const people = [...new Set(knowledge.map((one) => one.name))];
    return html`<div class="grid">${people.map((name) => html`<${Card} title=${name}><ul class="list">${knowledge.filter((one) => one.name === name).map(({ fact }) => html`<li>
      <div class="row wrap"><span class="tag ${MIND[fact.kind] ?? ''}">${t(`mind.${fact.kind}`)}</span><span>${fact.value}</span><${Period} of=${fact.period} /></div><p class="small"><${Place} at=${fact.at} /></p></li>`)}</ul></${Card}>`)}</div>`;
  }}</${Shown}>`;
}
