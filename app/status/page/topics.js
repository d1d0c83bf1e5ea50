// Gives each topic a colour and keeps it; pointing at a topic lights its partitions up.

import { byId, element } from "./dom.js";

const COLOURS = 10;
const places = new Map();
let chosen = null;
let redraw = () => {};

export const colour = (topic) => `c${(places.get(topic) ?? 0) % COLOURS}`;
export const isLit = (topic) => chosen === null || chosen === topic;
export const isChosen = () => chosen !== null;

export function onChoice(callback) {
  redraw = callback;
}

export function show(topics) {
  const fresh = [...topics].filter((topic) => !places.has(topic)).sort();
  for (const topic of fresh) {
    places.set(topic, places.size);
    const button = element(
      "button",
      { type: "button", "aria-pressed": "false", title: topic },
      element("span", { class: `swatch ${colour(topic)}`, "aria-hidden": "true" }),
      element("span", {}, topic),
    );
    button.addEventListener("click", () => {
      chosen = chosen === topic ? null : topic;
      for (const other of byId("legend").querySelectorAll("button")) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(chosen === topic));
      redraw();
    });
    byId("legend").append(element("li", {}, button));
  }
}
