/** The statuses of the responses that the server gives to a request that no handler sees. */
export type ProtocolErrorStatus = 400 | 408 | 414 | 431 | 501 | 505;

/** The connection closes. */
export const CLOSES = "(closes)";
/** More has to arrive before the server responds. */
export const WAITS = "(waits)";

/**
 * What becomes of a stream of bytes: the requests that reach the handler, as `readingOf` writes them, and at most one
 * status, after which the connection closes.
 */
export type Outcome = string | ProtocolErrorStatus | 413;

export interface Case {
  readonly section: string;
  readonly name: string;
  /** One character for each byte. */
  readonly bytes: string;
  readonly outcomes: readonly Outcome[];
}

type Row = readonly [name: string, bytes: string, ...outcomes: Outcome[]];

export function cases(section: string, rows: readonly Row[]): readonly Case[] {
  return rows.map(([name, bytes, ...outcomes]) => ({ section, name, bytes, outcomes }));
}

export interface RequestParts {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** One character for each byte. */
  readonly body: string;
}

/** `POST /path?query "body"`. */
export function readingOf({ method, path, query, body }: RequestParts): string {
  const target = query === "" ? path : `${path}?${query}`;
  return body === "" ? `${method} ${target}` : `${method} ${target} ${JSON.stringify(body)}`;
}

export const head = (requestLine: string, ...fields: string[]) =>
  [requestLine, ...fields, "", ""].join("\r\n");

/** A request of this line. */
export const line = (requestLine: string) => head(requestLine, "Host: x");

export const get = (target: string, ...fields: string[]) =>
  head(`GET ${target} HTTP/1.1`, "Host: x", ...fields);

export const post = (body: string, ...fields: string[]) =>
  head("POST / HTTP/1.1", "Host: x", ...fields) + body;

export const chunked = (body: string, ...fields: string[]) =>
  post(body, "Transfer-Encoding: chunked", ...fields);
