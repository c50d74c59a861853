import type { AllRowCounts } from "../../bench/skewed-rows.ts";
import type { Stores } from "../../src/domain/ports/stores.ts";
import { DAY_MS, filterSets, ORDER_FILTER_VALUES, PET_FILTER_VALUES, rex } from "./store-fixture.ts";

const BY = { actor: { kind: "console" }, at: 1 } as const;
const KEY_BANNED = { action: "key.banned", target: { kind: "key", id: 1n } } as const;
const SECRET = { hash: "a".repeat(64), hint: "pet_test_abcd" };
const REQUEST = { keyId: 1, idempotencyKey: "k", fingerprint: "f" };

/** The rows before the calls. With `times` 4 there are four times as many of everything that grows. */
export function growingRows(times: number): AllRowCounts {
  const rows = 12_000 * times;
  const usage = { keys: 100, days: 20 * times, hours: 5 * times };
  return { pets: rows, orders: rows, audit: rows, keys: 1_000 * times, usage };
}

/**
 * Calls every method of the stores, with every combination of filters that has a statement of its own. The stores can
 * be empty or have rows.
 */
export async function callAll({
  clientStore,
  operatorPetStore,
  petJson,
  keys,
  audit,
  usageHistory,
  ...rest
}: Stores) {
  const key = await keys.createKey({ name: "shop", plan: "free", createdAt: 1 }, SECRET, BY);
  await keys.addSecret(key.id, { ...SECRET, hash: "b".repeat(64), overlapEndsAt: 2 }, BY);
  await keys.updateKey(key.id, { name: "store" }, BY);
  await keys.findCredential(SECRET.hash);
  await keys.changesSince(0);
  await keys.listKeys({ limit: 1, now: 1 });
  await keys.getKey(key.id);
  await keys.getKeys([key.id]);
  await keys.createFirstKey({ name: "first", plan: "free", createdAt: 1 }, SECRET, BY);
  await keys.announceExpiries(1, BY);
  await keys.listSecrets([key.id]);
  for (const name of ["Rex", "Tom", "Max"]) await clientStore.createPet({ ...rex, name }, 1, REQUEST);
  await clientStore.createPet(rex, 2 * DAY_MS);
  await clientStore.placeOrder({ keyId: 1, petId: 1n }, 1);
  await clientStore.updateOrder({ keyId: 1, id: 1n, status: "cancelled" }, 0);
  await operatorPetStore.getPet(1n);
  await clientStore.getOrder(1, 1n);
  await operatorPetStore.getOrder(1n);
  for (const [, filters] of PET_FILTER_SETS)
    await operatorPetStore.searchPets("Rex", { limit: 1, ...filters });
  await operatorPetStore.createPet({ name: "Kim", categoryId: 1n }, BY);
  await operatorPetStore.updateOrder(1n, "completed", BY);
  await operatorPetStore.updatePet(1n, { name: "Tom", status: "sold" }, BY);
  await operatorPetStore.deletePet(2n, BY);
  for (const [, filters] of PET_FILTER_SETS) {
    for (const ids of [undefined, [1n, 3n]]) {
      await operatorPetStore.listPets({ limit: 1, ids, ...filters });
      petJson.list({ limit: 1, ids, ...filters });
    }
  }
  petJson.get(1);
  for (const [, filters] of filterSets(ORDER_FILTER_VALUES)) {
    await clientStore.listOrders(1, { limit: 1, ...filters });
    for (const others of [{}, { keyId: 1 }, { petId: 1n, keyId: 1 }])
      await operatorPetStore.listOrders({ limit: 1, ...others, ...filters });
  }
  await audit.listAudit({ limit: 1 });
  await audit.recordAudit({ ...BY, action: "data.imported" });
  await audit.recordAuditUnless(KEY_BANNED, { ...BY, ...KEY_BANNED });
  await audit.deleteAudit(1);
  const counts = { admitted: 1, limited: 0, banned: 0, errors: 0, byOperation: [] };
  const usage = { keyId: key.id, lastUsedAt: 1, ...counts };
  await usageHistory.addUsage({ writer: "w", sequence: 1, hour: 0, keys: [usage] });
  for (const by of ["hour", "day"] as const) {
    await usageHistory.readUsage({ keyId: key.id, by, since: 0, until: 1 });
    await usageHistory.usageByKey({ by, since: 0, until: 1 });
  }
  await usageHistory.lastUsed([key.id]);
  await usageHistory.countDeprecatedUse(0);
  await usageHistory.deleteOldUsage(DAY_MS);
  await useSmallTables(rest);
}

