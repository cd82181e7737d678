// Graph: files and the links between them. d3-force places the nodes; this draws them, and lets one look around.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from '../vendor/d3-force.js';
import { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { ClassTag, Empty, Hint, Shown, fileAt, go, useGet } from '../ui.js';
import { t } from '../words.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const LEVELS = ['premise', 'arc', 'chapter', 'scene'];
const radius = (node) => Math.min(18, 4 + 1.6 * Math.sqrt(node.degree));
const short = (path) => path.split('/').pop().replace(/\.md$/, '');

/** Colour by level where any file has one, else by class. */
function toneOf(node, byLevel) {
  if (byLevel) return node.level ? `--level-${node.level}` : '--level-none';
  return `--class-${node.class}`;
}

function Canvas({ data, chosen, onChoose, theme }) {
  const box = useRef(null);
  const state = useRef({});
  const model = useMemo(() => {
    const nodes = data.nodes.map((node, id) => ({ ...node, id }));
    const links = data.links.map(([source, target, number, presses]) => ({ source, target, number, presses }));
    return { nodes, links, byLevel: nodes.some((node) => node.level) };
  }, [data]);

  useEffect(() => {
    const canvas = box.current;
    const context = canvas.getContext('2d');
    const view = { x: 0, y: 0, zoom: 1, own: false };
    const simulation = forceSimulation(model.nodes)
      .force('link', forceLink(model.links).distance(model.nodes.length > 300 ? 40 : 70).strength((link) => 0.7 / Math.min(link.source.degree || 1, link.target.degree || 1)))
      .force('charge', forceManyBody().strength(model.nodes.length > 300 ? -60 : -160).distanceMax(500))
      .force('x', forceX(0).strength((node) => (node.degree ? 0.07 : 0.3))).force('y', forceY(0).strength((node) => (node.degree ? 0.09 : 0.3))).force('apart', forceCollide((node) => radius(node) + 3)).stop();
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;

    const fit = () => {
      if (view.own || model.nodes.length === 0) return;
      const xs = model.nodes.map((n) => n.x), ys = model.nodes.map((n) => n.y);
      const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      view.zoom = Math.min(2, 0.95 * Math.min(canvas.clientWidth / (right - left + 80), canvas.clientHeight / (bottom - top + 60)));
      view.x = (left + right) / 2;
      view.y = (top + bottom) / 2;
    };
    const near = () => {
      const at = model.nodes.find((node) => node.path === state.current.chosen);
      if (!at) return null;
      const found = new Set([at.id]);
      for (const link of model.links) {
        if (link.source.id === at.id) found.add(link.target.id);
        if (link.target.id === at.id) found.add(link.source.id);
      }
      return found;
    };
    const draw = () => {
      const ratio = devicePixelRatio || 1;
      const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
      if (canvas.width !== Math.round(wide * ratio)) canvas.width = Math.round(wide * ratio);
      if (canvas.height !== Math.round(high * ratio)) canvas.height = Math.round(high * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, wide, high);
      context.translate(wide / 2, high / 2);
      context.scale(view.zoom, view.zoom);
      context.translate(-view.x, -view.y);
      const lit = near();
      const [ink, edge, bad, ground] = ['--ink', '--graph-edge', '--bad', '--ground'].map(colour);
      for (const link of model.links) {
        const shown = !lit || (lit.has(link.source.id) && lit.has(link.target.id));
        context.globalAlpha = shown ? (lit ? 0.9 : link.source.root ? 0.25 : 0.6) : 0.06;
        context.strokeStyle = link.presses ? bad : edge;
        context.lineWidth = (1 + Math.min(3, link.number - 1) * 0.5) / Math.sqrt(view.zoom);
        context.beginPath();
        context.moveTo(link.source.x, link.source.y);
        context.lineTo(link.target.x, link.target.y);
        context.stroke();
      }
      const labels = [];
      for (const node of model.nodes) {
        const r = radius(node);
        context.globalAlpha = !lit || lit.has(node.id) ? 1 : 0.15;
        context.fillStyle = colour(toneOf(node, model.byLevel));
        context.beginPath();
        context.arc(node.x, node.y, r, 0, 7);
        context.fill();
        if (node.orphan || node.dense || node.path === state.current.chosen) {
          context.strokeStyle = node.path === state.current.chosen ? ink : bad;
          context.lineWidth = node.path === state.current.chosen ? 3 : 2;
          context.setLineDash(node.orphan && node.path !== state.current.chosen ? [3, 3] : []);
          context.beginPath();
          context.arc(node.x, node.y, r + 3, 0, 7);
          context.stroke();
          if (node.dense && node.path !== state.current.chosen) { context.beginPath(); context.arc(node.x, node.y, r + 6, 0, 7); context.stroke(); }
          context.setLineDash([]);
        }
        if (!lit || lit.has(node.id)) labels.push(node);
      }
      // Labels where there is room for them: the chosen one and the best linked first.
      context.globalAlpha = 1;
      const size = 12 / view.zoom;
      context.font = `${size}px system-ui, sans-serif`;
      context.textAlign = 'center';
      const taken = [];
      labels.sort((a, b) => (b.path === state.current.chosen) - (a.path === state.current.chosen) || b.degree - a.degree);
      for (const node of labels.slice(0, 400)) {
        const text = short(node.path);
        const half = context.measureText(text).width / 2 + 2 / view.zoom;
        const y = node.y + radius(node) + size + 3 / view.zoom;
        const spot = [node.x - half, y - size, node.x + half, y + 3 / view.zoom];
        if (taken.some(([l, u, r, d]) => spot[0] < r && spot[2] > l && spot[1] < d && spot[3] > u)) continue;
        taken.push(spot);
        context.lineWidth = 3 / view.zoom;
        context.strokeStyle = ground;
        context.strokeText(text, node.x, y);
        context.fillStyle = ink;
        context.fillText(text, node.x, y);
      }
    };
    let frame = 0;
    const step = () => {
      const begun = performance.now();
      while (simulation.alpha() > 0.02 && performance.now() - begun < 12) simulation.tick();
      fit();
      draw();
      canvas.dataset.settled = simulation.alpha() <= 0.02 ? 'yes' : 'no';
      frame = simulation.alpha() > 0.02 ? requestAnimationFrame(step) : 0;
    };
    const go_on = () => { if (!frame) frame = requestAnimationFrame(step); };
    if (still) { while (simulation.alpha() > 0.02) simulation.tick(); fit(); draw(); canvas.dataset.settled = 'yes'; } else go_on();
    const watch = new ResizeObserver(() => { fit(); draw(); });
    watch.observe(canvas);

    const toGraph = (event) => {
      const frameOf = canvas.getBoundingClientRect();
      return [(event.clientX - frameOf.left - canvas.clientWidth / 2) / view.zoom + view.x, (event.clientY - frameOf.top - canvas.clientHeight / 2) / view.zoom + view.y];
    };
    const under = ([x, y]) => {
      let best = null, far = Infinity;
      for (const node of model.nodes) {
        const d = Math.hypot(node.x - x, node.y - y) - radius(node);
        if (d < far) [best, far] = [node, d];
      }
      return far < 8 / view.zoom ? best : null;
    };
    let held = null;
    const down = (event) => {
      held = { node: under(toGraph(event)), x: event.clientX, y: event.clientY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    };
    const move = (event) => {
      if (!held) { canvas.style.cursor = under(toGraph(event)) ? 'pointer' : 'grab'; return; }
      if (Math.hypot(event.clientX - held.x, event.clientY - held.y) > 3) held.moved = true;
      if (!held.moved) return;
      view.own = true;
      if (held.node) { [held.node.fx, held.node.fy] = toGraph(event); simulation.alpha(Math.max(simulation.alpha(), 0.15)); go_on(); return; }
      view.x -= event.movementX / view.zoom;
      view.y -= event.movementY / view.zoom;
      draw();
    };
    const up = () => {
      if (held?.node) { held.node.fx = held.node.fy = null; }
      if (held && !held.moved) state.current.onChoose(held.node?.path);
      held = null;
    };
    const scale = (by) => { view.own = true; view.zoom = Math.min(6, Math.max(0.05, view.zoom * by)); draw(); };
    const wheel = (event) => { event.preventDefault(); scale(Math.exp(-event.deltaY / 500)); };
    const key = (event) => {
      const step_of = { ArrowLeft: [-40, 0], ArrowRight: [40, 0], ArrowUp: [0, -40], ArrowDown: [0, 40] }[event.key];
      if (step_of) { view.own = true; view.x += step_of[0] / view.zoom; view.y += step_of[1] / view.zoom; draw(); } else if (event.key === '+' || event.key === '=') scale(1.25);
      else if (event.key === '-') scale(0.8);
      else if (event.key === 'Escape') state.current.onChoose(undefined);
      else return;
      event.preventDefault();
    };
    const handlers = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, wheel, keydown: key };
    for (const [name, handler] of Object.entries(handlers)) canvas.addEventListener(name, handler, { passive: false });
    state.current.draw = draw;
    return () => {
      cancelAnimationFrame(frame);
      watch.disconnect();
      for (const [name, handler] of Object.entries(handlers)) canvas.removeEventListener(name, handler);
    };
  }, [model, theme]);

  state.current.chosen = chosen;
  state.current.onChoose = onChoose;
  useEffect(() => { state.current.draw?.(); }, [chosen, theme]);
  return html`<canvas ref=${box} class="graph" tabIndex="0" role="img" aria-label=${`${t('graph')}: ${t('graph.counts', data.pages, data.links_all, data.broken_all, data.orphans_all, data.dense_all)}. ${t('graph.keys')}`}></canvas>`;
}

function Chosen({ data, path, focused, query }) {
  const at = data.nodes.findIndex((node) => node.path === path);
  const node = data.nodes[at];
  if (!node) return null;
  const neighbours = [...new Set(data.links.flatMap(([from, to]) => (from === at ? [to] : to === at ? [from] : [])))];
  return html`<aside class="panel"><h2 class="path">${node.path}</h2>
    <p class="row wrap"><${ClassTag} of=${node.class} />${node.level && html`<span class="tag level-${node.level}">${t(`level.${node.level}`)}</span>`}
      ${node.orphan && html`<span class="tag s-failed">${t('orphan')}</span>`}${node.dense && html`<span class="tag s-stale">${t('dense')}: ${node.dense}</span>`}${node.root && html`<span class="tag">${t('root')}</span>`}${data.broken[at] && html`<span class="tag s-failed">${data.broken[at]} ${t('broken')}</span>`}</p>
    <div class="buttons"><a class="button" href=${fileAt(node.path)}>${t('open')}</a>
      <button type="button" aria-pressed=${focused} onClick=${() => go('graph', focused ? { node: path } : { focus: path, node: path }, { replace: true })}>${focused ? t('graph.all') : t('graph.focus')}</button></div>
    <h3>${t('neighbours')} <span class="number muted">${neighbours.length}</span></h3>
    <ul class="plainlist">${neighbours.slice(0, 100).map((nth) => html`<li><a class="path" href=${`#/graph?${new URLSearchParams({ ...query, node: data.nodes[nth].path })}`}>${data.nodes[nth].path}</a></li>`)}</ul></aside>`;
}

export function Graph({ query, theme }) {
  const graph = useGet('graph', { focus: query.focus, depth: query.focus ? 2 : undefined });
  const [text, setText] = useState('');
  // The server gives up on the request, not on the reading: it is asked again.
  const late = graph.error?.status === 504;
  useEffect(() => {
    if (!late) return undefined;
    const timer = setTimeout(graph.reload, 500);
    return () => clearTimeout(timer);
  }, [graph.error]);
  if (late && !graph.data) return html`<${Hint} of="graph" /><p class="empty" role="status">${t('graph.long')}</p>`;
  return html`<${Hint} of="graph" /><${Shown} from=${graph}>${(data) => {
    if (data.links_all === 0) return html`<${Empty}>${t('graph.none')}</${Empty}>`;
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
      <div class=${query.node ? 'split' : ''}><div><${Canvas} data=${data} chosen=${query.node} onChoose=${choose} theme=${theme} /><p class="small muted">${t('graph.keys')}</p></div>
        ${query.node && html`<${Chosen} data=${data} path=${query.node} focused=${Boolean(query.focus)} query=${query} />`}</div>
      <details><summary>${t('graph.list')}</summary><ul class="plainlist columns3">${[...data.nodes].sort((a, b) => b.degree - a.degree).slice(0, 500).map((node) => html`<li><a class="path" href=${`#/graph?${new URLSearchParams({ ...query, node: node.path })}`}>${node.path}</a> <span class="number muted">${node.degree}</span>${node.orphan && html` <span class="tag s-failed">${t('orphan')}</span>`}</li>`)}</ul></details>`;
  }}</${Shown}>`;
}
