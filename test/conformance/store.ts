import { describe, expect, test as plainTest } from "bun:test";
import { auditStoreConformance } from "./audit-store.ts";
import { keyListConformance } from "./key-list.ts";
import { keyStoreConformance } from "./key-store.ts";
import { importStoreConformance } from "./import-store.ts";
import { operatorStoreConformance } from "./operator-store.ts";
import { policyStoreConformance } from "./policy-store.ts";
import { serverTablesConformance } from "./server-tables.ts";
import { valueStoreConformance } from "./value-store.ts";
import { PortCalls, STORE_PORTS } from "./port-calls.ts";
import { idempotencyCases } from "./store-idempotency.ts";
import { type OpenStores, testsOn, withImports } from "./store-fixture.ts";
import { modelCases } from "./store-model.ts";
import { orderCases } from "./store-orders.ts";
import { petCases } from "./store-pets.ts";
import { tableStoreConformance } from "./table-store.ts";
import { usageHistoryConformance } from "./usage-history.ts";
import { webhookStoreConformance } from "./webhook-store.ts";

/** What all stores of a database do, on whatever database. */
export function storeConformance(name: string, openStores: OpenStores): void {
  const calls = new PortCalls();
  const open: OpenStores = async () => {
    const opened = await openStores();
    const another = async () => calls.recordedStores(await opened.another());
    return { ...calls.recordedStores(opened), another };
  };
  const test = testsOn(open);
  describe(`${name} as a ClientStore and an OperatorPetStore`, () => {
    petCases(test);
    orderCases(test);
    idempotencyCases(test);
    modelCases(open);
  });
  describe(`${name} as a KeyStore`, () => {
    keyStoreConformance(test);
    keyListConformance(test);
  });
  describe(`${name} as an OperatorStore`, () => operatorStoreConformance(test));
  describe(`${name} as an AuditStore`, () => auditStoreConformance(test));
  describe(`${name} as a PolicyStore`, () => policyStoreConformance(test));
  describe(`${name} as a ValueStore`, () => valueStoreConformance(test));
  describe(`${name} as a ServerReportStore and a QuestionStore`, () => serverTablesConformance(test));
  describe(`${name} as a UsageHistoryStore`, () => usageHistoryConformance(test));
  describe(`${name} as a WebhookStore`, () => webhookStoreConformance(test));
  const testWithImports = testsOn(withImports(open));
  describe(`${name} as an ImportStore`, () => importStoreConformance(testWithImports));
  describe(`${name} as a TableStore`, () => tableStoreConformance(testWithImports));
  plainTest(`${name}: a case calls each method of each store`, () => {
    expect(calls.missing(STORE_PORTS.values())).toEqual([]);
  });
}
