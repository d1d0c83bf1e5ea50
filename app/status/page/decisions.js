// The list of decisions; each opens to its reasons, which are fetched when it is opened.

import { byId, element, fetched } from "./dom.js";
import { moment, plural, time } from "./format.js";

const PAGE = 40;
const list = byId("decisions");
const shown = new Map();
let oldest = null;

const place = (decision) => `${decision.epoch}/${decision.number}`;

function outcome(decision) {
  const { found, consumers, migrations, carried_out: carriedOut } = decision;
  const moves = plural(migrations, "partition");
  if (!carriedOut) return { kind: "kept", sign: "·", what: "Nothing changed" };
  if (found === 0) return { kind: "up", sign: "▲", what: `Started with ${plural(consumers, "consumer")}` };
  if (consumers > found) return { kind: "up", sign: "▲", what: `Scaled up from ${found} to ${plural(consumers, "consumer")}, ${moves} moved` };
  if (consumers < found) return { kind: "down", sign: "▼", what: `Scaled down from ${found} to ${plural(consumers, "consumer")}, ${moves} moved` };
  return { kind: "moved", sign: "⇄", what: `${plural(consumers, "consumer")} as before, ${moves} moved` };
}

function item(decision) {
  const { kind, sign, what } = outcome(decision);
  const because = decision.carried_out ? decision.triggers.join("; ") : decision.reason;
  const words = element("div", { class: "words" });
  const details = element(
    "details",
    {},
    element(
      "summary",
      {},
      element("span", { class: "sign", "aria-hidden": "true" }, sign),
      element("time", { datetime: moment(decision.decided_at) }, time(decision.decided_at)),
      element("span", { class: "what" }, what),
      element("span", { class: "cost" }, `Rscore ${decision.rscore.toFixed(2)}`),
      element("span", { class: "because" }, because),
    ),
    words,
  );
  details.addEventListener("toggle", () => {
    if (details.open && !words.hasChildNodes()) explain(words, decision);
  });
  return element("li", { class: kind, "data-place": place(decision) }, details);
}

async function explain(words, decision) {
  words.replaceChildren(element("p", {}, "…"));
  try {
    const { explanation } = await fetched(`api/decisions/${place(decision)}`);
    const nodes = [];
    for (const line of explanation) {
      if (!line.startsWith("  - ")) nodes.push(element("p", {}, line));
      else {
        if (nodes.at(-1)?.tagName !== "UL") nodes.push(element("ul"));
        nodes.at(-1).append(element("li", {}, line.slice(4)));
      }
    }
    words.replaceChildren(...nodes);
  } catch (error) {
    words.replaceChildren(element("p", {}, String(error.message)));
  }
}

function put(decisions, { before }) {
  const fresh = decisions.filter((decision) => !shown.has(place(decision)));
  const nodes = fresh.map((decision) => {
    const node = item(decision);
    shown.set(place(decision), node);
    return node;
  });
  if (before) list.prepend(...nodes);
  else list.append(...nodes);
  filter();
}

function filter() {
  const changesOnly = byId("changes-only").checked;
  for (const node of shown.values()) node.hidden = changesOnly && node.className === "kept";
  byId("decisions-empty").hidden = shown.size > 0;
}

export async function refresh() {
  const newest = await fetched(`api/decisions?limit=${PAGE}`);
  put(newest, { before: true });
  if (oldest === null && newest.length) setOldest(newest);
}

function setOldest(decisions) {
  oldest = decisions.length ? place(decisions.at(-1)) : oldest;
  byId("older").hidden = decisions.length < PAGE;
}

byId("changes-only").addEventListener("change", filter);
byId("older").addEventListener("click", async () => {
  const older = await fetched(`api/decisions?limit=${PAGE}&before=${oldest}`);
  put(older, { before: false });
  setOldest(older);
});
