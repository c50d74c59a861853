const TOKEN = /\s*([{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+)/y;
const INTEGER = /^-?\d+$/;

/**
 * As `JSON.parse`, but every integer is a bigint, so that 9007199254740993 stays itself. Many platforms do not pass
 * the source text of a number to a reviver, so this reads the text itself, in the same way everywhere.
 *
 * @param {string} text
 * @returns {unknown}
 */
export function parseJson(text) {
  // Throws if the text is not JSON. What follows relies on that.
  JSON.parse(text);
  let position = 0;

  function next() {
    TOKEN.lastIndex = position;
    const token = TOKEN.exec(text)?.[1] ?? "";
    position = TOKEN.lastIndex;
    return token;
  }

  /**
   * @param {string} token
   * @returns {unknown}
   */
  function value(token) {
    if (token === "[") return array();
    if (token === "{") return object();
    return INTEGER.test(token) ? BigInt(token) : JSON.parse(token);
  }

  function array() {
    const items = [];
    for (let token = next(); token !== "]"; token = next()) if (token !== ",") items.push(value(token));
    return items;
  }

  function object() {
    /** @type {[string, unknown][]} */
    const entries = [];
    for (let token = next(); token !== "}"; token = next()) {
      if (token === ",") continue;
      next();
      entries.push([JSON.parse(token), value(next())]);
    }
    return Object.fromEntries(entries);
  }

  return value(next());
}

/**
 * The JSON of a flat object. `JSON.stringify` cannot write bigints.
 *
 * @param {Readonly<Record<string, string | bigint | undefined>>} fields
 */
export function toJson(fields) {
  const members = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `"${name}":${typeof value === "bigint" ? value : JSON.stringify(value)}`);
  return `{${members.join(",")}}`;
}

/**
 * @param {string} name Of the argument.
 * @param {number | bigint} value
 * @returns {bigint}
 */
export function int64(name, value) {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return BigInt(value);
  throw new TypeError(`${name} must be a bigint or a safe integer, not ${String(value)}.`);
}
