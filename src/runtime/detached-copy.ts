/**
 * Copies a part of a request's head that outlives the request: a slice keeps the whole head in memory. Heads consist of
 * bytes, so every character is below 256.
 */
export function detachedCopy(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}
