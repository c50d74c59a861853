import type { NewPet, Orders, OwnKey, Page, Pets } from "./types.ts";

/** A string, with the colon after it if it is the name of a member, or a number. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d+$/;

/** The fields of a new pet by their types. A field that is missing here does not compile. */
const NEW_PET_FIELDS: {
  readonly [K in keyof Required<NewPet>]: bigint extends NewPet[K] ? "int64" : "other";
} = { name: "other", categoryId: "int64", status: "other" };

type ResultOf<Methods> = {
  [K in keyof Methods]: Methods[K] extends (...given: never[]) => PromiseLike<infer T> ? ItemOf<T> : never;
}[keyof Methods];
type ItemOf<T> = T extends Page<infer Item> | readonly (infer Item)[] ? Item : T;
type NumberIn<T> = T extends object
  ? { [K in keyof T]-?: number extends T[K] ? K : NumberIn<T[K]> }[keyof T]
  : never;
/** The fields of results whose type is number. One that is missing here does not compile. */
const NUMBERS: Record<NumberIn<ResultOf<Pets> | ResultOf<Orders> | ResultOf<OwnKey>>, true> = {
  limit: true,
  remaining: true,
};
const NUMBER_NAMES: ReadonlySet<string> = new Set(Object.keys(NUMBERS));

/**
 * Like `JSON.parse`, but every integer is what `integer` makes of its digits, so that 9007199254740993 stays itself.
 * Only a field whose type is number has a number. Many platforms do not pass the source text of a number to a reviver,
 * so integers become strings before, and a letter marks them.
 */
export function parseJson(
  text: string,
  integer: (digits: string) => unknown = BigInt,
  numbers: ReadonlySet<string> = NUMBER_NAMES,
): unknown {
  // Throws if the text is not JSON. What follows relies on that.
  JSON.parse(text);
  const marked = text.replace(TOKEN, (token, colon?: string) => {
    if (colon !== undefined) return token;
    if (token.startsWith('"')) return `"s${token.slice(1)}`;
    return INTEGER.test(token) ? `"i${token}"` : token;
  });
  return JSON.parse(marked, (name, value) => {
    if (typeof value !== "string") return value;
    const text = value.slice(1);
    if (value.startsWith("s")) return text;
    return numbers.has(name) ? Number(text) : integer(text);
  });
}

/** Writes JSON as `JSON.stringify` does, which cannot write bigints. */
export function toJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map((item) => toJson(item ?? null)).join()}]`;
  if (typeof value !== "object" || value === null || "toJSON" in value)
    return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join()}}`;
}

/** The body of a request that adds a pet. */
export function newPetJson(pet: NewPet): string {
  const members = Object.entries(NEW_PET_FIELDS).map(([name, type]) => {
    const value = Reflect.get(pet, name);
    return [name, type === "int64" && value !== undefined ? int64(name, value) : value];
  });
  return toJson(Object.fromEntries(members));
}

/** `name` is that of the argument. */
export function int64(name: string, value: number | bigint | string): bigint {
  if (
    typeof value === "string" ? INTEGER.test(value) : typeof value === "bigint" || Number.isSafeInteger(value)
  )
    return BigInt(value);
  throw new TypeError(
    `${name} must be a bigint, a safe integer or a string of digits, not ${String(value)}.`,
  );
}

/** The code and the message of an error of the API; empty if something else responded. */
export function errorBody(text: string): { code?: string; message?: string } {
  try {
    const body = JSON.parse(text);
    return typeof body?.code === "string" && typeof body.message === "string" ? body : {};
  } catch {
    return {};
  }
}
