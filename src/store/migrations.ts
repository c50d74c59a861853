/*
 * Words that stored data keeps from its first release, and what they are called elsewhere:
 *
 * - `attempts`: the results of requests with an Idempotency-Key
 * - `pardoned_at`: when a ban of the key was lifted, `unbannedAt`
 * - `key.rolled`, `admin.token-rolled`: a secret or token was rotated
 * - animals, in the names and comments of steps: pets
 */

/**
 * One step of a schema. A released step is never edited, not even its name and its comments, because databases store
 * them. A change of the schema is a new step at the end.
 */
export interface Migration {
  /** The versions ascend. A missing number belonged to a step that no release ended with. */
  readonly version: number;
  /** The name that the database stores. */
  readonly name: string;
  readonly sql: string;
}

type Versions = readonly Pick<Migration, "version">[];

export function latestVersion(migrations: Versions): number {
  return migrations.at(-1)?.version ?? 0;
}

/** Throws if a later release has changed the database. */
export function rejectNewerSchema(version: number, migrations: Versions): void {
  const supported = latestVersion(migrations);
  if (version <= supported) return;
  throw new Error(
    `its schema has version ${version}, and this petstore supports versions up to ${supported}; upgrade petstore`,
  );
}
