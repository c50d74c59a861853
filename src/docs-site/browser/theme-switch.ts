import { applyTheme, chooseTheme, chosenTheme, type Theme, THEMES } from "../../console/theme.ts";

const LABELS: Readonly<Record<Theme, string>> = { system: "System", light: "Light", dark: "Dark" };

/** A button that goes from the theme of the system to light, dark and back. */
export function startThemeSwitch(): void {
  applyTheme(chosenTheme());
  const button = document.querySelector<HTMLButtonElement>("button.theme");
  if (button === null) return;
  button.hidden = false;
  show(button, chosenTheme());
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length] ?? "system";
    chooseTheme(next);
    show(button, next);
  });
}

function show(button: HTMLButtonElement, theme: Theme): void {
  button.textContent = LABELS[theme];
  button.setAttribute("aria-label", `Theme: ${LABELS[theme]}`);
}
