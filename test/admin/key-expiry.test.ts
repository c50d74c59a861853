import { expect, test } from "bun:test";
import { untilFound } from "../timing.ts";
import { useAdminService } from "./admin-service.ts";

const DAY_MS = 86_400_000;
const service = await useAdminService();

/** The keys whose expiry the audit trail announces, oldest entry first, when it has so many entries. */
function announced(count: number): Promise<unknown[]> {
  return untilFound(async () => {
    const { items } = await service.ok("/api/audit?action=key.expires-soon&after=0");
    if (!Array.isArray(items)) throw new Error("there are no items");
    return items.length < count ? undefined : items.map(({ target }) => target.id);
  }, 10_000);
}

test("a server announces seven days before its expiry that a key expires, by the machine's clock and once", async () => {
  const now = service.clock.now();
  const keyThatExpiresIn = async (ms: number) => (await service.newKey({ expiresAt: now + ms })).id;
  const later = await keyThatExpiresIn(7 * DAY_MS + 1);
  const soon = await keyThatExpiresIn(7 * DAY_MS);
  await service.restart();
  expect(await announced(1)).toEqual([soon]);
  service.clock.step(1);
  await service.restart();
  expect(await announced(2)).toEqual([soon, later]);
  const another = await keyThatExpiresIn(DAY_MS);
  await service.restart();
  expect(await announced(3)).toEqual([soon, later, another]);
  const { items } = await service.ok(`/api/audit?action=key.expires-soon&target=key:${soon}`);
  expect(items).toMatchObject([
    {
      actor: { operator: null, kind: "server" },
      before: null,
      after: { name: "test", owner: null, expiresAt: new Date(now + 7 * DAY_MS).toISOString() },
    },
  ]);
});
