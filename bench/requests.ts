import type { ValueList, Values } from "./values.ts";
import type { Ask, Credential, Work } from "./work.ts";

/** How one server is spoken to; the requests are otherwise the same for all. */
export interface Dialect {
  readonly base: "/v1" | "";
  readonly cursors: "opaque" | "plain";
  readonly keys: Keys;
}

export type Keys = Readonly<Record<Exclude<Credential, "none">, string>>;

/** A request with a gap in it, and the list that fills the gap. */
export interface Template {
  readonly prefix: string;
  readonly suffix: string;
  readonly values?: ValueList;
}

/** Stands in the middle of the table. */
const ONE_ANIMAL = 500;

export function templateOf(ask: Ask, work: Work, { base, cursors, keys }: Dialect, values: Values): Template {
  const authorization =
    work.credential === "none" ? "" : `Authorization: Bearer ${keys[work.credential]}\r\n`;
  const head = ` HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}`;
  const get = (path: string, list?: ValueList): Template => ({
    prefix: `GET ${base}/pets${path}`,
    suffix: `${head}\r\n`,
    ...(list && { values: list }),
  });
  switch (ask) {
    case "list":
      return get("");
    case "filtered":
      return get("?status=sold");
    case "deep":
      return get("?cursor=", cursors);
    case "get":
      return get("/", "ids");
    case "get-one":
      return get(`/${ONE_ANIMAL}`);
    case "create": {
      const length = values.bodies[0]?.length ?? 0;
      const type = `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
      return { prefix: `POST ${base}/pets${head}${type}`, suffix: "", values: "bodies" };
    }
  }
}

export function fill({ prefix, suffix, values }: Template, lists: Values, index = 0): string {
  return prefix + (values ? (lists[values][index] ?? "") : "") + suffix;
}
