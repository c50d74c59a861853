import { parseArgs } from "node:util";

export interface Options {
  readonly only: readonly string[] | undefined;
  readonly json: string | undefined;
  readonly docs: boolean;
}

/** Something the caller asked for that cannot be; one line, exit 2. */
export class Misuse extends Error {}

export function help(scenarios: readonly { name: string; title: string }[]): string {
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return `Usage: npm run faults [-- OPTIONS]

Lets things go wrong under load, on real servers of its own, and says what clients noticed: errors, the longest wait, the
time to recover, creates lost or done twice. Exits with 1 when a promise was not kept. Takes less than three minutes.

  --only LIST   Some of these, with commas between (default: all)
${scenarios.map(({ name, title }) => `                  ${name.padEnd(width)}  ${title}`).join("\n")}
  --json FILE   Also write the figures there
  --docs        Also put the figures into docs/reliability.md
  --help        Show this
`;
}

const FLAGS = {
  only: { type: "string" },
  json: { type: "string" },
  docs: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

export function readOptions(args: readonly string[], names: readonly string[]): Options | "help" {
  const values = parse(args);
  if (values.help) return "help";
  const only = values.only?.split(",").map((name) => name.trim());
  const unknown = only?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Misuse(`--only: "${unknown}" is none of ${names.join(", ")}`);
  if (only !== undefined && values.docs)
    throw new Misuse("--docs: the figures of all are needed, so not with --only");
  return { only, json: values.json, docs: values.docs };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error));
  }
}
