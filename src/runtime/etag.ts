/** The length of an ETag with its quotes. */
export const ETAG_LENGTH = 24;

/** A strong ETag: 132 bits of the SHA-256 of a text, in base64 and quotes. */
export function etagOf(text: string): string {
  return `"${Bun.SHA256.hash(text, "base64").slice(0, ETAG_LENGTH - 2)}"`;
}

export interface TaggedJson {
  readonly json: string;
  readonly etag: string;
}

export function withEtag(json: string): TaggedJson {
  return { json, etag: etagOf(json) };
}

const ENTITY_TAG = /(?:W\/)?"[^"]*"/g;

/** `If-Match` uses the strong comparison (RFC 9110, 13.1.1): no weak ETag matches. A malformed list matches nothing. */
export function matchesStrongEtag(ifMatch: string, etag: string): boolean {
  if (ifMatch.trim() === "*") return true;
  const isList = /^[\s,]*$/.test(ifMatch.replaceAll(ENTITY_TAG, ""));
  return isList && ifMatch.match(ENTITY_TAG)?.includes(etag) === true;
}

/** `If-None-Match` uses the weak comparison (RFC 9110, 13.1.2), which ignores `W/`. */
export function matchesEtag(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  // The ETag with its quotes cannot be part of another element. Splitting a list of 14 kB takes a millisecond.
  return ifNoneMatch.includes(etag) || ifNoneMatch.trim() === "*";
}
