// Contract: which role reads and writes which files, by which rule; and whether one may write one path.

import { html, useEffect, useLayoutEffect, useState } from '../vendor/preact.js';
import { Card, ClassTag, Empty, Hint, RulePlace, Shown, go, useGet } from '../ui.js';
import { useRoving } from '../keys.js';
import { own } from '../sentences.js';
import { t } from '../words.js';

const KINDS = { write: 'W', read: 'R', deny: '✕', ask: '?' };
const has = (cell, kind) => cell[kind].length > 0;
/** A deny list does not take back what a pointer names exactly. */
const yields = (cell, file) => [...cell.read, ...cell.write].some((one) => one.path === file.path);
const shown = (cell, file) => Object.keys(KINDS).filter((kind) => has(cell, kind) && !(kind === 'deny' && yields(cell, file)));

function Verdict({ of, title, children }) {
  return html`<p><span class="tag ${of.allowed ? 's-done' : 's-failed'}">${of.allowed ? '✓' : '✕'} ${title}: ${t(of.allowed ? 'yes' : 'no')}</span> ${children}</p>
    ${of.what && html`<p class="said">${of.what}</p>`}${of.place && html`<p class="small">${t('rule')}: <${RulePlace} at=${of.place} /></p>`}`;
}

function Answer({ query }) {
  const found = useGet('may', { path: query.path, role: query.role, unit: query.unit });
  return html`<div role="status"><${Shown} from=${found}>${(data) => html`
    <p class="row wrap"><${ClassTag} of=${data.class} /><code class="path">${data.path}</code>${data.rule ? html`<span class="small muted">${t('rule')}: <code>${data.rule.path}</code> <${RulePlace} at=${data.rule.place} /></span>` : html`<span class="small muted">${t('about.free')}</span>`}</p>
    <${Verdict} of=${data.read} title=${t('may.read')}>${data.read.sections && html`<span class="small">${t('may.sections')} ${data.read.sections.map((one) => html`<code>${one}</code> `)}</span>`}${data.read.ask && html`<span class="small">${t('may.ask')}</span>`}</${Verdict}>
    <${Verdict} of=${data.write} title=${t('may.write')}>${data.write.acts.length > 0 && html`<span class="small">${data.write.acts.map((act) => t(`act.${act}`)).join(', ')}</span>`}</${Verdict}>
    ${!data.write.allowed && !data.write.what && html`<p class="said">${t(`about.${data.class}`)}</p>`}`}</${Shown}></div>`;
}

function May({ query, data }) {
  const [given, setGiven] = useState(query);
  useEffect(() => { setGiven(query); }, [JSON.stringify(query)]);
  const files = useGet('files', { q: given.path, limit: 30 }, { live: false });
  const change = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  const send = (event) => { event.preventDefault(); go('contract', { ...query, path: given.path, role: given.role, unit: given.unit }); };
  return html`<${Card} title=${t('may.title')}><form class="row wrap filters" onSubmit=${send}>
      <label><span class="label">${t('may.role')}</span><select value=${given.role ?? ''} onChange=${change('role')}><option value="">${t('may.person')}</option>${data.roles.map((role) => html`<option value=${role.name}>${role.name}</option>`)}</select></label>
      ${data.units.length > 0 && html`<label><span class="label">${t('may.unit')}</span><input type="search" list="units" value=${given.unit ?? ''} onInput=${change('unit')} /></label><datalist id="units">${data.units.map((unit) => html`<option value=${unit}></option>`)}</datalist>`}
      <label class="grow"><span class="label">${t('may.path')}</span><input type="search" list="paths" required placeholder=${data.files[0] ? t('may.example', data.files[0].path) : ''} value=${given.path ?? ''} onInput=${change('path')} /></label><datalist id="paths">${files.data?.files.map((file) => html`<option value=${file.path}></option>`)}</datalist>
      <button class="main">${t('may.do')}</button></form>
    ${query.path && html`<${Answer} query=${query} />`}</${Card}>`;
}

