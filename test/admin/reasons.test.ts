import { expect, test } from "bun:test";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService();

const key = async () => `key:${(await service.newKey({})).id}`;

/** The operations that take a reason; `test/admin/operation-cases.ts` sees it in the entry of each. */
const WITH_REASON = Object.entries<AdminOperation>(ADMIN_OPERATIONS).flatMap(
  ([id, { method, path, body }]) =>
    body?.kind === "object" && body.names.includes("reason") ? [[id, `${method} /api${path}`] as const] : [],
);

test("some operations take a reason", () => expect(WITH_REASON.length).toBeGreaterThanOrEqual(4));

test.each(WITH_REASON)("%s 400: a reason that is no line of 1 to 200 characters", async (_, path) => {
  for (const reason of ["", "  ", "x".repeat(201), "two\nlines", "bell\u0007", 7]) {
    const { status, json } = await service.admin(path.replace(/\{\w+\}/, "1"), { body: { reason } });
    expect([status, json["message"]]).toEqual([
      400,
      "reason must be a string of 1 to 200 characters on one line that is not blank.",
    ]);
  }
});

test("a reason has up to 200 characters, and nobody has to give one", async () => {
  const target = await key();
  const disable = `POST /api/${target.replace(":", "s/")}/disable`;
  const longest = "🐾".repeat(200);
  await service.ok(disable, { body: { reason: longest } });
  await service.ok(disable.replace("disable", "revoke"));
  const { items } = await service.ok(`/api/audit?target=${target}`);
  expect(items).toMatchObject([{ action: "key.revoked" }, { after: { reason: longest } }, {}]);
  expect(Object(items)[0].after).not.toHaveProperty("reason");
});
