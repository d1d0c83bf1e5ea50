// A figure with its unit, and a note below it.

import { byId, element, say } from "./dom.js";

export function tile(name, figure, unit, note, kind = "") {
  const node = byId(`t-${name}`);
  if (node.dataset.text !== `${figure} ${unit}`) {
    node.dataset.text = `${figure} ${unit}`;
    node.replaceChildren(figure, ...(unit ? [element("small", {}, unit)] : []));
  }
  say(byId(`t-${name}-note`), note);
  byId(`t-${name}-note`).className = `note ${kind}`;
}
