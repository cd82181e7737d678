// Graph: files and the links between them, one chosen file with its neighbours, and the same as a list.

import { html, useEffect, useState } from '../vendor/preact.js';
import { ClassTag, Empty, Hint, Shown, fileAt, go, useGet } from '../ui.js';
import { useRoving } from '../keys.js';
import { Canvas } from './canvas.js';
import { t } from '../words.js';

const LEVELS = ['premise', 'arc', 'chapter', 'scene'];

function Chosen({ data, path, focused, query }) {
  const at = data.nodes.findIndex((node) => node.path === path);
  const node = data.nodes[at];
  if (!node) return null;
  const neighbours = [...new Set(data.links.flatMap(([from, to]) => (from === at ? [to] : to === at ? [from] : [])))];
  return html`<aside class="panel"><div class="row spread"><h2 class="path">${node.path}</h2><button type="button" class="plain" onClick=${() => go('graph', {})}>${t('close')} ✕</button></div>
    <p class="row wrap"><${ClassTag} of=${node.class} />${node.level && html`<span class="tag level-${node.level}">${t(`level.${node.level}`)}</span>`}
      ${node.orphan && html`<span class="tag s-failed">${t('orphan')}</span>`}${node.dense && html`<span class="tag s-stale">${t('dense')}: ${node.dense}</span>`}${node.root && html`<span class="tag">${t('root')}</span>`}${data.broken[at] && html`<span class="tag s-failed">${data.broken[at]} ${t('broken')}</span>`}</p>
    <div class="buttons"><a class="button" href=${fileAt(node.path)}>${t('open')}</a>
      <button type="button" aria-pressed=${focused} onClick=${() => go('graph', focused ? { node: path } : { focus: path, node: path }, { replace: true })}>${focused ? t('graph.all') : t('graph.focus')}</button></div>
    <h3>${t('neighbours')} <span class="number muted">${neighbours.length}</span></h3>
    <ul class="plainlist">${neighbours.slice(0, 100).map((nth) => html`<li><a class="path" href=${`#/graph?${new URLSearchParams({ ...query, node: data.nodes[nth].path })}`}>${data.nodes[nth].path}</a></li>`)}</ul></aside>`;
}

export function Graph({ query, theme }) {
  const graph = useGet('graph', { focus: query.focus, depth: query.focus ? 1 : undefined });
  const [text, setText] = useState('');
  const list = useRoving('li');
  // The server gives up on the request, not on the reading: it is asked again.
  const late = graph.error?.status === 504;
  useEffect(() => {
    if (!late) return undefined;
    const timer = setTimeout(graph.reload, 500);
    return () => clearTimeout(timer);
  }, [graph.error]);
  if (late && !graph.data) return html`<${Hint} of="graph" /><p class="empty" role="status">${t('graph.long')}</p>`;
  return html`${graph.data?.links_all !== 0 && html`<${Hint} of="graph" />`}<${Shown} from=${graph}>${(data) => {
    if (data.links_all === 0) return html`<${Empty}>${t('graph.none', data.pages)}</${Empty}>`;
    const byLevel = data.nodes.some((node) => node.level);
    const keys = byLevel ? [...LEVELS.filter((level) => data.nodes.some((n) => n.level === level)).map((l) => [`--level-${l}`, `level-${l}`, t(`level.${l}`)]), ['--level-none', 'level-none', t('level.none')]]
      : [...new Set(data.nodes.map((n) => n.class))].map((c) => [`--class-${c}`, `class-${c}`, t(`class.${c}`)]);
    const choose = (path) => go('graph', { ...query, node: path }, { replace: true });
    const find = (value) => {
      setText(value);
      const exact = data.nodes.find((node) => node.path === value);
      if (exact) choose(exact.path);
    };
    const submit = (event) => {
      event.preventDefault();
      const found = data.nodes.find((node) => node.path.toLowerCase().includes(text.toLowerCase()));
      if (found) choose(found.path);
      else if (text) go('graph', { focus: text, node: text });
    };
    return html`<div class="row wrap">
        <form onSubmit=${submit}><label><span class="hidden">${t('graph.search')}</span><input type="search" list="pages" placeholder=${t('graph.search')} value=${text} onInput=${(e) => find(e.target.value)} /></label></form>
        <datalist id="pages">${data.nodes.slice(0, 1200).map((node) => html`<option value=${node.path}></option>`)}</datalist>
        ${query.focus && html`<button type="button" onClick=${() => go('graph', { node: query.node })}>${t('graph.all')}</button>`}
        <span class="small muted">${t('graph.counts', data.pages, data.links_all, data.broken_all, data.orphans_all, data.dense_all)}</span></div>
      ${!query.focus && data.nodes.length < data.pages && html`<p class="small">${t('graph.part', data.nodes.length, data.pages)}</p>`}
      <p class="row wrap legend">${keys.map(([, name, said]) => html`<span class="key"><span class="ball b-${name}" aria-hidden="true"></span>${said}</span>`)}
        <span class="key"><span class="ball orphan" aria-hidden="true"></span>${t('orphan')}</span><span class="key"><span class="ball dense" aria-hidden="true"></span>${t('dense')}</span></p>
      <div class=${query.node ? 'split' : ''}><div><${Canvas} data=${data} about=${data.focus} chosen=${query.node} onChoose=${choose} theme=${theme} /><p class="small muted">${t('graph.keys')}</p></div>
        ${query.node && html`<${Chosen} data=${data} path=${query.node} focused=${Boolean(query.focus)} query=${query} />`}</div>
      <details><summary>${t('graph.list')}</summary><ul class="plainlist columns3" ref=${list}>${[...data.nodes].sort((a, b) => b.degree - a.degree).slice(0, 500).map((node) => html`<li><a class="path" href=${`#/graph?${new URLSearchParams({ ...query, node: node.path })}`}>${node.path}</a> <span class="number muted">${node.degree}</span>${node.orphan && html` <span class="tag s-failed">${t('orphan')}</span>`}</li>`)}</ul></details>`;
  }}</${Shown}>`;
}
