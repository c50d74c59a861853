/** The theme follows the system unless the person has chosen one in this browser. */
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const STORAGE_NAME = "petstore-theme";

export function chosenTheme(): Theme {
  try {
    const saved = localStorage.getItem(STORAGE_NAME);
    return THEMES.find((theme) => theme === saved) ?? "system";
  } catch {
    // A browser may forbid storage.
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    localStorage.setItem(STORAGE_NAME, theme);
  } catch {
    // It holds until the page is closed.
  }
}
