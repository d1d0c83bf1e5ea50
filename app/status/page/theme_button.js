// The button that chooses light, dark, or what the system has; theme.js sets it before anything is drawn.

import { byId, say } from "./dom.js";

const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };
const themeButton = byId("theme");
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  say(themeButton, THEMES[theme]);
  themeButton.setAttribute("aria-label", `Theme: ${theme === "auto" ? "as the system" : theme}`);
  try {
    localStorage.setItem("kcga-theme", theme);
  } catch {
    // storage may be forbidden: the choice holds for this page
  }
}
setTheme(document.documentElement.dataset.theme ?? "auto");
themeButton.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % names.length]);
});
