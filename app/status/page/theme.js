// Sets the theme that was chosen here before anything is drawn, so that nothing flashes.
const chosen = (() => {
  try {
    return localStorage.getItem("kcga-theme");
  } catch {
    return null; // storage may be forbidden
  }
})();
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
