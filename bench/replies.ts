import type { RawReply } from "./raw.ts";
import type { Ask } from "./work.ts";

/** Answers that Petstore gave, for servers that do nothing but repeat them. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** By work, then by the route that gives it. */
export type Replies = Readonly<Record<string, Readonly<Partial<Record<RouteName, Reply>>>>>;
export type RouteName = "list" | "get" | "create";

const ROUTES: Record<Ask, RouteName> = {
  list: "list",
  filtered: "list",
  deep: "list",
  get: "get",
  "get-one": "get",
  create: "create",
};

export function routeOf(ask: Ask): RouteName {
  return ROUTES[ask];
}

/** What every server writes by itself. */
const AUTOMATIC = new Set(["date", "content-length", "connection", "keep-alive", "server"]);

export function replyOf({ status, headers, body }: RawReply): Reply {
  return { status, body, headers: Object.fromEntries(ownHeaders({ headers })) };
}

export function ownHeaders({ headers }: Pick<RawReply, "headers">): (readonly [string, string])[] {
  return headers.filter(([name]) => !AUTOMATIC.has(name.toLowerCase()));
}
