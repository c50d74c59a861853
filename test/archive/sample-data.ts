import type { Contents } from "../../src/archive/contents.ts";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import { newQuota, type Quota } from "../../src/domain/rate-limit.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { directoryAt } from "../data-directory.ts";
import { hash, storedSecret } from "../key-store-arguments.ts";
import { address, key } from "../subjects.ts";

export const NOW = Date.parse("2026-11-15T12:00:00Z");
const BY = { actor: { kind: "command line", name: "ann" }, at: NOW } as const;
/** What is hard to copy: quotes, backslashes, braces, other scripts, line breaks, the word NULL. */
const NAMES = ['Rex "the" dog', "back\\slash", "{a,b}", "日本\n犬", "NULL", "O'Hara", "😀", "\u2028"];

/** Two keys, pets with every status, an order, idempotency records, usage history, stored values and quotas. */
export async function fillData(dataDir: string, pets = 50): Promise<void> {
  const directory = directoryAt(dataDir);
  directory.create();
  const { database: path, quotas: quotaStore } = directory.files;
  const { clientStore, operatorPetStore, operators, keys, policies, storedValues, usageHistory, close } =
    openSqlite(path);
  const limits = { perMinute: 7, perDay: 70 };
  const first = { name: "first", plan: "enterprise", limits, createdAt: NOW, labels: ["a", "b"] } as const;
  const second = { name: "second", plan: "free", createdAt: NOW, expiresAt: NOW + 1e9 } as const;
  await keys.createKey(first, storedSecret(1), BY);
  await keys.createKey(second, storedSecret(2), BY);
  await keys.addSecret(2, { ...storedSecret(3), overlapEndsAt: NOW + 500 }, BY);
  const request = (idempotencyKey: string, i = 0) => ({ keyId: 1, idempotencyKey, fingerprint: hash(i) });
  const createPet = (i: number) => {
    const name = `${NAMES[i % NAMES.length]} ${i}`;
    const categoryId = i % 2 === 0 ? INT64_MAX : INT64_MIN;
    const status = i % 3 === 0 && ({ status: "available" } as const);
    return clientStore.createPet({ name, categoryId, ...status }, NOW, request(`request ${i}`, i));
  };
  await Promise.all(Array.from({ length: pets }, (_, i) => createPet(i)));
  await clientStore.placeOrder({ keyId: 1, petId: 1n }, NOW, request("order"));
  await operatorPetStore.deletePet(BigInt(pets), BY);
  await storedValues.saveValues({ "public-url": "http://127.0.0.1:8080/v1" });
  await policies.updatePolicy({ plans: { pro: { perDay: 123 } }, ban: { strikes: 4 } }, BY);
  const used = [usageOfKey(1), usageOfKey(2)];
  await usageHistory.addUsage({ writer: "a server", sequence: 3, hour: NOW, keys: used });
  const createdBy = { actor: { kind: "command line" }, at: NOW } as const;
  await operators.createOperator({ name: "ann", role: "admin" }, storedSecret(8), createdBy);
  await operators.rotateOperator(1, storedSecret(9), createdBy);
  await close();
  const quotas = openQuotaStore(quotaStore);
  quotas.save([
    [key(1), quotaNow()],
    [key(2), { ...quotaNow(), bannedAt: Date.now(), bannedUntil: Date.now() + 3_000_000 }],
    [address("192.0.2.1"), quotaNow()],
  ]);
  quotas.close();
}

function usageOfKey(keyId: number) {
  const byOperation = [
    { operation: "listPets" as const, admitted: 5, errors: 0 },
    { operation: "createPet" as const, admitted: 4, errors: 1 },
  ];
  return { keyId, admitted: 9, limited: 2, banned: 1, errors: 1, lastUsedAt: NOW, byOperation };
}

/** PostgreSQL counts by its own clock, so these windows are open in the real time. */
export function quotaNow(): Quota {
  const openedAt = Date.now() - 1_000;
  return {
    ...newQuota(),
    minute: { openedAt, used: 5, graceBeganAt: openedAt + 10, strikes: 3 },
    day: { openedAt, used: 55, graceBeganAt: -1, strikes: 0 },
  };
}

/** The contents without the audit trail and its identifiers: migrations and restores add entries. */
export function withoutAudit({ tables, counters }: Contents) {
  return { tables: { ...tables, audit: undefined }, counters: { ...counters, audit: undefined } };
}
