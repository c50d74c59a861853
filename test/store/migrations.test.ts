import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { hash } from "node:crypto";
import { RELEASES, releaseOfTables, unregisteredRelease } from "../../src/store/sql/migrations.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sqlite/migrations.ts";

type Release = (typeof RELEASES)[number]["release"];
type Digests = Readonly<Record<string, string>>;

/** The digests of the released steps, which never change. The steps of the next release are not here yet. */
const RELEASED: Readonly<Record<Release, { readonly sqlite: Digests; readonly postgres: Digests }>> = {
  "1.3.0": {
    sqlite: {
      "the token of each session and sign-in code of an operator": "fe827bea7a20a7ed",
      "pets by category and status": "3ffbc2970b8f5f89",
      "the list of servers, and questions to them": "18dad4553dbf6674",
      "audit trail by operator and action": "edabfe99c1b6d8a4",
      "operators who sign in with a provider": "05254a3fc647d032",
    },
    postgres: {
      "the token of each session and sign-in code of an operator": "fe827bea7a20a7ed",
      "pets by category and status": "7898c6318210e649",
      "the list of servers, and questions to them": "cf33ac15e01215b6",
      "audit trail by operator and action": "a06fd3901d57c430",
      "rate limits of keys": "3047dbd32bf1b341",
      "operators who sign in with a provider": "daae0749a60071bf",
    },
  },
  "1.2.0": {
    sqlite: {
      "the secret of the servers in a table of its own": "73da2209af728ebe",
      "pets without their JSON, which statements write": "b5c393b3d8c696db",
      "usage history without sums of all keys": "10be6b2ba71567bc",
      "position of the webhook, announced expiries of keys": "252f6e804e30cc43",
      "limits of the plans and ban rules, which all servers share": "4e7afae19ca657f5",
      "expiry of operators, overlap of their tokens, who made a sign-in code": "9ede9700af415b3e",
      "pets by category": "28bb0526129695e7",
    },
    postgres: {
      "the secret of the servers in a table of its own": "cb1d429eae4e78c7",
      "position of the webhook, announced expiries of keys, identifiers of audit entries in order":
        "ad8bfaeb0fe79f56",
      "keys by expiry": "6d8479f5788961f3",
      "limits of the plans and ban rules, which all servers share": "7c6c719424b0b775",
      "expiry of operators, overlap of their tokens, who made a sign-in code": "77899bbf7b6ae753",
      "pets by category": "640e754047df74ee",
    },
  },
  "1.1.0": {
    sqlite: {
      "keys that are switched off": "43742cd30c8fd265",
      "operators, their tokens, sessions and sign-in codes, operators in the audit trail": "1b5a93949c97e55b",
      "when orders were closed": "faa2b1cae9fcfe7e",
    },
    postgres: {
      "keys that are switched off": "2ace0940b35171a8",
      "operators, their tokens, sessions and sign-in codes, operators in the audit trail": "f1be79b4854740dd",
      "audit trail by operator": "86e44c012c43298a",
      "when orders were closed": "13169d763aa02063",
    },
  },
  "1.0.0": {
    sqlite: {
      "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history, orders by pet, imports":
        "8f3bc626bb903110",
    },
    postgres: {
      "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history":
        "a50b68c697ce0d0f",
      "orders by pet": "658172022ce74037",
      "deprecated operations of keys, imports": "b0b7e60d2a6a8b97",
    },
  },
  "0.9.0": {
    sqlite: { "animals, orders and attempts, API keys, server settings": "298051bd9a3ed548" },
    postgres: { "animals, orders and attempts, API keys, server settings": "79bde34d893f80bb" },
  },
};

interface Versions {
  readonly after: number;
  readonly until: number;
}

function digestsOf(
  steps: typeof SQLITE_MIGRATIONS | typeof POSTGRES_MIGRATIONS,
  { after, until }: Versions,
): Digests {
  const released = steps.filter(({ version }) => version > after && version <= until);
  return Object.fromEntries(
    released.map((step) => {
      const sql = [step.sql].flat().join("; ");
      return [step.name, hash("sha256", sql.replace(/\s+/g, " ")).slice(0, 16)];
    }),
  );
}

test.each(RELEASES.map(({ release }, index) => [release, index] as const))(
  "a migration of release %s is never edited: add a step of the next release instead",
  (release, index) => {
    const { sqlite, postgres } = RELEASES[index] ?? { sqlite: 0, postgres: 0 };
    const before = RELEASES[index + 1] ?? { sqlite: 0, postgres: 0 };
    expect(digestsOf(SQLITE_MIGRATIONS, { after: before.sqlite, until: sqlite })).toEqual(
      RELEASED[release].sqlite,
    );
    expect(digestsOf(POSTGRES_MIGRATIONS, { after: before.postgres, until: postgres })).toEqual(
      RELEASED[release].postgres,
    );
  },
);

test.each([
  ["0.0.0", undefined, 4, 5],
  ["0.9.0", "0.9.0", 5, 6],
  ["0.9.0", "0.9.0", 9, 10],
  ["1.0.0", "1.0.0", 10, 11],
  ["1.1.0", "1.1.0", 13, 15],
  ["1.2.0", "1.2.0", 20, 21],
])(
  "a server that does not register is of release %s if the newest with its tables is %s",
  (server, release, sqlite, postgres) => {
    for (const [engine, version] of [
      ["sqlite", sqlite],
      ["postgres", postgres],
    ] as const) {
      expect(releaseOfTables(version, engine)).toBe(release);
      expect(unregisteredRelease(version, engine)).toBe(server);
    }
  },
);

const POLICY_STEP = "the first limits of the plans and ban rules";

test.each([
  ["none", ""],
  [
    "those that release 1.3.0 has stored",
    `INSERT INTO plans VALUES ('free', 7, 70), ('pro', 8, 80), ('business', 9, 90), ('anonymous', 1, 10);
     INSERT INTO ban_rules VALUES (1, 3, 0, 60000, 60000);`,
  ],
])("tables get the limits and ban rules of release 1.3.0, unless they have some: %s", (_, stored) => {
  using database = new Database(":memory:");
  for (const { name, sql } of SQLITE_MIGRATIONS) database.run(name === POLICY_STEP ? stored + sql : sql);
  const plans = database.query("SELECT * FROM plans").values();
  const rules = database.query("SELECT * FROM ban_rules").values();
  const isStored = stored !== "";
  expect(Object.fromEntries(plans.map(([name, ...limits]) => [name, limits]))).toEqual(
    isStored
      ? { free: [7, 70], pro: [8, 80], business: [9, 90], anonymous: [1, 10] }
      : { free: [60, 1_000], pro: [300, 10_000], business: [1_000, 100_000], anonymous: [300, 10_000] },
  );
  expect(rules).toEqual([isStored ? [1, 3, 0, 60_000, 60_000] : [1, 10, 1_000, 300_000, 2_400_000]]);
});
