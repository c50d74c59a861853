const TOKEN = /\s*([{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+)/y;
const INTEGER = /^-?\d+$/;

/**
 * As `JSON.parse`, but every integer is what `integer` makes of its digits, so that 9007199254740993 stays itself. Many
 * platforms do not pass the source text of a number to a reviver, so this reads the text itself, in the same way
 * everywhere.
 */
export function parseJson(text: string, integer: (digits: string) => unknown = BigInt): unknown {
  // Throws if the text is not JSON. What follows relies on that.
  JSON.parse(text);
  let position = 0;

  function next(): string {
    TOKEN.lastIndex = position;
    const token = TOKEN.exec(text)?.[1] ?? "";
    position = TOKEN.lastIndex;
    return token;
  }

  function value(token: string): unknown {
    if (token === "[") return array();
    if (token === "{") return object();
    return INTEGER.test(token) ? integer(token) : JSON.parse(token);
  }

  function array(): unknown[] {
    const items = [];
    for (let token = next(); token !== "]"; token = next()) if (token !== ",") items.push(value(token));
    return items;
  }

  function object(): Record<string, unknown> {
    const entries: [string, unknown][] = [];
    for (let token = next(); token !== "}"; token = next()) {
      if (token === ",") continue;
      next();
      entries.push([JSON.parse(token), value(next())]);
    }
    return Object.fromEntries(entries);
  }

  return value(next());
}

/** As `JSON.stringify`, which cannot write bigints. */
export function toJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map((item) => toJson(item ?? null)).join()}]`;
  if (typeof value !== "object" || value === null || "toJSON" in value)
    return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join()}}`;
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
