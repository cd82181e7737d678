// The picture of the graph. d3-force places the nodes; this draws them, and lets one look around.
//
// What a person has arranged outlives news: nodes keep their places, and the zoom stays.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from '../vendor/d3-force.js';
import { html, useEffect, useMemo, useRef } from '../vendor/preact.js';
import { t } from '../words.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const radius = (node) => Math.min(18, 4 + 1.6 * Math.sqrt(node.degree));
const short = (path) => path.split('/').pop().replace(/\.md$/, '');

/** Where every node was, and what part of the plane is seen, for the pages that are `about` one file or all. It outlives the view. */
let kept = { about: null };
/** Milliseconds of placing before the first picture, and at a time after it, where nothing may move before the eyes. */
const FIRST = 700;
const SLICE = 40;

/** Colour by level where any file has one, else by class. */
function toneOf(node, byLevel) {
  if (byLevel) return node.level ? `--level-${node.level}` : '--level-none';
  return `--class-${node.class}`;
}

export function Canvas({ data, about, chosen, onChoose, theme }) {
  const box = useRef(null);
  const state = useRef({});
  if (kept.about !== about) kept = { about, places: new Map(), view: { x: 0, y: 0, zoom: 1, own: false } };
  const own = kept;
  const { places, view } = own;
  const shape = JSON.stringify([data.nodes, data.links]);
  const model = useMemo(() => {
    const nodes = data.nodes.map((node, id) => ({ ...node, id, ...places.get(node.path) }));
    const links = data.links.map(([source, target, number, presses]) => ({ source, target, number, presses }));
    return { nodes, links, byLevel: nodes.some((node) => node.level) };
  }, [shape, about]);

  useEffect(() => {
    const canvas = box.current;
    const context = canvas.getContext('2d');
    const isNew = model.nodes.some((node) => node.x === undefined);
    const simulation = forceSimulation(model.nodes)
      .force('link', forceLink(model.links).distance(model.nodes.length > 300 ? 40 : 70).strength((link) => 0.7 / Math.min(link.source.degree || 1, link.target.degree || 1)))
      .force('charge', forceManyBody().strength(model.nodes.length > 300 ? -60 : -160).distanceMax(500))
      .force('x', forceX(0).strength((node) => (node.degree ? 0.07 : 0.3))).force('y', forceY(0).strength((node) => (node.degree ? 0.09 : 0.3))).force('apart', forceCollide((node) => radius(node) + 3)).stop();
    // Known nodes are where they belong; new ones only need some room.
    if (own.settled) simulation.alpha(isNew ? 0.1 : 0);
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
      for (const { path, x, y } of model.nodes) places.set(path, { x, y });
      if (simulation.alpha() <= 0.02) own.settled = true;
      canvas.dataset.zoom = view.zoom.toFixed(4);
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
        context.globalAlpha = !lit || lit.has(node.id) ? 1 : 0.4;
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
    // With reduced motion, two pictures are drawn: an early one, and the settled one.
    let slice = 0;
    const place = (long) => {
      const begun = performance.now();
      while (simulation.alpha() > 0.02 && performance.now() - begun < long) simulation.tick();
      const settled = simulation.alpha() <= 0.02;
      if (settled || long === FIRST) { fit(); draw(); }
      canvas.dataset.settled = settled ? 'yes' : 'no';
      slice = settled ? 0 : setTimeout(() => place(SLICE));
    };
    if (still) place(FIRST);
    else go_on();
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
    // Zooms so that what is below a point of the screen stays there; without a point, the middle does.
    const scale = (by, at) => {
      view.own = true;
      const [x, y] = at ? toGraph(at) : [view.x, view.y];
      const zoom = Math.min(6, Math.max(0.05, view.zoom * by));
      view.x = x - ((x - view.x) * view.zoom) / zoom;
      view.y = y - ((y - view.y) * view.zoom) / zoom;
      view.zoom = zoom;
      draw();
    };
    let held = null;
    const fingers = new Map();
    const pinch = () => {
      const [a, b] = [...fingers.values()];
      return { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2, far: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) };
    };
    const point = ({ clientX, clientY }) => ({ clientX, clientY });
    const down = (event) => {
      fingers.set(event.pointerId, point(event));
      canvas.setPointerCapture(event.pointerId);
      if (held?.node) { held.node.fx = held.node.fy = null; }
      held = fingers.size === 1 ? { node: under(toGraph(event)), x: event.clientX, y: event.clientY, moved: false } : { moved: true };
    };
    const move = (event) => {
      if (!held) { canvas.style.cursor = under(toGraph(event)) ? 'pointer' : 'grab'; return; }
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const before = fingers.size === 2 ? pinch() : null;
      fingers.set(event.pointerId, point(event));
      if (Math.hypot(event.clientX - held.x, event.clientY - held.y) > 3) held.moved = true;
      if (!held.moved) { fingers.set(event.pointerId, last); return; }
      view.own = true;
      if (held.node) { [held.node.fx, held.node.fy] = toGraph(event); simulation.alpha(Math.max(simulation.alpha(), 0.15)); go_on(); return; }
      const after = before ? pinch() : null;
      const [from, to] = before ? [before, after] : [last, event];
      view.x -= (to.clientX - from.clientX) / view.zoom;
      view.y -= (to.clientY - from.clientY) / view.zoom;
      if (before) scale(after.far / Math.max(1, before.far), after); else draw();
    };
    const up = (event) => {
      fingers.delete(event.pointerId);
      if (held?.node) { held.node.fx = held.node.fy = null; }
      if (held && !held.moved) state.current.onChoose(held.node?.path);
      held = fingers.size > 0 ? { moved: true } : null;
    };
    const wheel = (event) => { event.preventDefault(); scale(Math.exp(-event.deltaY / 500), event); };
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
      clearTimeout(slice);
      watch.disconnect();
      for (const [name, handler] of Object.entries(handlers)) canvas.removeEventListener(name, handler);
    };
  }, [model, theme]);

  state.current.chosen = chosen;
  state.current.onChoose = onChoose;
  useEffect(() => { state.current.draw?.(); }, [chosen, theme]);
  return html`<canvas ref=${box} class="graph" tabIndex="0" role="img" aria-label=${`${t('graph')}: ${t('graph.counts', data.pages, data.links_all, data.broken_all, data.orphans_all, data.dense_all)}. ${t('graph.keys')}`}></canvas>`;
}
