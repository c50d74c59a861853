/** Matches words that every version of YAML reads as text. */
const PLAIN = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[a-z_$][\w$./-]*(?: [\w$./-]+)*$/i;

/**
 * Encodes a value of JSON as YAML, with bigints as integers. Objects, arrays and long texts are blocks. Any other text
 * is written as JSON, which YAML reads in the same way, unless it is a few plain words: texts such as `2026-11-15` and
 * `12:30:45` stay quoted, because parsers of YAML 1.1 read them as a date and a number. `yaml` takes 25 ms for the
 * OpenAPI document, in which requests of clients wait, and this 3 ms (`npx bun bench/libraries.ts`).
 */
export function toYaml(value: unknown): string {
  return `${linesOf(value).join("\n")}\n`;
}

function linesOf(value: unknown): string[] {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((item) => indented("- ", linesOf(item)));
  const fields = typeof value === "object" && value !== null && !Array.isArray(value) ? fieldsOf(value) : [];
  if (fields.length > 0) return fields.flatMap(fieldLines);
  return typeof value === "string" && BLOCK.test(value) ? blockLines(value) : [scalar(value)];
}

/** Matches texts of several lines, or of one long line, that have only visible characters and single spaces. */
const BLOCK = /^(?=.*\n|.{81})[!-~¡-῿‐-‧]+(?:(?: |\n+)[!-~¡-῿‐-‧]+)*$/u;
const FOLD = /(.{1,100})(?: |$)/g;

/** Makes a literal block of several lines, and a folded block of a long line, whose line breaks are read as spaces. */
function blockLines(text: string): string[] {
  return text.includes("\n")
    ? ["|-", ...text.split("\n")]
    : [">-", ...text.replace(FOLD, "$1\n").trimEnd().split("\n")];
}

/** The fields of an object. As in JSON, an undefined field is absent. */
function fieldsOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, field]) => field !== undefined);
}

function fieldLines([name, value]: [string, unknown]): string[] {
  const lines = linesOf(value);
  const isBlock = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  const [first = "", ...others] = lines;
  return isBlock
    ? [`${scalar(name)}:`, ...indented("  ", lines)]
    : [`${scalar(name)}: ${first}`, ...indented("  ", others)];
}

function indented(first: string, lines: readonly string[]): string[] {
  return lines.map((line, i) => (line === "" ? "" : (i === 0 ? first : "  ") + line));
}

function scalar(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  return typeof value === "string" && PLAIN.test(value) ? value : JSON.stringify(value);
}
