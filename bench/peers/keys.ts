/** What a peer knows of an API key. The tables are Petstore's own: each peer works on a copy of the same database. */
export interface Key {
  readonly id: string;
  readonly perMinute: number;
}

export interface KeyRow {
  readonly hash: string;
  readonly id: number;
  readonly perMinute: number | null;
}

export const SELECT_KEYS = `
  SELECT hash, api_keys.id AS id, per_minute AS perMinute
  FROM key_secrets JOIN api_keys ON api_keys.id = key_secrets.key_id`;

const DEFAULT_PER_MINUTE = 60;

/** Read once at start: none of these stacks has an opinion on keys, and a map is the fastest honest answer. */
export function keysOf(rows: readonly KeyRow[]): ReadonlyMap<string, Key> {
  return new Map(
    rows.map(({ hash, id, perMinute }) => [
      hash,
      { id: String(id), perMinute: perMinute ?? DEFAULT_PER_MINUTE },
    ]),
  );
}

const BEARER = "Bearer ";

export function bearerToken(authorization: string | null | undefined): string | undefined {
  return authorization?.startsWith(BEARER) ? authorization.slice(BEARER.length) : undefined;
}
