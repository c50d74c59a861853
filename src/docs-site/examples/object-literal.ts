/** The fields of a body: name → JSON of the value. */
export type Fields = Readonly<Record<string, string>>;

export interface LiteralStyle {
  /** Indentation of the line on which the literal begins, and of one level. */
  readonly indent: number;
  readonly step: number;
  readonly hasQuotedNames: boolean;
  /** After the last field, if each has a line of its own. */
  readonly hasTrailingComma: boolean;
  /** Between the braces and the fields, if all are on one line. */
  readonly padding: "" | " ";
}

/** Examples are shown in a narrow column. */
const MAX_FIELDS_ON_A_LINE = 2;

const JSON_STYLE = { step: 2, hasQuotedNames: true, hasTrailingComma: false, padding: "" } as const;
const JAVASCRIPT_STYLE = { step: 2, hasQuotedNames: false, hasTrailingComma: true, padding: " " } as const;
const PYTHON_STYLE = { step: 4, hasQuotedNames: true, hasTrailingComma: true, padding: "" } as const;

export const jsonObject = (fields: Fields, indent: number) =>
  objectLiteral(fields, { ...JSON_STYLE, indent });
export const javascriptObject = (fields: Fields, indent: number) =>
  objectLiteral(fields, { ...JAVASCRIPT_STYLE, indent });
export const pythonObject = (fields: Fields, indent: number) =>
  objectLiteral(fields, { ...PYTHON_STYLE, indent });

function objectLiteral(fields: Fields, style: LiteralStyle): string {
  const { indent, step, hasQuotedNames, hasTrailingComma, padding } = style;
  const entries = Object.entries(fields).map(
    ([name, value]) => `${hasQuotedNames ? JSON.stringify(name) : name}: ${value}`,
  );
  if (entries.length <= MAX_FIELDS_ON_A_LINE) return `{${padding}${entries.join(", ")}${padding}}`;
  const lines = entries.map((entry) => " ".repeat(indent + step) + entry);
  return `{\n${lines.join(",\n")}${hasTrailingComma ? "," : ""}\n${" ".repeat(indent)}}`;
}
