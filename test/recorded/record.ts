import { merged, playAll } from "./play.ts";
import { scenarios } from "./requests.ts";
import { RECORD, write } from "./responses.ts";

/**
 * Writes down what the program responds with: `bun test/recorded/record.ts`. Only a deliberate change of the API is a
 * reason to do so. RECORDED_ENTRY names the `main.ts` of another version to record, or to run the test against.
 */
const responses = merged(await playAll(scenarios));
await Bun.write(RECORD, write(responses));
console.log(`${responses.size} requests are recorded in ${RECORD}`);
process.exit();
