type StorageArea = "localStorage" | "sessionStorage";

/** Null if nothing is stored, or if the browser forbids storage. */
export function readStored(area: StorageArea, name: string): string | null {
  try {
    return window[area].getItem(name);
  } catch {
    return null;
  }
}

/** Null removes it. Returns whether the browser allows it; otherwise the page keeps it until it is closed. */
export function writeStored(area: StorageArea, name: string, value: string | null): boolean {
  try {
    if (value === null) window[area].removeItem(name);
    else window[area].setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

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
