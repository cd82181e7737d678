// Marks what is wider than its place: `data-cut` names the sides on which it goes on, and the sheet fades them.

const WIDE = '.wide, .tabs, .columns, nav';

function mark() {
  for (const box of document.querySelectorAll(WIDE)) {
    const left = box.scrollLeft > 1;
    const right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    const cut = left && right ? 'both' : left ? 'start' : right ? 'end' : '';
    if (cut !== (box.dataset.cut ?? '')) { if (cut) box.dataset.cut = cut; else delete box.dataset.cut; }
  }
}

let asked = 0;
const ask = () => { asked ||= requestAnimationFrame(() => { asked = 0; mark(); }); };

/** From now on, after whatever may change a width. */
export function watchEdges() {
  new MutationObserver(ask).observe(document.body, { childList: true, subtree: true, characterData: true });
  addEventListener('scroll', ask, { capture: true, passive: true });
  addEventListener('resize', ask);
  ask();
}
