import { readStored, writeStored } from "./storage.ts";

/** The theme follows the system unless the person has chosen one in this browser. */
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const THEME = "petstore-theme";

export function chosenTheme(): Theme {
  const stored = readStored("localStorage", THEME);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  writeStored("localStorage", THEME, theme);
}
