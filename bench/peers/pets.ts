/** The statements that every peer prepares, and the shapes that go in and out of them. */
export const STATUSES = ["available", "pending", "sold"] as const;
export type Status = (typeof STATUSES)[number];

export interface NewPet {
  readonly name: string;
  readonly categoryId: number;
  readonly status?: Status | undefined;
}

export interface Row {
  readonly id: number;
  readonly name: string;
  readonly categoryId: number;
  readonly status?: Status | null;
}

export interface Query {
  readonly limit: number;
  readonly status?: Status | undefined;
  readonly cursor?: number | undefined;
}

const SELECT = "SELECT id, name, category_id AS categoryId, status FROM pets";

/** `LIMIT +?` spares SQLite from compiling the statement anew at every call, for the peers as for Petstore. */
export const SQL = {
  page: `${SELECT} WHERE id > ? ORDER BY id LIMIT +?`,
  pageByStatus: `${SELECT} WHERE status = ? AND id > ? ORDER BY id LIMIT +?`,
  one: `${SELECT} WHERE id = ?`,
  insert: "INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)",
} as const;

export const PRAGMAS = [
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = FULL",
  "PRAGMA cache_size = -32768",
] as const;

/** An absent status is absent, not null. */
export function petOf(row: Row): Row {
  return row.status === null ? { id: row.id, name: row.name, categoryId: row.categoryId } : row;
}

export interface Page {
  readonly items: readonly Row[];
  readonly next: number | undefined;
}

/** Takes one row more than the page holds, which tells whether there is another page. */
export function pageOf(rows: Row[], limit: number): Page {
  const more = rows.length > limit;
  if (more) rows.length = limit;
  return { items: rows.map(petOf), next: more ? rows.at(-1)?.id : undefined };
}

export function nextLink(cursor: number): string {
  return `</v1/pets?cursor=${cursor}>; rel="next"`;
}

export interface Store {
  list(query: Query): Page;
  get(id: number): Row | undefined;
  create(pet: NewPet): Row;
}

export function created(id: number, { name, categoryId, status }: NewPet): Row {
  return status === undefined ? { id, name, categoryId } : { id, name, categoryId, status };
}

export const ERRORS = {
  unauthorized: { code: "invalid_api_key", message: "Send a valid API key.", status: 401 },
  invalid: { code: "invalid_body", message: "The request is not valid.", status: 400 },
  notFound: { code: "pet_not_found", message: "No animal has this identifier.", status: 404 },
  limited: { code: "rate_limited", message: "The limit is used up; wait for Retry-After.", status: 429 },
} as const;

/** What the harness tells a peer. */
export function orders(): { port: number; database: string } {
  const [port = "", database = ""] = process.argv.slice(2);
  return { port: Number(port), database };
}
