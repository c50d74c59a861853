/* The file of a declared configuration: its fields, and its problems with their lines. */

import { LineCounter, parseDocument, stringify } from "yaml";
import {
  boolean,
  type InputProblem,
  Invalid,
  object,
  type ObjectSchema,
  type Schema,
  valueSchema,
} from "../../../api/schema.ts";
import { pathText } from "../../../api/errors.ts";
import { alternatives } from "../../../text/formatting.ts";
import { didYouMean, nearest } from "../../../text/nearest.ts";
import { REQUEST_LIMITS } from "../../../domain/key-fields.ts";
import { LIMITED_PLANS, type LimitedPlan } from "../../../domain/policy.ts";
import type { BanRules } from "../../../domain/ban-rules.ts";
import type { Limits } from "../../../domain/rate-limit.ts";
import { ADMIN_OPERATIONS, type BodyOf } from "../../../operator/operations.ts";
import { Positions } from "./positions.ts";

/** The name of a key in files, or the identifier of a key that no file has named. */
export type KeyReference = string | number;

export type DeclaredKey = BodyOf<"createKey"> & {
  readonly id: KeyReference;
  readonly disabled?: boolean | undefined;
};
export type DeclaredOperator = BodyOf<"createOperator">;

/** What a file says. A list that it does not have is undefined. */
export interface Declared {
  readonly plans: { readonly [Plan in LimitedPlan]?: Partial<Limits> };
  readonly banRules: Partial<BanRules>;
  readonly operators: readonly DeclaredOperator[] | undefined;
  readonly keys: readonly DeclaredKey[] | undefined;
}

/** The name of a key in a file. Its label is `id:` and the name, and a label has at most 50 characters. */
const KEY_NAME = /^[a-z][a-z0-9._-]{0,46}$/;

const keyReference = valueSchema<KeyReference, { readonly kind: "other" }>(
  {
    kind: "other",
    expected:
      "a name of your choice (a letter and up to 46 more letters, digits and . _ -, in lower case), or the identifier of a key",
    json: { type: ["string", "integer"] },
  },
  (value) => {
    if (typeof value === "string") return KEY_NAME.test(value) ? value : undefined;
    return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
  },
);

const PLAN_LIMITS = object("Limits of a plan", {}, REQUEST_LIMITS);
const BAN_RULES = object("Ban rules", {}, ADMIN_OPERATIONS.updateBanRules.body.optional);
const OPERATOR = ADMIN_OPERATIONS.createOperator.body;
const KEY = ADMIN_OPERATIONS.createKey.body;
const KEY_STATE = object("What only a file says of a key", { id: keyReference }, { disabled: boolean() });
const MAX_ALIASES = 100;
const SECTIONS = ["plans", "banRules", "operators", "keys"];

/** A valid file, or what is wrong with it. */
export interface DeclaredFile {
  /** Undefined if the file has problems. */
  readonly declared: Declared | undefined;
  /** The first problems of many. */
  readonly problems: readonly string[];
  /** How many problems there are. */
  readonly count: number;
  /** Writes problems of values, each with its line. */
  describe(problems: readonly InputProblem[]): readonly string[];
}

