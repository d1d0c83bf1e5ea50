// Pause, resume and re-plan, for whoever has the token. It is kept in its field and nowhere else.

import { byId, fetched } from "./dom.js";

const form = byId("operator");
const opener = byId("operate");

opener.addEventListener("click", () => {
  form.hidden = !form.hidden;
  opener.setAttribute("aria-expanded", String(!form.hidden));
  if (!form.hidden) byId("token").focus();
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const asked = byId("asked");
  asked.textContent = "…";
  try {
    const response = await fetch("api/control", {
      method: "POST",
      headers: { Authorization: `Bearer ${byId("token").value}`, "Content-Type": "application/json" },
      body: JSON.stringify({ action: event.submitter.value }),
    });
    asked.textContent = (await response.json()).reason;
  } catch (error) {
    asked.textContent = `the controller does not answer: ${error.message}`;
  }
});

export async function offer() {
  opener.hidden = !(await fetched("api/abilities")).control;
}
