import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { startApp } from "../../src/app.ts";
import { createLog } from "../../src/observe/log.ts";
import { openStores } from "../../src/adapters/open-stores.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { BY } from "../key-store-arguments.ts";
import { configIn, TestClock } from "../service.ts";
import { ADMIN_CONFIG, sendAdmin } from "./admin-service.ts";

const directory = temporaryDirectory("audit-log");
const lines: string[] = [];
const config = { ...configIn(directory), admin: ADMIN_CONFIG };
const log = createLog({ format: "json", write: (line) => lines.push(line) });
const app = await startApp(config, { clock: new TestClock(), log });
afterAll(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

/** The audit events of what `work` does. */
async function auditedBy(work: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  lines.length = 0;
  await work();
  return lines.map((line) => JSON.parse(line)).filter(({ event }) => event.startsWith("audit."));
}

const post = (path: string, body: unknown, method = "POST") =>
  sendAdmin(app.admin?.url ?? "", { method, path: `/api${path}`, body });

test("every audit entry is an event of the server that wrote it, with the fields of the entry", async () => {
  const events = await auditedBy(() => post("/keys", { name: "app", plan: "free" }));
  expect(events).toEqual([
    {
      time: expect.any(String),
      level: "info",
      event: "audit.key.created",
      message: "this server has added an entry to the audit trail",
      id: expect.any(String),
      at: "2026-11-15T12:00:00.000Z",
      actor: { operator: "bootstrap", kind: "admin API", name: "127.0.0.1" },
      target: { kind: "key", id: "1" },
      before: null,
      after: { name: "app", plan: "free", access: "write", hint: expect.any(String) },
    },
  ]);
});

test("changes of keys, pets, operators, sign-ins and bans: each has its event", async () => {
  const eventsOf = async (work: () => Promise<unknown>) => (await auditedBy(work)).map(({ event }) => event);
  expect(await eventsOf(() => post("/keys/1", { owner: "bob" }, "PATCH"))).toEqual(["audit.key.updated"]);
  expect(await eventsOf(() => post("/pets", { name: "Rex", categoryId: 7 }))).toEqual(["audit.pet.created"]);
  expect(await eventsOf(() => post("/pets/1", { name: "Max" }, "PATCH"))).toEqual(["audit.pet.updated"]);
  expect(await eventsOf(() => post("/operators", { name: "ann", role: "viewer" }))).toEqual([
    "audit.operator.created",
  ]);
  expect(await eventsOf(() => post("/session", { token: ADMIN_CONFIG.token }))).toEqual([
    "audit.admin.signed-in",
  ]);
});

test("what changes nothing has no event, and what another process writes has none here", async () => {
  expect(await auditedBy(() => post("/keys/1", { owner: "bob" }, "PATCH"))).toEqual([]);
  expect(await auditedBy(() => post("/pets/99", { name: "Max" }, "PATCH"))).toEqual([]);
  const stores = await openStores(config.data);
  expect(await auditedBy(() => stores.keys.updateKey(1, { owner: "eve" }, BY))).toEqual([]);
  await stores.close();
});
