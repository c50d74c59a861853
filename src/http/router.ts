import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";

/** One path and the operations that live there. */
export interface Route {
  /** As the runtime's router writes it: `/v1/pets/:petId`. */
  readonly pattern: string;
  /** By method. */
  readonly operations: ReadonlyMap<string, OperationId>;
  /** For `Allow`. */
  readonly methods: string;
}

export const VERSION_PREFIX = "/v1";

export function routesOf(table: Readonly<Record<OperationId, Operation>> = OPERATIONS): readonly Route[] {
  const byPath = Map.groupBy(Object.entries(table) as [OperationId, Operation][], ([, { path }]) => path);
  return [...byPath].map(([path, entries]) => {
    const operations = new Map<string, OperationId>();
    for (const [id, operation] of entries) {
      operations.set(operation.method, id);
      if (operation.method === "GET") operations.set("HEAD", id);
    }
    return {
      pattern: VERSION_PREFIX + path.replace(/\{(\w+)\}/, ":$1"),
      operations,
      methods: [...operations.keys(), "OPTIONS"].join(", "),
    };
  });
}
