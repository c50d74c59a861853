import { expect, test } from "bun:test";
import { hash } from "node:crypto";
import { MIGRATIONS as POSTGRES } from "../../src/store/postgres/migrations.ts";
import { MIGRATIONS as SQLITE } from "../../src/store/sqlite/migrations.ts";

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
      "API keys": "a242ba0535bbe0f8",
      "animals, orders and attempts": "6795eb93606e60e4",
      "imports": "c45b41ab8eb0c264",
      "keys of orders": "5190d84578d61c0a",
      "keys that are switched off": "43742cd30c8fd265",
      "orders by pet, revision of pets": "a9fb04a564693876",
      "owners, notes, labels and access of keys, hints of secrets, audit trail": "6cdff16618516a1f",
      "packed sums of usage, deprecated operations of keys": "fe03f5f9d67e1be1",
      "revisions of unbans": "097e1da3a28e0000",
      "server settings": "5784f967a4366ea9",
      "usage history": "355845ee38fc73e8",
    }
  `);
  expect(digests(POSTGRES)).toMatchInlineSnapshot(`
    {
      "API keys": "33a1e218c77ce437",
      "animals, orders and attempts": "ae855d037afda55d",
      "deprecated operations of keys": "badaafb16df7165f",
      "imports": "f9794e9a78d61c35",
      "keys of earlier orders, and indexes": "574815d5321b7cb6",
      "keys of orders": "9764a2fdb2485854",
      "keys that are switched off": "2ace0940b35171a8",
      "orders by pet": "658172022ce74037",
      "owners, notes, labels and access of keys, hints of secrets, audit trail": "a6f276dfa45f29c3",
      "revisions of unbans": "6703cc1314b3cbc5",
      "server settings": "c44db56bcc77a2d5",
      "usage history": "33aa9d6b07e428fe",
    }
  `);
});
