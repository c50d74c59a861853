import { expect, test } from "bun:test";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService({}, {}, { max: 10_000, perSecond: 10_000 });

/** A value of each parameter; one with a path comes first. */
const VALUES: Readonly<Record<string, string>> = {
  search: "rex",
  plan: "free",
  state: "active",
  access: "write",
  label: "a",
  owner: "ann",
  unusedSince: "2026-01-01T00:00:00Z",
  deprecatedSince: "2026-01-01T00:00:00Z",
  expiresBefore: "2036-01-01T00:00:00Z",
  usedPercent: "1",
  revoked: "exclude",
  sort: "usedToday",
  order: "desc",
  limit: "1",
  by: "hour",
  since: "2026-01-01T00:00:00Z",
  until: "2036-01-01T00:00:00Z",
  range: "24h",
  operator: "ann",
  actor: "console",
  action: "key.created",
  target: "key:1",
  after: "1",
  "/orders status": "placed",
  "/pets status": "sold",
  categoryId: "1",
  id: "1",
  name: "bootstrap",
  keyId: "1",
  petId: "1",
};

function queriesOf({ path, query = {} }: AdminOperation): readonly string[] {
  // Conditions on requests of clients read what is in memory.
  if (path === "/requests") return [""];
  const names = Object.keys(query).filter((name) => name !== "cursor");
  const valueOf = (name: string) => VALUES[`${path} ${name}`] ?? VALUES[name];
  expect({ path, without: names.filter((name) => valueOf(name) === undefined) }).toEqual({
    path,
    without: [],
  });
  return ["", ...names.map((name) => `?${name}=${encodeURIComponent(valueOf(name) ?? "")}`)];
}

/** Tables with a row for each server, which the register of servers reads. */
const OF_SERVERS = /\b(?:servers|server_questions)\b/;

/** Runs requests and returns the statements that handlers of operators ran in this thread. */
async function statementsOfHandlers(requests: readonly string[], body?: { readonly body: object }) {
  const { rows } = Connection.prototype;
  const found = new Set<string>();
  Connection.prototype.rows = function (statement) {
    const isOfHandler = new Error("the stack").stack?.includes("/operator/handlers/");
    if (isOfHandler && !OF_SERVERS.test(statement.sql)) found.add(statement.sql.replaceAll(/\s+/g, " "));
    return rows.call(this, statement);
  };
  try {
    for (const request of requests) {
      const { status } = await service.admin(request, body);
      expect([200, 404], request).toContain(status);
    }
  } finally {
    Connection.prototype.rows = rows;
  }
  return [...found];
}

test("no operation whose method is GET runs a statement in the thread that serves clients", async () => {
  const { secret } = await service.newKey({ name: "app" });
  for (let i = 0; i < 3; i++)
    await service.call({ method: "POST", path: "/pets", key: secret, body: { name: "Rex", categoryId: 1 } });
  await service.call({ method: "POST", path: "/store/orders", key: secret, body: { petId: 1 } });
  // An operation that needs no token reads the operators, to authenticate whoever sends one.
  const reads = Object.values<AdminOperation>(ADMIN_OPERATIONS).filter(
    ({ method, needsNoToken }) => method === "GET" && !needsNoToken,
  );
  const requests = reads.flatMap((operation) =>
    queriesOf(operation).map((query) => `/api${operation.path.replace(/\{\w+\}/, "1")}${query}`),
  );
  expect(requests.length).toBeGreaterThan(50);
  expect(await statementsOfHandlers(requests)).toEqual([]);
  // What changes something reads it in this thread, so the test would see the others, too.
  const changed = await statementsOfHandlers(["PATCH /api/keys/1"], { body: { name: "shop" } });
  expect(changed.length).toBeGreaterThan(0);
});
