import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";

/** One path and the operations that live there. */
export interface Route {
  /** What the identifier at the end of the path comes after. */
  readonly prefix: string;
  /** By method. */
  readonly operations: ReadonlyMap<string, OperationId>;
  /** For `Allow`. */
  readonly methods: string;
}

const VERSION_PREFIX = "/v1";

/** Whether a path belongs to the interface, also where nothing lives. */
export function isVersioned(path: string): boolean {
  return path.startsWith(`${VERSION_PREFIX}/`) || path === VERSION_PREFIX;
}

const IDENTIFIER = /\{\w+\}$/;

/** From a path to its route. A path is matched as it was sent; only an identifier at its end may be encoded. */
export class Router {
  readonly #fixed = new Map<string, Route>();
  /** By what comes before an identifier. */
  readonly #open = new Map<string, Route>();

  constructor(table: Readonly<Record<OperationId, Operation>> = OPERATIONS) {
    const byPath = Map.groupBy(Object.entries(table) as [OperationId, Operation][], ([, { path }]) => path);
    for (const [path, entries] of byPath) {
      const prefix = VERSION_PREFIX + path.replace(IDENTIFIER, "");
      (IDENTIFIER.test(path) ? this.#open : this.#fixed).set(prefix, routeOf(prefix, entries));
    }
  }

  find(path: string): Route | undefined {
    const end = path.lastIndexOf("/") + 1;
    return this.#fixed.get(path) ?? (end < path.length ? this.#open.get(path.slice(0, end)) : undefined);
  }
}

function routeOf(prefix: string, entries: readonly [OperationId, Operation][]): Route {
  const operations = new Map<string, OperationId>();
  for (const [id, { method }] of entries) {
    operations.set(method, id);
    if (method === "GET") operations.set("HEAD", id);
  }
  return { prefix, operations, methods: [...operations.keys(), "OPTIONS"].join(", ") };
}

/** The identifier that a path ends with; what cannot be decoded names nothing, and nor does an empty text. */
export function identifierIn(path: string, { prefix }: Route): string {
  const text = path.slice(prefix.length);
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
