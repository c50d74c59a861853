import { merged, playAll } from "./play.ts";
import { scenarios } from "./requests.ts";
import { RECORD, write } from "./responses.ts";

/** Writes down what the program responds with: `bun test/recorded/record.ts`. */
const responses = merged(await playAll(scenarios));
await Bun.write(RECORD, write(responses));
console.log(`${responses.size} requests are recorded in ${RECORD}`);
process.exit();
