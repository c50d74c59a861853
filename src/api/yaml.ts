/** A word that YAML does not read as anything but text, whatever its version. */
const PLAIN = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[a-z_$][\w$./-]*(?: [\w$./-]+)*$/i;

/**
 * YAML of a value of JSON, with bigints as integers. Objects and arrays are blocks, and text is as JSON writes it
 * unless it is a few plain words: YAML reads every JSON text as JSON does. `Bun.YAML.stringify` cannot write bigints,
 * and it writes texts such as `2026-11-15` and `12:30:45` plainly, which parsers of YAML 1.1 read as a date and a
 * number.
 */
export function toYaml(value: unknown): string {
  return `${linesOf(value).join("\n")}\n`;
}

function linesOf(value: unknown): string[] {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((item) => indented("- ", linesOf(item)));
  const fields = typeof value === "object" && value !== null && !Array.isArray(value) ? fieldsOf(value) : [];
  return fields.length > 0 ? fields.flatMap(fieldLines) : [scalar(value)];
}

/** As in JSON, a field that is undefined is absent. */
function fieldsOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, field]) => field !== undefined);
}

function fieldLines([name, value]: [string, unknown]): string[] {
  const lines = linesOf(value);
  const isBlock = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  return isBlock ? [`${scalar(name)}:`, ...indented("  ", lines)] : [`${scalar(name)}: ${lines[0]}`];
}

function indented(first: string, lines: readonly string[]): string[] {
  return lines.map((line, i) => (i === 0 ? first : "  ") + line);
}

function scalar(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  return typeof value === "string" && PLAIN.test(value) ? value : JSON.stringify(value);
}
