import { expect, test } from "bun:test";
import { hash } from "node:crypto";
import { RELEASES } from "../../docs/generate.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sqlite/migrations.ts";

type Release = (typeof RELEASES)[number]["release"];
type Digests = Readonly<Record<string, string>>;

/** The digests of the released steps, which never change. The steps of the next release are not here yet. */
const RELEASED: Readonly<Record<Release, { readonly sqlite: Digests; readonly postgres: Digests }>> = {
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
      const sql = "sql" in step ? step.sql : step.statements.join("; ");
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
