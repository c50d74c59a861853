/* Sends a message to a URL and prints the outcome: `bun send-message.ts URL`. */

import { sendMessage } from "../../../src/background/webhook-request.ts";

const [url = ""] = process.argv.slice(2);
const { signal } = new AbortController();
const message = { id: "a_1_2", body: "{}" };
const outcome = await sendMessage({ url, secrets: [new Uint8Array(32)] }, message, {
  now: Date.now(),
  signal,
  timeoutMs: 10_000,
});
process.stdout.write(JSON.stringify(outcome));
process.exit(0);
