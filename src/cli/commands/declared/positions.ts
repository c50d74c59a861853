import { type Document, isMap, isScalar, isSeq, type Pair, visit, type YAMLMap } from "yaml";
import type { InputProblem } from "../../../api/schema.ts";

/** Where the values of a YAML document are. Each name is looked at once, however many problems there are. */
export class Positions {
  readonly #pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();
  /** The offsets of names that their map has had before. */
  readonly repeated: number[] = [];

  constructor(private readonly document: Document.Parsed) {
    visit(document, { Map: (_, map) => this.#addMap(map) });
  }

  #addMap(map: YAMLMap): void {
    const pairs = new Map<string, Pair>();
    for (const pair of map.items) {
      if (!isScalar(pair.key)) continue;
      const name = String(pair.key.value);
      if (pairs.has(name)) this.repeated.push(pair.key.range?.[0] ?? 0);
      pairs.set(name, pair);
    }
    this.#pairs.set(map, pairs);
  }

  /** The offset of a value, or of its name, or of what should have it. */
  offsetOf(path: InputProblem["path"]): number {
    let current: unknown = this.document.contents;
    let offset = this.document.contents?.range?.[0] ?? 0;
    for (const key of path) {
      if (isMap(current)) {
        const pair = this.#pairs.get(current)?.get(String(key));
        if (pair === undefined) break;
        offset = (isScalar(pair.key) ? pair.key.range?.[0] : undefined) ?? offset;
        current = pair.value;
      } else if (isSeq(current) && typeof key === "number") {
        current = current.items[key];
        if (isMap(current) || isSeq(current) || isScalar(current)) offset = current.range?.[0] ?? offset;
      } else break;
    }
    return offset;
  }
}