function Chosen({ file, role, cell, onClose }) {
  // On a narrow screen the answer lies over the lower half, so the cell goes to the upper one.
  useLayoutEffect(() => document.querySelector('.rules .cell[aria-pressed="true"]')?.scrollIntoView({ block: matchMedia('(max-width: 60rem)').matches ? 'center' : 'nearest', inline: 'nearest' }), [file, role]);
  return html`<aside class="panel" aria-label=${`${role.name}: ${file.path}`}><div class="row spread"><h2>${role.name} · <span class="path">${file.path}</span></h2><button type="button" class="plain" onClick=${onClose}>${t('close')} ✕</button></div>
    <p class="muted">${own(role.title)}: ${own(role.duty)}</p>
    ${Object.keys(KINDS).every((kind) => !has(cell, kind)) && html`<${Empty}>${t('contract.nothing')}</${Empty}>`}
    ${shown(cell, file).includes('read') && shown(cell, file).includes('deny') && html`<p class="notice">${t('contract.some')}</p>`}
    ${Object.keys(KINDS).filter((kind) => has(cell, kind)).map((kind) => html`<h3>${t(`may.${kind}`)}</h3>${kind === 'deny' && yields(cell, file) && html`<p class="small">${t('contract.yields')}</p>`}<ul class="plainlist">${cell[kind].map((one) => html`<li><code class="path">${one.path}${one.section ? `#${one.section}` : ''}</code> <span class="small"><${RulePlace} at=${one.place} /></span>${own(one.why) && html`<p class="small">${own(one.why)}</p>`}</li>`)}</ul>`)}
    ${file.people_only && html`<p class="notice">${t('contract.people')}</p>`}</aside>`;
}

export function ContractView({ query }) {
  const found = useGet('contract');
  const table = useRoving('button.cell');
  return html`<${Hint} of="contract" /><${Shown} from=${found}>${(data) => {
    const file = data.files.find((one) => one.path === query.file && one.place === (query.rule ?? one.place));
    const at = data.roles.findIndex((role) => role.name === query.of);
    const choose = (one, role) => go('contract', { ...query, file: one.path, rule: one.place, of: role.name }, { replace: true });
    return html`<${May} query=${query} data=${data} />
      ${data.roles.length === 0 ? html`<${Empty}>${t('contract.noroles')}</${Empty}>` : html`<p class="row wrap legend">${Object.entries(KINDS).map(([kind, sign]) => html`<span class="key"><span class="may m-${kind}" aria-hidden="true" data-sign=${sign}></span>${t(`may.${kind}`)}</span>`)}<span class="key">${t('contract.empty')}</span></p>`}
      <div class=${file && at >= 0 ? 'split sheet' : ''}><div class="wide sticky" tabIndex="0" role="group" aria-label=${t('contract.table')} ref=${table}><table class="cells rules">
        <thead><tr><th scope="col">${t('journal.file')}</th>${data.roles.map((role) => html`<th scope="col" title=${`${own(role.title)}: ${own(role.duty)}\n${role.place}`}><span>${role.name}</span></th>`)}</tr></thead>
        <tbody>${data.files.map((one) => html`<tr><th scope="row"><code class="path" title=${own(one.about)}>${one.path}</code> <${ClassTag} of=${one.class} /> <span class="small muted"><${RulePlace} at=${one.place} /></span></th>
          ${data.roles.map((role, nth) => {
            const cell = one.roles[nth];
            const kinds = shown(cell, one);
            const said = `${role.name}, ${one.path}: ${kinds.length ? kinds.map((kind) => t(`may.${kind}`)).join(', ') : t('contract.nothing')}`;
            return html`<td><button type="button" class="cell" aria-pressed=${file === one && at === nth} aria-label=${said} title=${said} onClick=${() => choose(one, role)}>${kinds.map((kind) => html`<span class="may m-${kind}" aria-hidden="true" data-sign=${KINDS[kind]}></span>`)}</button></td>`;
          })}</tr>`)}</tbody></table></div>
        ${file && at >= 0 && html`<${Chosen} file=${file} role=${data.roles[at]} cell=${file.roles[at]} onClose=${() => go('contract', { ...query, file: undefined, rule: undefined, of: undefined })} />`}</div>`;
  }}</${Shown}>`;
}
