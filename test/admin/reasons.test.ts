import { expect, test } from "bun:test";
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService();

const REASON = "leaked in a repository";

async function bannedKey(): Promise<string> {
  const { id, secret } = await service.newKey({ limits: { perMinute: 1, perDay: 100 } });
  const request = () => service.call({ path: "/pets", key: secret });
  for (let requests = 0; requests < 2; requests++) await request();
  for (let strikes = 0; strikes < 10; strikes++) {
    service.clock.advance(1_001);
    await request();
  }
  return `key:${id}`;
}
const key = async () => `key:${(await service.newKey({})).id}`;
const operator = async () => {
  const body = { name: "eve", role: "viewer" };
  return `operator:${Object((await service.ok("POST /api/operators", { body }))["operator"]).id}`;
};

test.each([
  ["revoke", "key.revoked", key],
  ["disable", "key.disabled", key],
  ["unban", "key.unbanned", bannedKey],
  ["revoke", "operator.revoked", operator],
] as const)("%s: %s has the reason that was given", async (verb, action, make) => {
  const target = await make();
  const path = `POST /api/${target.replace(":", "s/")}/${verb}`;
  for (const reason of ["", "  ", "x".repeat(201), "two\nlines", "bell\u0007", 7]) {
    const { status, json } = await service.admin(path, { body: { reason } });
    expect([status, json["message"]]).toEqual([
      400,
      "reason must be a string of 1 to 200 characters on one line that is not blank.",
    ]);
  }
  await service.ok(path, { body: { reason: REASON } });
  const { items } = await service.ok(`/api/audit?target=${target}&action=${action}`);
  expect(items).toMatchObject([{ action, after: { reason: REASON } }]);
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
