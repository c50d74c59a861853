import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATOR_PACKAGES } from "../trials/compatibility/tools.ts";

type Generator = "@hey-api/openapi-ts" | "orval" | "openapi-typescript";

/** The settings of trials/compatibility/programs, in short. */
const SETTINGS: Readonly<Record<Generator, readonly [forBigint: string, forAllDigits: string]>> = {
  "@hey-api/openapi-ts": [
    '`{ name: "@hey-api/transformers", bigInt: true }` and `{ name: "@hey-api/sdk", transformer: true }` in `plugins`',
    "`bodySerializer: writeJson`, and a response interceptor that replaces the text with `quoteInt64(text)`",
  ],
  orval: [
    "`override: { useBigInt: true }`",
    '`override: { fetch: { jsonReviver: { path: "exact-json.ts", name: "reviveInt64" } } }`, and a `BigInt.prototype.toJSON` that returns `JSON.rawJSON(String(this))`',
  ],
  "openapi-typescript": [
    'call its function instead of its command line, with a `transform` that returns `bigint` for `format: "int64"`',
    '`createClient({ fetch: exactFetch, bodySerializer: writeJson, querySerializer: { array: { style: "form", explode: false } } })` of `openapi-fetch`',
  ],
};

export function generatorSections(): string {
  const sections = Object.entries(SETTINGS) as [Generator, (typeof SETTINGS)[Generator]][];
  return sections
    .map(([name, [forBigint, forAllDigits]]) =>
      [
        `**\`${name}\` ${GENERATOR_PACKAGES[name]}**`,
        `- For \`bigint\`: ${forBigint}.\n- For all digits: ${forAllDigits}.`,
      ].join("\n\n"),
    )
    .join("\n\n");
}

export function exactJson(): string {
  const file = join(import.meta.dir, "../trials/compatibility/programs/exact-json.ts");
  return `\`\`\`ts\n${readFileSync(file, "utf8").trimEnd()}\n\`\`\``;
}
