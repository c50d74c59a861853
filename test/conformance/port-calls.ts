import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Stores } from "../../src/domain/ports/stores.ts";

const DIRECTORY = resolve(import.meta.dir, "../../src/domain/ports");
const SOURCE = readdirSync(DIRECTORY)
  .map((file) => readFileSync(join(DIRECTORY, file), "utf8"))
  .join("\n");
const BODIES = new Map(
  SOURCE.matchAll(/^export interface (\w+)[^{]*\{\n([^]*?)^\}/gm).map(([, name = "", body = ""]) => [
    name,
    body,
  ]),
);
const namesIn = (body: string, line: RegExp) => [...body.matchAll(line)].map(([, name = ""]) => name);

/** The names of the methods of each port, without `close`, which every test calls. What has no methods is no port. */
export const PORTS: ReadonlyMap<string, readonly string[]> = new Map(
  [...BODIES]
    .map(([name, body]) => [name, namesIn(body, /^ {2}(?!close\b)(\w+)[(<]/gm)] as const)
    .filter(([, methods]) => methods.length > 0),
);

/** The port of each property of `Stores`. */
export const STORE_PORTS = new Map(
  (BODIES.get("Stores") ?? "")
    .matchAll(/^ {2}readonly (\w+): (\w+);/gm)
    .map(([, name = "", port = ""]) => [name, port]),
);

/** Which methods of ports were called. */
export class PortCalls {
  readonly #called = new Set<string>();

  /** Returns an object that does the same as an adapter of the port and records its calls. */
  recorded<T extends object>(adapter: T, port: string): T {
    return new Proxy(adapter, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...given: unknown[]): unknown => {
          this.#called.add(`${port}.${String(name)}`);
          return Reflect.apply(value, target, given);
        };
      },
    });
  }

  recordedStores<T extends Stores>(stores: T): T {
    const recorded = [...STORE_PORTS].map(([name, port]) => {
      const adapter: object = Object(Reflect.get(stores, name));
      return [name, this.recorded(adapter, port)];
    });
    return { ...stores, ...Object.fromEntries(recorded) };
  }

  /** The methods that were not called, such as `ClientStore.getPet`. */
  missing(ports: Iterable<string>): string[] {
    const methods = [...ports].flatMap((port) =>
      (PORTS.get(port) ?? []).map((method) => `${port}.${method}`),
    );
    return methods.filter((method) => !this.#called.has(method));
  }
}
