// Makes elements. Whatever comes from outside becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export const element = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

export const drawn = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

// Sets the text only where it is another one: what does not change is not read out again.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// How things stand, in a few words each: pairs of a kind (none, good, warn, bad) and what it says.
export function stand(chips) {
  const node = byId("standing");
  const text = chips.map((chip) => chip.join("|")).join("||");
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...chips.map(([kind, said]) => element("span", { class: `chip ${kind}` }, said)));
}

// Whether what is shown is up to date.
export function live(isLive, text) {
  byId("live").dataset.live = isLive ? "yes" : "no";
  say(byId("live-text"), text);
}

export async function fetched(path) {
  const response = await fetch(path);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.reason ?? `${response.status}`);
  return answer;
}
