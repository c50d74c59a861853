import { describe, expect, test } from "bun:test";
import { temporaryFolder } from "../../../harness/cleanup.ts";
import { type PetstoreServer, startPetstore } from "../../../harness/petstore.ts";
import { postgresUrl } from "../../../harness/postgres.ts";

const TOKEN = "the-token-of-the-operators";
const OPERATORS = 4;

type Fields = Record<string, unknown>;

async function admin({ adminUrl }: PetstoreServer, method: string, path: string, body?: Fields) {
  const response = await fetch(`${adminUrl}/api${path}`, {
    method,
    headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json: unknown = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return Object(json);
}

/** Creates, renames and rolls keys and signs in until the server is gone. Returns what the server acknowledged. */
async function work(server: PetstoreServer, operator: number): Promise<string[]> {
  const acknowledged: string[] = [];
  try {
    for (let round = 0; ; round++) {
      const name = `${operator}-${round}`;
      const { key } = await admin(server, "POST", "/keys", { name, plan: "free" });
      acknowledged.push(`key.created ${name}`);
      await admin(server, "PATCH", `/keys/${key.id}`, { name: `renamed-${name}` });
      acknowledged.push(`key.updated renamed-${name}`);
      const rolled = await admin(server, "POST", `/keys/${key.id}/roll`);
      acknowledged.push(`key.rolled ${rolled.key.secrets[0].hint}`);
      await admin(server, "POST", "/session", { token: TOKEN });
      acknowledged.push("admin.signed-in");
    }
  } catch {
    return acknowledged;
  }
}

async function auditTrail(server: PetstoreServer): Promise<string[]> {
  const entries: string[] = [];
  for (let cursor = ""; ;) {
    const { items, nextCursor } = await admin(server, "GET", `/audit?limit=100${cursor}`);
    for (const { action, after } of items) {
      entries.push([action, action === "key.rolled" ? after.hint : after?.name].filter(Boolean).join(" "));
    }
    if (nextCursor === null) return entries;
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
  }
}

const storages: [string, () => Promise<string[]>][] = [
  ["SQLite", async () => []],
  ["PostgreSQL", async () => ["--database-url", await postgresUrl()]],
];

describe.each(storages)("the audit trail on %s", (_, storageOf) => {
  test("SIGKILL loses no entry of an acknowledged change or sign-in", async () => {
    const data = ["--data", temporaryFolder("audit")];
    const flags = [...(await storageOf()), ...data, "--port", "0", "--admin-address", "127.0.0.1:0"];
    const killed = await startPetstore([...flags, "--admin-token", TOKEN]);
    const working = Array.from({ length: OPERATORS }, (__, operator) => work(killed, operator));
    await Bun.sleep(1_500);
    await killed.stop("SIGKILL");
    const acknowledged = (await Promise.all(working)).flat();
    expect(acknowledged.length).toBeGreaterThan(20);

    const restarted = await startPetstore([...flags, "--admin-token", TOKEN]);
    const entries = await auditTrail(restarted);
    const names = new Set(entries);
    expect(acknowledged.filter((entry) => !names.has(entry))).toEqual([]);
    const signIns = (all: readonly string[]) => all.filter((entry) => entry === "admin.signed-in").length;
    expect(signIns(entries)).toBeGreaterThanOrEqual(signIns(acknowledged));
    // The first key, and at most one change of each operator whose response never arrived.
    expect(entries.length).toBeLessThanOrEqual(acknowledged.length + 1 + OPERATORS);
    await restarted.stop();
  }, 40_000);
});
