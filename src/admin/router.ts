import { ADMIN_BASE_PATH, type AdminOperation } from "./contract/operation.ts";
import { ADMIN_OPERATIONS, type AdminOperationId } from "./operations.ts";

export interface AdminRoute {
  /** By method; HEAD has the operation of GET. */
  readonly operations: ReadonlyMap<string, AdminOperationId>;
  /** The value of `Allow`. */
  readonly allowed: string;
}

interface Template extends AdminRoute {
  /** Around the identifier. */
  readonly before: string;
  readonly after: string;
}

export interface MatchedRoute {
  readonly route: AdminRoute;
  /** As the client sent it; empty if the path has none. */
  readonly identifier: string;
}

/** Matches paths as the client sent them. An identifier is one segment. */
export class AdminRouter {
  readonly #fixed = new Map<string, AdminRoute>();
  readonly #templates: Template[] = [];

  constructor() {
    const operations = Object.entries<AdminOperation>(ADMIN_OPERATIONS) as [
      AdminOperationId,
      AdminOperation,
    ][];
    for (const [path, group] of Map.groupBy(operations, ([, operation]) => operation.path)) {
      const route = routeOf(group);
      const [before = "", after] = (ADMIN_BASE_PATH + path).split(/\{\w+\}/);
      if (after === undefined) this.#fixed.set(before, route);
      else this.#templates.push({ ...route, before, after });
    }
  }

  find(path: string): MatchedRoute | undefined {
    const fixed = this.#fixed.get(path);
    if (fixed) return { route: fixed, identifier: "" };
    for (const template of this.#templates) {
      const { before, after } = template;
      if (!path.startsWith(before) || !path.endsWith(after)) continue;
      const identifier = path.slice(before.length, path.length - after.length);
      if (identifier !== "" && !identifier.includes("/")) return { route: template, identifier };
    }
    return undefined;
  }
}

function routeOf(group: readonly [AdminOperationId, AdminOperation][]): AdminRoute {
  const operations = new Map<string, AdminOperationId>(group.map(([id, { method }]) => [method, id]));
  const get = operations.get("GET");
  if (get) operations.set("HEAD", get);
  return { operations, allowed: [...operations.keys(), "OPTIONS"].join(", ") };
}
