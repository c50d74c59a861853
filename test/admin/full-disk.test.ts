import { expect, test } from "bun:test";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { type PetstoreServer, startPetstore } from "../../trials/harness/petstore.ts";

const TOKEN = "the-token-of-the-operators";
/** Files of at most 2 MiB (in blocks of 512 bytes): every user can limit that, and only root can mount a small disk. */
const SMALL_FILES = ["sh", "-c", `trap "" XFSZ; ulimit -f 4096; exec "$0" "$@"`];
/** Much more than fits. */
const MAX_WRITES = 5_000;

const send = ({ adminUrl }: PetstoreServer, method: string, path: string, body?: unknown) =>
  fetch(`${adminUrl}/api${path}`, {
    method,
    headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
const signIn = (server: PetstoreServer) => send(server, "POST", "/session", { token: TOKEN });

async function countOf(server: PetstoreServer, action: string): Promise<number> {
  let count = 0;
  for (let cursor = ""; ;) {
    const response = await send(server, "GET", `/audit?action=${action}&limit=100${cursor}`);
    const { items, nextCursor } = Object(await response.json());
    count += items.length;
    if (nextCursor === null) return count;
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
  }
}

test("on a full disk a change or sign-in without an audit entry is 503, and every other one is in the trail", async () => {
  const data = ["--data", temporaryFolder("disk"), "--port", "0"];
  const flags = [...data, "--admin-address", "127.0.0.1:0", "--admin-token", TOKEN];
  const full = await startPetstore(flags, SMALL_FILES);
  const notes = "x".repeat(1_990);
  let changes = 0;
  while ((await send(full, "PATCH", "/keys/1", { notes: `${notes}${changes}` })).status === 200) {
    expect(++changes).toBeLessThan(MAX_WRITES);
  }
  let signIns = 0;
  let refused = await signIn(full);
  for (; refused.status === 200; refused = await signIn(full)) signIns++;
  expect([refused.status, refused.headers.get("set-cookie")]).toEqual([503, null]);
  expect(Object(await refused.json()).code).toBe("unavailable");
  expect((await send(full, "GET", "/keys")).status).toBe(200);
  await full.stop();

  const repaired = await startPetstore(flags);
  expect(await countOf(repaired, "key.updated")).toBe(changes);
  expect(await countOf(repaired, "admin.signed-in")).toBe(signIns);
  expect((await signIn(repaired)).status).toBe(200);
  await repaired.stop();
}, 60_000);
