import { expect, test } from "bun:test";
import { hash } from "node:crypto";
import { POSTGRES_MIGRATIONS as POSTGRES } from "../../src/store/postgres/migrations.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS as SQLITE } from "../../src/store/sqlite/migrations.ts";
import { temporaryFolder } from "./temporary-folder.ts";

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
      "operators, their tokens, sessions and sign-in codes, operators in the audit trail": "1b5a93949c97e55b",
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
      "audit trail by operator": "86e44c012c43298a",
      "deprecated operations of keys": "badaafb16df7165f",
      "imports": "f9794e9a78d61c35",
      "keys of earlier orders, and indexes": "574815d5321b7cb6",
      "keys of orders": "9764a2fdb2485854",
      "keys that are switched off": "2ace0940b35171a8",
      "operators, their tokens, sessions and sign-in codes, operators in the audit trail": "44a3fd0f99634432",
      "orders by pet": "658172022ce74037",
      "owners, notes, labels and access of keys, hints of secrets, audit trail": "a6f276dfa45f29c3",
      "revisions of unbans": "6703cc1314b3cbc5",
      "server settings": "c44db56bcc77a2d5",
      "usage history": "33aa9d6b07e428fe",
    }
  `);
});

test("SQLite 9 packs the counts of up to 100 keys by 1 and 4 hours, 1 and 5 days: in 32 bits, or all in 64", () => {
  using folder = temporaryFolder();
  const open = (version: number) =>
    openDatabase(folder.path("store.db"), {
      migrations: SQLITE.slice(0, version),
      synchronous: "FULL",
      cacheKiB: 1024,
      busyTimeoutMs: 0,
    });
  const earlier = open(8);
  for (const table of ["usage_hours", "usage_days"]) {
    const length = table === "usage_hours" ? 3_600_000 : 86_400_000;
    for (const [start, key, admitted] of [
      [3, 7, 40],
      [3, 150, 2],
      [4, 9, 3],
      [5, 7, 2 ** 32],
      [5, 8, 1],
    ] as const) {
      const values = [start * length, key, admitted, 5, 0, 1, "{}"];
      earlier.value(`INSERT INTO ${table} VALUES (?, ?, ?, ?, ?, ?, ?)`, ...values);
    }
  }
  earlier.close();
  const connection = open(9);
  const rows = connection.all<Record<string, unknown>>(
    `SELECT length / 3600000 AS hours, start / length AS start, block, number_bytes AS bytes, hex(counts) AS counts
     FROM usage_totals ORDER BY 1, 2, 3`,
  );
  connection.close();
  const packed = rows.map((row) => Object.values(row).join(" "));
  expect(packed).toMatchInlineSnapshot(`
    [
      "1 3 0 4 0700000028000000050000000000000001000000",
      "1 3 1 4 9600000002000000050000000000000001000000",
      "1 4 0 4 0900000003000000050000000000000001000000",
      "1 5 0 8 0000000000001C40000000000000F04100000000000014400000000000000000000000000000F03F0000000000002040000000000000F03F00000000000014400000000000000000000000000000F03F",
      "4 0 0 4 0700000028000000050000000000000001000000",
      "4 0 1 4 9600000002000000050000000000000001000000",
      "4 1 0 8 0000000000002240000000000000084000000000000014400000000000000000000000000000F03F0000000000001C40000000000000F04100000000000014400000000000000000000000000000F03F0000000000002040000000000000F03F00000000000014400000000000000000000000000000F03F",
      "24 3 0 4 0700000028000000050000000000000001000000",
      "24 3 1 4 9600000002000000050000000000000001000000",
      "24 4 0 4 0900000003000000050000000000000001000000",
      "24 5 0 8 0000000000001C40000000000000F04100000000000014400000000000000000000000000000F03F0000000000002040000000000000F03F00000000000014400000000000000000000000000000F03F",
      "120 0 0 4 07000000280000000500000000000000010000000900000003000000050000000000000001000000",
      "120 0 1 4 9600000002000000050000000000000001000000",
      "120 1 0 8 0000000000001C40000000000000F04100000000000014400000000000000000000000000000F03F0000000000002040000000000000F03F00000000000014400000000000000000000000000000F03F",
    ]
  `);
});
