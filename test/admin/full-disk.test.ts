import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { temporaryFolder } from "../../harness/cleanup.ts";
import { startPetstore } from "../../harness/petstore.ts";

const TOKEN = "the-token-of-the-operators";
/** More than the free pages of the files take. */
const MAX_WRITES = 2_000;

test("on a full disk a sign-in or change without an audit entry is 503, and every other one is in the trail", async () => {
  const path = temporaryFolder("disk");
  // A disk in memory that is mounted for the process of the server only, and vanishes with it.
  const under = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs -o size=16m tmpfs "$0" && exec "$@"',
    path,
  ];
  const flags = ["--data", path, "--port", "0", "--admin-address", "127.0.0.1:0", "--admin-token", TOKEN];
  const server = await startPetstore(flags, under);
  const send = (method: string, url: string, body?: unknown) =>
    fetch(`${server.adminUrl}/api${url}`, {
      method,
      headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const signIn = () => send("POST", "/session", { token: TOKEN });
  let [signIns, changes] = [0, 0];

  const filler = `/proc/${server.pid}/root${path}/filler`;
  fill(filler);
  const notes = "x".repeat(2_000);
  for (let i = 0; i < MAX_WRITES; i++) {
    const { status } = await send("PATCH", "/keys/1", { notes: `${notes.slice(10)}${i}` });
    if (status === 503) break;
    expect(status).toBe(200);
    changes++;
  }
  let refused = await signIn();
  for (; refused.status === 200; refused = await signIn()) signIns++;
  expect([refused.status, refused.headers.get("set-cookie")]).toEqual([503, null]);
  expect(changes).toBeLessThan(MAX_WRITES);
  const { database } = Object(await (await send("GET", "/server")).json());
  expect(database.kind).toBe("SQLite");

  rmSync(filler);
  expect((await signIn()).status).toBe(200);
  expect(await countOf("admin.signed-in")).toBe(signIns + 1);
  expect(await countOf("key.updated")).toBe(changes);
  await server.stop();

  async function countOf(action: string): Promise<number> {
    let count = 0;
    for (let cursor = ""; ;) {
      const { items, nextCursor } = Object(
        await (await send("GET", `/audit?action=${action}&limit=100${cursor}`)).json(),
      );
      count += items.length;
      if (nextCursor === null) return count;
      cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
    }
  }
}, 60_000);

/** With ever smaller pieces, until not one byte more fits. */
function fill(file: string): void {
  for (let size = 1024 * 1024; size >= 1; size /= 16) {
    try {
      for (;;) writeFileSync(file, new Uint8Array(size), { flag: "a" });
    } catch (error) {
      if (!(error instanceof Error) || Reflect.get(error, "code") !== "ENOSPC") throw error;
    }
  }
}
