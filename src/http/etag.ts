const LENGTH = 22;

/** A strong validator of the bytes: 132 bits of their SHA-256. */
export function etagOf(body: string): string {
  return `"${Bun.CryptoHasher.hash("sha256", body, "base64").slice(0, LENGTH)}"`;
}

/** `If-None-Match` compares weakly (RFC 9110, 13.1.2): W/ makes no difference. */
export function matches(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((candidate) => candidate.trim().replace(/^W\//, "") === etag);
}
