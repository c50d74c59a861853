/**
 * The API key that requests carry. It is in the memory of the page, and nowhere else unless the person asks to remember
 * it: then it is in the session storage of this tab, which ends with the tab.
 */
const STORAGE_NAME = "petstore-docs-key";

export interface KeyMemory {
  readonly key: string;
  readonly isRemembered: boolean;
}

export function rememberedKey(): KeyMemory {
  try {
    const key = sessionStorage.getItem(STORAGE_NAME);
    return { key: key ?? "", isRemembered: key !== null };
  } catch {
    // A browser may forbid storage.
    return { key: "", isRemembered: false };
  }
}

/** Returns whether it is remembered. */
export function remember({ key, isRemembered }: KeyMemory): boolean {
  try {
    if (isRemembered) sessionStorage.setItem(STORAGE_NAME, key);
    else sessionStorage.removeItem(STORAGE_NAME);
    return isRemembered;
  } catch {
    return false;
  }
}

/** People paste a key with spaces around it, or all of the header. */
export function cleanKey(text: string): string {
  return text.trim().replace(/^(?:Authorization:\s*)?Bearer\s+/i, "");
}

/** Why the key cannot work here, as a sentence; undefined if it may. */
export function keyProblem(
  key: string,
  server: { keyPrefix: string; environment: string },
): string | undefined {
  if (!isSendableKey(key)) return "A key has letters, digits and underscores only.";
  if (key === "" || key.startsWith(server.keyPrefix)) return undefined;
  return `Keys of ${server.environment} begin with ${server.keyPrefix}.`;
}

/** A browser sends no other characters in a header. */
export function isSendableKey(key: string): boolean {
  return /^[!-~]*$/.test(key);
}
