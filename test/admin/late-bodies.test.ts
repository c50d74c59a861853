import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { bearer } from "../bearer.ts";
import { startRequest } from "../http/raw.ts";
import { sessionOf, useAdminService } from "./admin-service.ts";

const service = await useAdminService();

// The last admin cannot be revoked.
await service.newOperator("admin");

async function sessionFor(token: string) {
  return { ...sessionOf(await service.signIn({ token })), Origin: service.adminUrl };
}

type Change = (operatorId: number, headers: Record<string, string>) => unknown;

/** An operator who is created by one whose credential changes while the body arrives, and again afterwards. */
async function meanwhile(kind: "token" | "session", change: Change) {
  const { operator, token } = await service.newOperator("admin");
  const { id } = operator;
  const headers = kind === "token" ? bearer(token) : await sessionFor(token);
  const host = new URL(service.adminUrl).host;
  const body = { name: `late-${id}`, role: "admin" };
  const request = { path: "/api/operators", headers: { ...headers, Host: host }, body };
  const finish = await startRequest(service.adminUrl, request);
  await change(id, headers);
  const late = await finish();
  const fresh = await service.admin("POST /api/operators", { token: null, headers, body });
  const { items } = await service.ok("/api/operators");
  return { late, fresh, isCreated: JSON.stringify(items).includes(`"late-${id}"`) };
}

const revoke: Change = (id) => service.ok(`POST /api/operators/${id}/revoke`);
const rotate: Change = (id) => service.ok(`POST /api/operators/${id}/rotate`);
const signOut: Change = (_, headers) => service.ok("DELETE /api/session", { token: null, headers });
const expire: Change = () => service.clock.advance(12 * 3_600_000);
/** Changes the role as another server does: this one reads all operators again after 500 ms. */
const narrow: Change = (id) => {
  using database = new Database(join(service.dataDir, "production.db"));
  database.run("UPDATE operators SET role = 'viewer' WHERE id = ?", [id]);
  service.clock.advance(500);
};

test.each([
  ["an operator who is revoked", "token", revoke, 401],
  ["a token that is rotated", "token", rotate, 401],
  ["an operator who gets another role", "token", narrow, 403],
  ["a session whose operator is revoked", "session", revoke, 401],
  ["a session that its operator ends", "session", signOut, 401],
  ["a session that expires", "session", expire, 401],
  ["a session whose operator gets another role", "session", narrow, 403],
] as const)(
  "%s while the body arrives is rejected as in a new request, and nothing is done",
  async (_, kind, change, status) => {
    const { late, fresh, isCreated } = await meanwhile(kind, change);
    expect([late.status, late.body]).toEqual([status, fresh.text]);
    expect(late.headers["www-authenticate"] ?? null).toBe(fresh.headers.get("www-authenticate"));
    expect([fresh.status, isCreated]).toEqual([status, false]);
  },
);

test("an operator who stays is not rejected, and the time of the change is when the body has arrived", async () => {
  const { late, isCreated } = await meanwhile("token", () => service.clock.advance(20_000));
  expect([late.status, isCreated]).toEqual([201, true]);
  const { createdAt } = JSON.parse(late.body).operator;
  expect(createdAt).toBe(service.clock.timeIn(0));
});
