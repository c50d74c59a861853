import { playAll } from "./play.ts";
import { RECORD, write } from "./responses.ts";
import { SCENARIOS } from "./scenarios.ts";

/**
 * Writes down what the program responds with: `bun test/recorded/record.ts`. Only a deliberate change of the API is a
 * reason to do so.
 */
const responses = await playAll(SCENARIOS);
await Bun.write(RECORD, write(responses));
console.log(`${responses.size} requests are recorded in ${RECORD}`);
process.exit();
