/*
 * The steps of the next release, which SQLite and PostgreSQL take in this order. A release moves them to the files of
 * released steps, which nobody edits.
 *
 * Servers of the previous release serve requests during a migration and after it, so every new column can be null.
 */

import { latestVersion, type Migration, type PostgresMigration } from "./migrations.ts";

/** A step of both databases, or of one: without its SQL, a database has no such step. */
interface MigrationStep {
  /** The name that the databases store. */
  readonly name: string;
  readonly sqlite?: Migration["sql"];
  readonly postgres?: PostgresMigration["sql"];
  /** The oldest release that can run on the tables that the step leaves. */
  readonly worksWith: string;
}

/** Up to release 1.3.0 a server stored limits and ban rules when it started. */
const FIRST_POLICY = `
  INSERT INTO plans (name, per_minute, per_day)
    VALUES ('free', 60, 1000), ('pro', 300, 10000), ('business', 1000, 100000), ('anonymous', 300, 10000)
    ON CONFLICT DO NOTHING;
  INSERT INTO ban_rules (sole, strikes, grace_ms, length_ms, max_length_ms)
    VALUES (1, 10, 1000, 300000, 2400000) ON CONFLICT DO NOTHING;
`;

const NEW_STEPS: readonly MigrationStep[] = [
  {
    name: "the session in which a sign-in code was made",
    sqlite: `
      ALTER TABLE operator_sessions ADD COLUMN made_in TEXT;
      ALTER TABLE sign_in_codes ADD COLUMN made_in TEXT;
    `,
    postgres: `
      ALTER TABLE operator_sessions ADD COLUMN made_in text;
      ALTER TABLE sign_in_codes ADD COLUMN made_in text;
    `,
    worksWith: "1.2.0",
  },
  {
    name: "parts of the rate limits of busy keys",
    // Release 1.3.0 adds rows with the first part.
    postgres: `
      ALTER TABLE quotas ADD COLUMN part bigint NOT NULL DEFAULT 0;
      ALTER TABLE quotas DROP CONSTRAINT quotas_pkey, ADD PRIMARY KEY (key_id, part);
    `,
    worksWith: "1.3.0",
  },
  {
    name: "the first limits of the plans and ban rules",
    sqlite: FIRST_POLICY,
    postgres: FIRST_POLICY,
    worksWith: "1.3.0",
  },
];

/** Numbers the steps of the next release that a database has after the released ones. */
export function withNewSteps<Sql>(
  released: readonly Migration<Sql>[],
  sqlOf: (step: MigrationStep) => Sql | undefined,
): readonly Migration<Sql>[] {
  const migrations = [...released];
  for (const step of NEW_STEPS) {
    const { name, worksWith } = step;
    const sql = sqlOf(step);
    const version = latestVersion(migrations) + 1;
    if (sql !== undefined) migrations.push({ version, name, worksWith, sql });
  }
  return migrations;
}
