// Curves, by uPlot. The numbers stand in a table beside every curve, so that no one needs to see it.

import uPlot from './vendor/uplot.js';
import { html, useEffect, useRef } from './vendor/preact.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const LINES = ['--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--line-6'];

/** `series`: { label, values, dashed? }. `names` are the marks of the x axis. */
export function Plot({ label, names, series, theme, top }) {
  const box = useRef(null);
  useEffect(() => {
    const element = box.current;
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--edge'), width: 1 }, ticks: { stroke: colour('--edge') }, font: '12px system-ui, sans-serif' };
    const plot = new uPlot({
      width: Math.max(240, element.clientWidth), height: 260, legend: { show: false }, cursor: { show: false }, padding: [12, 12, 0, 0],
      scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(top ?? 0, high * 1.1, 0.1)] } },
      axes: [{ ...axis, values: (_, marks) => marks.map((at) => (Number.isInteger(at) ? names[at] || String(at + 1) : '')) }, { ...axis, size: 44 }],
      series: [{}, ...series.map((one, nth) => ({
        label: one.label, stroke: colour(LINES[(one.colour ?? nth) % LINES.length]), width: 2, dash: one.dashed ? [4, 5] : undefined, points: { show: !one.dashed, size: 6 }, spanGaps: true,
      }))],
    }, [names.map((_, at) => at), ...series.map((one) => one.values)], element);
    const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(240, element.clientWidth), height: 260 }));
    watch.observe(element);
    return () => { watch.disconnect(); plot.destroy(); };
  }, [theme, JSON.stringify(series), names.join()]);
  return html`<figure class="plot"><div ref=${box} role="img" aria-label=${label}></div>
    <figcaption class="row wrap">${series.filter((one) => !one.dashed).map((one, nth) => html`<span class="key"><span class="line k-${((one.colour ?? nth) % LINES.length) + 1}" aria-hidden="true"></span>${one.label}</span>`)}</figcaption></figure>`;
}
