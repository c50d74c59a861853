import { readStored, writeStored } from "./storage.ts";
import { STORED_THEME, type Theme, THEMES } from "./themes.ts";

export function chosenTheme(): Theme {
  const stored = readStored("localStorage", STORED_THEME);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  writeStored("localStorage", STORED_THEME, theme);
}
