/** What the client has, and what it would be given. */
export interface Condition {
  readonly ifNoneMatch: string | null;
  readonly etag: string;
}

/** `If-None-Match` compares weakly (RFC 9110, 13.1.2): W/ makes no difference. */
export function isKnown({ ifNoneMatch, etag }: Condition): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((candidate) => candidate.trim().replace(/^W\//, "") === etag);
}
