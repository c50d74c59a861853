import { expect, test } from "bun:test";
import { hash } from "node:crypto";
import { POSTGRES_MIGRATIONS as POSTGRES } from "../../src/store/postgres/migrations.ts";
import { SQLITE_MIGRATIONS as SQLITE } from "../../src/store/sqlite/migrations.ts";

const digests = (steps: typeof SQLITE | typeof POSTGRES) =>
  Object.fromEntries(
    steps.map((step) => {
      const sql = "sql" in step ? step.sql : step.statements.join("; ");
      return [step.name, hash("sha256", sql.replace(/\s+/g, " ")).slice(0, 16)];
    }),
  );

test("a released migration is never edited", () => {
  expect(digests(SQLITE)).toMatchInlineSnapshot(`
    {
      "animals, orders and attempts, API keys, server settings": "298051bd9a3ed548",
      "keys that are switched off": "43742cd30c8fd265",
      "limits of the plans and ban rules, which all servers share": "4e7afae19ca657f5",
      "operators, their tokens, sessions and sign-in codes, operators in the audit trail": "1b5a93949c97e55b",
      "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history, orders by pet, imports": "8f3bc626bb903110",
      "pets without their JSON, which statements write": "b5c393b3d8c696db",
      "position of the webhook, announced expiries of keys": "252f6e804e30cc43",
      "the secret of the servers in a table of its own": "73da2209af728ebe",
      "usage history without sums of all keys": "10be6b2ba71567bc",
      "when orders were closed": "faa2b1cae9fcfe7e",
    }
  `);
  expect(digests(POSTGRES)).toMatchInlineSnapshot(`
    {
      "animals, orders and attempts, API keys, server settings": "79bde34d893f80bb",
      "audit trail by operator": "86e44c012c43298a",
      "deprecated operations of keys, imports": "b0b7e60d2a6a8b97",
      "keys by expiry": "6d8479f5788961f3",
      "keys that are switched off": "2ace0940b35171a8",
      "limits of the plans and ban rules, which all servers share": "7c6c719424b0b775",
      "operators, their tokens, sessions and sign-in codes, operators in the audit trail": "f1be79b4854740dd",
      "orders by pet": "658172022ce74037",
      "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history": "a50b68c697ce0d0f",
      "position of the webhook, announced expiries of keys, identifiers of audit entries in order": "ad8bfaeb0fe79f56",
      "the secret of the servers in a table of its own": "cb1d429eae4e78c7",
      "when orders were closed": "13169d763aa02063",
    }
  `);
});
