import { askOnce } from "./sanity.ts";
import type { Server } from "./servers.ts";
import type { Values } from "./values.ts";
import { workOf } from "./work.ts";

const PATIENCE_MS = 5_000;
const PAUSE_MS = 50;

/**
 * Uses up the spent key's one request. Petstore bans a key that goes on after that, so it is brought to that point, the
 * state in which anyone who sends thousands of requests too many is a moment later.
 */
export async function spend(server: Server, values: Values): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const { status, body } = await askOnce(server, workOf("429"), "list", values);
    if (status === 429 && (server.id !== "ours" || body.includes("key_banned"))) return;
    if (performance.now() > deadline)
      throw new Error(`${server.id} does not refuse the spent key: ${status} ${body}`);
    await Bun.sleep(PAUSE_MS);
  }
}