type SmallStores = Pick<
  Stores,
  "operators" | "policies" | "storedValues" | "serverReports" | "questions" | "webhooks"
>;

async function useSmallTables({ operators, policies, storedValues, webhooks, ...rest }: SmallStores) {
  const ann = { name: "ann", role: "admin" } as const;
  const hashOf = (letter: string) => letter.repeat(64);
  const tokenOf = (letter: string) => ({ hash: hashOf(letter), hint: "hint" });
  await operators.createFirstOperator(ann, tokenOf("a"), BY);
  await operators.createOperator({ ...ann, name: "bob" }, tokenOf("b"), BY);
  await operators.importOperator({ ...ann, name: "eve" }, tokenOf("c"), BY);
  const eva = { name: "eva@example.com", role: "admin", expiresAt: DAY_MS } as const;
  for (const letter of ["8", "9"])
    await operators.admitOperator({ ...eva, subject: letter }, tokenOf(letter), BY);
  await operators.expirePerson("9", BY);
  await operators.updateOperator(1, { expiresAt: null }, BY);
  await operators.rotateOperator(1, { ...tokenOf("e"), overlapEndsAt: BY.at + 1 }, BY);
  await operators.rotateOperator(1, tokenOf("d"), BY);
  await operators.recordUse(1, DAY_MS);
  const session = {
    operatorId: 1,
    cookieHash: hashOf("c"),
    secretHash: hashOf("s"),
    tokenHash: hashOf("d"),
    createdAt: 1,
    endsAt: DAY_MS,
  };
  await operators.createSession(session, { ...BY, action: "admin.signed-in" });
  await operators.rotateOperator(1, { ...tokenOf("f"), keeps: hashOf("c") }, BY);
  await operators.deleteSession(hashOf("c"), { ...BY, action: "admin.signed-out" });
  await operators.deleteSessions(1, BY);
  await operators.createCode({ codeHash: hashOf("c"), operatorId: 1, endsAt: DAY_MS }, 1);
  await operators.takeCode(hashOf("c"));
  await operators.revokeOperator(2, BY);
  await operators.readAccess();
  await operators.listOperators();
  await policies.readPolicy();
  await policies.updatePolicy({ ban: { strikes: 11 } }, BY);
  await policies.countKeys();
  await storedValues.saveValues({ a: "b" });
  await storedValues.readValues();
  await storedValues.readTime();
  const { serverReports, questions } = rest;
  await serverReports.report("a", "{}");
  await serverReports.listReports();
  await serverReports.deleteReports(["a"]);
  await questions.ask([{ id: "q", operation: "getSettings", query: "" }]);
  await questions.take("a", "machine", 9);
  await questions.answer("q", "{}");
  await questions.readAnswers(["q"]);
  await questions.forget(["q"]);
  const state = await webhooks.openWebhook("source", 0);
  await webhooks.readWebhook();
  await webhooks.takeWebhook("server", state);
  await webhooks.saveWebhook("server", { ...state, beat: 1, position: 1n });
  await webhooks.countWaiting(0n, new Set(["key.created"]));
  await webhooks.countWaiting(0n, undefined);
  await webhooks.releaseWebhook("server");
}

const PET_FILTER_SETS = filterSets(PET_FILTER_VALUES);
