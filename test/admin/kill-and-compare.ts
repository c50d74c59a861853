import { expect } from "bun:test";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { adminFlags, type PetstoreServer, startPetstore } from "../../trials/harness/petstore.ts";
import { sendAdmin, TOKEN } from "./admin-service.ts";
import { until } from "../timing.ts";

const OPERATORS = 4;
/** The server is killed after so many. */
const ACKNOWLEDGED = 200;

async function admin({ adminUrl }: PetstoreServer, method: string, path: string, body?: object) {
  const { status, json } = await sendAdmin(adminUrl, { method, path: `/api${path}`, body });
  if (status >= 300) throw new Error(`${method} ${path}: ${status}`);
  return Object(json);
}

/** Creates, renames and rolls keys and signs in until the server is gone. Adds what the server acknowledged. */
async function work(server: PetstoreServer, operator: number, acknowledged: string[]): Promise<void> {
  try {
    for (let round = 0; ; round++) {
      const name = `${operator}-${round}`;
      const { key } = await admin(server, "POST", "/keys", { name, plan: "free" });
      acknowledged.push(`key.created ${name}`);
      await admin(server, "PATCH", `/keys/${key.id}`, { name: `renamed-${name}` });
      acknowledged.push(`key.updated renamed-${name}`);
      const rotated = await admin(server, "POST", `/keys/${key.id}/rotate`);
      acknowledged.push(`key.rolled ${rotated.key.secrets[0].hint}`);
      await admin(server, "POST", "/session", { token: TOKEN });
      acknowledged.push("admin.signed-in");
    }
  } catch {
    // The server is gone.
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

/** Kills a server on this storage while operators work, and looks for what it acknowledged in the audit trail. */
export async function killAndCompare(storage: readonly string[]): Promise<void> {
  const data = ["--data", temporaryDirectory("audit"), "--port", "0"];
  const flags = [...storage, ...data, ...adminFlags(TOKEN)];
  const killed = await startPetstore(flags);
  const acknowledged: string[] = [];
  const working = Array.from({ length: OPERATORS }, (_, operator) => work(killed, operator, acknowledged));
  await until(() => acknowledged.length >= ACKNOWLEDGED, 10_000);
  await killed.stop("SIGKILL");
  await Promise.all(working);

  const restarted = await startPetstore(flags);
  const entries = await auditTrail(restarted);
  const names = new Set(entries);
  expect(acknowledged.filter((entry) => !names.has(entry))).toEqual([]);
  const signIns = (all: readonly string[]) => all.filter((entry) => entry === "admin.signed-in").length;
  expect(signIns(entries)).toBeGreaterThanOrEqual(signIns(acknowledged));
  // The first key, the operator of the token, and at most one change of each operator whose response never arrived.
  expect(entries.length).toBeLessThanOrEqual(acknowledged.length + 2 + OPERATORS);
  await restarted.stop();
}
