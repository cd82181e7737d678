/** The board: who works on what, live in a page. */

import { fetchState } from "./state";

/** One step of a flow, as the page shows it. */
export interface Card<T> {
  /** The unit it belongs to. */
  unit: string;
  state: T;
}

/** Draws every card into an element. */
export function draw(cards: Card<string>[], into: HTMLElement): number {
  for (const card of cards) {
    into.append(render(card));
  }
  return cards.length;
}

/** One card as an element. */
const render = (card: Card<string>): HTMLElement => {
  const element = document.createElement("li");
  element.textContent = `${card.unit}: ${card.state}`;
  return element;
};

/** Keeps the board up to date. */
export class Board {
  constructor(private readonly root: HTMLElement) {}

  /** Asks for the state and draws it. */
  async refresh(): Promise<number> {
    return draw(await fetchState(), this.root);
  }
}
