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
