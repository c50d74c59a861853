import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

/** A key that is banned now. */
async function bannedKey() {
  const { id, secret } = await service.newKey({ limits: { perMinute: 1, perDay: 100 } });
  const call = () => service.call({ path: "/pets", key: secret });
  await call();
  await call();
  service.clock.advance(1_001);
  for (let i = 0; i < 10; i++) await call();
  expect((await call()).json).toMatchObject({ code: "key_banned" });
  return { id, call };
}

/** Unbans a key, and resolves to its next response after the server has followed that change. */
async function responseAfterUnban(unbannedAt: number) {
  const { id, call } = await bannedKey();
  await service.app.keys.updateKey(id, { unbannedAt, limits: { perMinute: 2, perDay: 100 } });
  for (;;) {
    const response = await call();
    if (response.headers.get("x-ratelimit-limit") === "2") return response;
    await Bun.sleep(5);
  }
}

test("an unban ends a ban that began up to 60 seconds later: the clock of the operator may be behind", async () => {
  expect((await responseAfterUnban(service.clock.now() + 1_001 - 60_000)).status).toBe(200);
});

test("an unban leaves a ban that began more than 60 seconds later", async () => {
  const { json } = await responseAfterUnban(service.clock.now() + 1_001 - 60_001);
  expect(json).toMatchObject({ code: "key_banned" });
});

test("an unban by a clock that is ahead ends the ban", async () => {
  expect((await responseAfterUnban(service.clock.now() + 3_600_000)).status).toBe(200);
});
