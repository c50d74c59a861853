/** The pets and API keys of all peers. The tables are Petstore's: each peer has a copy of the same database. */
export const STATUSES = ["available", "pending", "sold"] as const;
export type Status = (typeof STATUSES)[number];

export interface NewPet {
  readonly name: string;
  readonly categoryId: number;
  readonly status?: Status | undefined;
}

export interface Pet extends Omit<NewPet, "status"> {
  readonly id: number;
  readonly status?: Status | null | undefined;
}

export interface Query {
  readonly limit: number;
  readonly status?: Status | undefined;
  readonly cursor?: number | undefined;
}

export interface Key {
  readonly id: string;
  readonly perMinute: number;
}

export type Value = string | number | null;

/** The interface that bun:sqlite and better-sqlite3 share. */
export interface Statement<Row> {
  all(...values: Value[]): Row[];
  get(...values: Value[]): Row | null | undefined;
  run(...values: Value[]): { readonly lastInsertRowid: number | bigint };
}

interface Driver {
  prepare<Row>(sql: string): Statement<Row>;
  sha256(text: string): string;
}

export const PRAGMAS = [
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = FULL",
  "PRAGMA cache_size = -32768",
] as const;

const SELECT = "SELECT id, name, category_id AS categoryId, status FROM pets";
const SELECT_KEYS = `
  SELECT hash, api_keys.id AS id, per_minute AS perMinute
  FROM key_secrets JOIN api_keys ON api_keys.id = key_secrets.key_id`;
const DEFAULT_PER_MINUTE = 60;
const BEARER = "Bearer ";

export function createStore({ prepare, sha256 }: Driver) {
  // The keys are read once at the start: a map of key hashes is the fastest that a peer could use.
  const rows = prepare<{ hash: string; id: number; perMinute: number | null }>(SELECT_KEYS).all();
  const keys = new Map<string, Key>(
    rows.map(({ hash, id, perMinute }) => [
      hash,
      { id: String(id), perMinute: perMinute ?? DEFAULT_PER_MINUTE },
    ]),
  );
  // With `LIMIT +?`, SQLite does not compile the statement again at every call; Petstore does the same.
  const page = prepare<Pet>(`${SELECT} WHERE id > ? ORDER BY id LIMIT +?`);
  const pageByStatus = prepare<Pet>(`${SELECT} WHERE status = ? AND id > ? ORDER BY id LIMIT +?`);
  const one = prepare<Pet>(`${SELECT} WHERE id = ?`);
  const insert = prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
  return {
    keyOf(authorization: string | null | undefined): Key | undefined {
      if (!authorization?.startsWith(BEARER)) return undefined;
      return keys.get(sha256(authorization.slice(BEARER.length)));
    },
    /** Reads one row more than the page has, which shows whether another page follows. */
    list({ limit, status, cursor = 0 }: Query): { items: readonly Pet[]; next: number | undefined } {
      const rows =
        status === undefined ? page.all(cursor, limit + 1) : pageByStatus.all(status, cursor, limit + 1);
      const hasMore = rows.length > limit;
      if (hasMore) rows.length = limit;
      return { items: rows.map(withoutNull), next: hasMore ? rows.at(-1)?.id : undefined };
    },
    get(id: number): Pet | undefined {
      const row = one.get(id);
      return row ? withoutNull(row) : undefined;
    },
    create({ name, categoryId, status }: NewPet): Pet {
      const id = Number(insert.run(name, categoryId, status ?? null).lastInsertRowid);
      return status === undefined ? { id, name, categoryId } : { id, name, categoryId, status };
    },
  };
}

/** A pet without a status lacks the property. */
function withoutNull(row: Pet): Pet {
  return row.status === null ? { id: row.id, name: row.name, categoryId: row.categoryId } : row;
}

export function nextLink(cursor: number): string {
  return `</v1/pets?cursor=${cursor}>; rel="next"`;
}

export const ERRORS = {
  unauthorized: { code: "invalid_api_key", message: "Send a valid API key.", status: 401 },
  notFound: { code: "pet_not_found", message: "This pet does not exist.", status: 404 },
  limited: { code: "rate_limited", message: "Too many requests.", status: 429 },
} as const;
