/** With its quotes. */
export const ETAG_LENGTH = 24;

/**
 * A strong validator of a text, as `ETag` carries it: 132 bits of its SHA-256. (`Bun.CryptoHasher.hash` and `hash` of
 * node:crypto take two and four times as long.)
 */
export function etagOf(text: string): string {
  return `"${Bun.SHA256.hash(text, "base64").slice(0, ETAG_LENGTH - 2)}"`;
}

export function tagged(json: string): { readonly json: string; readonly etag: string } {
  return { json, etag: etagOf(json) };
}
