import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCursor } from "../src/contract/cursor.ts";

/** Lists of what varies from request to request, one a line, that wrk walks through. */
export interface Values {
  /** After which animal a deep page begins, as Petstore writes it and as a plain number. */
  readonly opaque: readonly string[];
  readonly plain: readonly string[];
  readonly ids: readonly string[];
  readonly bodies: readonly string[];
}
export type ValueList = keyof Values;

const MAX_VALUES = 100_000;
const BODIES = 1_000;
/** Of the last animals none begins a full page. */
const TAIL = 21;

/** Spread evenly over the table and shuffled: a value comes back only after all others were used. */
export function valuesFor(animals: number): Values {
  const afters = spread(animals - TAIL);
  return {
    opaque: afters.map((after) => encodeCursor("pets", BigInt(after))),
    plain: afters.map(String),
    ids: spread(animals).map(String),
    bodies: Array.from({ length: BODIES }, (_, n) => newPet(n)),
  };
}

/** All of one length, so that one Content-Length fits. */
function newPet(n: number): string {
  return JSON.stringify({
    name: `Rex ${String(n).padStart(4, "0")}`,
    categoryId: 10 + (n % 90),
    status: "available",
  });
}

function spread(max: number): number[] {
  const count = Math.min(max, MAX_VALUES);
  return shuffled(Array.from({ length: count }, (_, i) => Math.floor((i * max) / count) + 1));
}

/** The same order in every run: Fisher-Yates on a fixed linear congruential sequence. */
function shuffled(numbers: number[]): number[] {
  let state = 42;
  for (let i = numbers.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const j = state % (i + 1);
    const kept = numbers[i] ?? 0;
    numbers[i] = numbers[j] ?? 0;
    numbers[j] = kept;
  }
  return numbers;
}

export function writeValues(folder: string, values: Values): Record<ValueList, string> {
  const paths = {
    opaque: join(folder, "opaque.txt"),
    plain: join(folder, "plain.txt"),
    ids: join(folder, "ids.txt"),
    bodies: join(folder, "bodies.txt"),
  };
  for (const list of Object.keys(paths) as ValueList[])
    writeFileSync(paths[list], `${values[list].join("\n")}\n`);
  return paths;
}
