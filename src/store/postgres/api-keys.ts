import type { Credential } from "../../domain/api-keys.ts";
import { credentialOf, type CredentialRow, SELECT_CREDENTIALS, SqlKeyStore } from "../api-keys.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Pools } from "./pool.ts";
import { postgresDatabase } from "./statements.ts";

/** The parameter is a list with commas. */
export const FIND_CREDENTIALS = `${SELECT_CREDENTIALS} hash = ANY (string_to_array($1, ','))`;
const MAX_LOOKUPS_PER_QUERY = 64;

/**
 * Lookups that arrive together share a query: anybody can cause them, and a query costs PostgreSQL and this process
 * nearly the same for one secret as for many.
 */
export function postgresKeyStore(pools: Pools): SqlKeyStore {
  const lookups = new GroupCommit<string, Credential | undefined>({
    async commit(hashes) {
      const rows = await pools.lookups.query((sql) =>
        sql.unsafe<CredentialRow[]>(FIND_CREDENTIALS, [hashes.join(",")]),
      );
      const found = new Map(rows.map((row) => [row.hash, credentialOf(row)]));
      return hashes.map((hash) => found.get(hash));
    },
    maxBatch: MAX_LOOKUPS_PER_QUERY,
    maxQueued: pools.maxQueued,
  });
  return new SqlKeyStore(postgresDatabase(pools), (secretHash) => lookups.submit(secretHash));
}
