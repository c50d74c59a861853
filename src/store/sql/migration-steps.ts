import {
  type Engine,
  latestVersion,
  type Migration,
  type MigrationStep,
  type ReleaseSteps,
} from "./migrations.ts";
import { RELEASED_STEPS } from "./released-steps.ts";

/** Up to release 1.3.0 a server stored limits and ban rules when it started. */
const FIRST_POLICY = `
  INSERT INTO plans (name, per_minute, per_day)
    VALUES ('free', 60, 1000), ('pro', 300, 10000), ('business', 1000, 100000), ('anonymous', 300, 10000)
    ON CONFLICT DO NOTHING;
  INSERT INTO ban_rules (sole, strikes, grace_ms, length_ms, max_length_ms)
    VALUES (1, 10, 1000, 300000, 2400000) ON CONFLICT DO NOTHING;
`;

/**
 * The steps of the release to come, in the order in which both databases take them. A release moves them to those that
 * nobody edits.
 *
 * Servers of the previous release serve requests during a migration and after it, so every new column can be null.
 */
const NEXT_STEPS: ReleaseSteps = {
  release: "2.0.0",
  steps: [
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
      worksWith: "1.3.0",
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
    {
      name: "without what servers of release 1.2.0 used",
      // Release 1.3.0 restores a backup on SQLite only if columns keep their types: operator_id can still be null. It
      // also adds to pet_revision.revision, which nobody reads.
      sqlite: `
        DROP TABLE server_secret;
        DROP INDEX pets_by_category;
        ALTER TABLE operator_sessions RENAME TO earlier_sessions;
        CREATE TABLE operator_sessions (
          cookie_hash TEXT PRIMARY KEY CHECK (length(cookie_hash) = 64),
          secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),
          operator_id INTEGER REFERENCES operators (id),
          created_at INTEGER NOT NULL,
          ends_at INTEGER NOT NULL,
          token_hash TEXT,
          made_in TEXT
        ) STRICT, WITHOUT ROWID;
        INSERT INTO operator_sessions
          SELECT cookie_hash, secret_hash, operator_id, created_at, ends_at, token_hash, made_in FROM earlier_sessions;
        DROP TABLE earlier_sessions;
      `,
      postgres: `
        DROP TABLE server_secret, usage_sums;
        ALTER TABLE operator_sessions DROP COLUMN token_check;
      `,
      worksWith: "1.3.0",
    },
  ],
};

const ALL_STEPS = [...RELEASED_STEPS, NEXT_STEPS];

/** The number of the first step. Databases store the numbers that their steps had in release 1.3.0. */
const FIRST_VERSION = { sqlite: 25, postgres: 27 } as const;

/** Numbers the steps of releases that a database has. */
function numbered<Sql>(
  releases: readonly ReleaseSteps[],
  engine: Engine,
  sqlOf: (step: MigrationStep) => Sql | undefined,
): readonly Migration<Sql>[] {
  let version: number = FIRST_VERSION[engine];
  return releases.flatMap(({ steps }) =>
    steps.flatMap((step) => {
      const { name, worksWith } = step;
      const sql = sqlOf(step);
      return sql === undefined ? [] : { version: version++, name, worksWith, sql };
    }),
  );
}

const onSqlite = (releases: readonly ReleaseSteps[]) => numbered(releases, "sqlite", ({ sqlite }) => sqlite);
const onPostgres = (releases: readonly ReleaseSteps[]) =>
  numbered(releases, "postgres", ({ postgres }) => postgres);

export const SQLITE_MIGRATIONS = onSqlite(ALL_STEPS);
export const POSTGRES_MIGRATIONS = onPostgres(ALL_STEPS);

/** The latest step of each release on each database, newest first. The first is the release to come. */
export const RELEASES = ALL_STEPS.map(({ release }, i) => {
  const releases = ALL_STEPS.slice(0, i + 1);
  return {
    release,
    sqlite: latestVersion(onSqlite(releases)),
    postgres: latestVersion(onPostgres(releases)),
  };
}).toReversed();

/** Returns the newest release whose tables a database has. */
export function releaseOfTables(version: number, engine: Engine): string | undefined {
  return RELEASES.find((each) => each[engine] <= version)?.release;
}