/** Writes values as a file has them. A long text stays on its line. */
export function textOfValues(values: object): string {
  return stringify(values, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** Reads a file of YAML, of which JSON is a part. */
export function readDeclared(text: string): DeclaredFile {
  try {
    return readDocument(text);
  } catch (error) {
    // The parser throws both for what would take too much memory.
    if (!(error instanceof ReferenceError) && !(error instanceof RangeError)) throw error;
    const problems = ["the file has too many aliases, or is nested too deeply"];
    return { declared: undefined, problems, count: problems.length, describe: () => problems };
  }
}

function readDocument(text: string): DeclaredFile {
  const lines = new LineCounter();
  // The parser would compare each name with all before it.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const positions = new Positions(document);
  const at = (offset: number, problem: string) => {
    const { line, col } = lines.linePos(offset);
    return { line, col, text: `line ${line}: ${problem}` };
  };
  const describe = (problems: readonly InputProblem[]) =>
    problems
      .map(({ path, message }) =>
        at(positions.offsetOf(path), `${path.length === 0 ? "the file" : pathText(path)} ${message}`),
      )
      .toSorted((a, b) => a.line - b.line)
      .map((each) => each.text);
  const errors = [
    ...[...document.errors, ...document.warnings].map(({ message, pos }) => at(pos[0], message)),
    ...positions.repeated.map((offset) => at(offset, "Map keys must be unique")),
  ];
  if (errors.length > 0) {
    const problems = errors.map((each) => each.text);
    return { declared: undefined, problems, count: problems.length, describe };
  }
  const reading = new Reading();
  const declared = reading.declared(document.toJS({ maxAliasCount: MAX_ALIASES }));
  const { problems, count } = reading;
  return { declared: count > 0 ? undefined : declared, problems: describe(problems), count, describe };
}

type Path = InputProblem["path"];

/** Nobody reads more. The suggestion of each takes time. */
const MAX_PROBLEMS = 1_000;

/** Reads a value by parts, so that every problem is found. */
class Reading {
  readonly problems: InputProblem[] = [];
  count = 0;

  declared(file: unknown): Declared {
    const sections = this.#object(file, SECTIONS, []);
    const plans = Object.entries(this.#object(sections["plans"] ?? {}, LIMITED_PLANS, ["plans"]));
    return {
      plans: Object.fromEntries(
        plans.map(([plan, limits]) => [plan, this.#read(limits, [PLAN_LIMITS], ["plans", plan])]),
      ),
      banRules: this.#read(sections["banRules"] ?? {}, [BAN_RULES], ["banRules"]),
      // The schemas of the operations read them.
      operators: this.#list(sections, "operators", [OPERATOR], "name") as Declared["operators"],
      keys: this.#list(sections, "keys", [KEY_STATE, KEY], "id") as Declared["keys"],
    };
  }

  #report(path: Path, message: () => string): void {
    if (++this.count <= MAX_PROBLEMS) this.problems.push({ path, message: message() });
  }

  /** Reads the items of a list, of which no two have the same identity. */
  #list(
    sections: Readonly<Record<string, unknown>>,
    section: string,
    schemas: readonly ObjectSchema<unknown>[],
    identity: string,
  ): readonly object[] | undefined {
    const list = sections[section];
    if (list === undefined) return undefined;
    if (!Array.isArray(list)) {
      this.#report([section], () => "must be a list");
      return [];
    }
    const seen = new Set<unknown>();
    return list.map((item: unknown, index) => {
      const read = this.#read(item, schemas, [section, index]);
      const name: unknown = Reflect.get(read, identity);
      if (name !== undefined && seen.has(name))
        this.#report([section, index, identity], () => `is there twice: ${String(name)}`);
      seen.add(name);
      return read;
    });
  }

  /** Reads an object with the fields of several schemas. */
  #read(value: unknown, schemas: readonly ObjectSchema<unknown>[], path: Path): object {
    const names = schemas.flatMap((schema) => schema.names);
    const fields = this.#object(value, names, path);
    for (const [name, field] of Object.entries(fields)) {
      const schema = schemas.map(({ required, optional }) => required[name] ?? optional[name]).find(Boolean);
      const inner = schema && objectIn(schema);
      if (inner && typeof field === "object" && field !== null)
        this.#object(field, inner.names, [...path, name]);
    }
    const parts = schemas.map((schema) => schema.read(fields));
    for (const part of parts)
      if (part instanceof Invalid)
        for (const problem of part.problems) this.#report([...path, ...problem.path], () => problem.message);
    return Object.assign({}, ...parts.filter((part) => !(part instanceof Invalid)));
  }

  /** Returns the fields that may be there. */
  #object(value: unknown, names: readonly string[], path: Path): Readonly<Record<string, unknown>> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.#report(path, () => `must have ${alternatives(names)}`);
      return {};
    }
    const entries = Object.entries(value);
    for (const [name] of entries) {
      if (names.includes(name)) continue;
      this.#report([...path, name], () => {
        const hint = didYouMean(nearest(name, names)) ?? `there are ${names.join(", ")}`;
        return `is unknown; ${hint}`;
      });
    }
    return Object.fromEntries(entries.filter(([name]) => names.includes(name)));
  }
}

/** The object that a value may be. */
function objectIn(schema: Schema<unknown>): ObjectSchema<unknown> | undefined {
  if (schema.kind === "nullable") return objectIn(schema.inner);
  return schema.kind === "object" ? schema : undefined;
}
