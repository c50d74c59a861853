/** With its quotes. */
export const ETAG_LENGTH = 24;

/**
 * A strong validator of a text, as `ETag` carries it: 132 bits of its SHA-256. (`hash` of node:crypto takes half as
 * long again, and `Bun.CryptoHasher.hash` four times as long.)
 */
export function etagOf(text: string): string {
  return `"${Bun.SHA256.hash(text, "base64").slice(0, ETAG_LENGTH - 2)}"`;
}

export interface TaggedJson {
  readonly json: string;
  readonly etag: string;
}

export function tagged(json: string): TaggedJson {
  return { json, etag: etagOf(json) };
}
