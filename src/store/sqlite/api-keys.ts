import { credentialOf, type CredentialRow, SELECT_CREDENTIALS, SqlKeyStore } from "../api-keys.ts";
import { type Connection, sqliteDatabase } from "./connection.ts";

/** Has a connection of its own: a change of a key waits for the write lock, a client's request does not. */
export function sqliteKeyStore(connection: Connection): SqlKeyStore {
  return new SqlKeyStore(sqliteDatabase(connection), (secretHash) => {
    const row = connection.get<CredentialRow>(`${SELECT_CREDENTIALS} hash = ?`, secretHash);
    return row && credentialOf(row);
  });
}
