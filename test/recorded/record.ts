import { join } from "node:path";
import { playAll, type Responses } from "./play.ts";
import { SCENARIOS } from "./scenarios.ts";

const RECORD = join(import.meta.dir, "responses.txt");
const TITLE = /^=== (.*) ===\n/gm;

function write(responses: Responses): string {
  return [...responses].map(([name, text]) => `=== ${name} ===\n${text}\n`).join("\n");
}

/** What the program responded with when it was last recorded. */
export async function readRecord(): Promise<Responses> {
  const [, ...parts] = (await Bun.file(RECORD).text()).split(TITLE);
  const responses: Responses = new Map();
  for (let i = 0; i < parts.length; i += 2)
    responses.set(parts[i] ?? "", (parts[i + 1] ?? "").replace(/\n\n?$/, ""));
  return responses;
}

/**
 * Writes down what the program responds with: `bun test/recorded/record.ts`. Only a deliberate change of the API is a
 * reason to do so.
 */
if (import.meta.main) {
  const responses = await playAll(SCENARIOS);
  await Bun.write(RECORD, write(responses));
  console.log(`${responses.size} requests are recorded in ${RECORD}`);
  process.exit();
}
