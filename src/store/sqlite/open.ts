import type { KeyStore, Store } from "../../domain/ports.ts";
import { openFor } from "./database.ts";
import { SqliteKeyStore } from "./api-keys.ts";
import { MIGRATIONS } from "./migrations.ts";
import type { SqlitePetJson } from "./pet-json.ts";
import { SqliteStore } from "./sqlite-store.ts";

export interface OpenedStore {
  readonly store: Store;
  readonly keys: KeyStore;
  readonly petJson: SqlitePetJson;
  /** Finishes what was accepted, then lets go of the file. */
  close(): Promise<void>;
}

/** Short, because it blocks the event loop; `GroupCommit` goes on trying without blocking it. */
const BUSY_TIMEOUT_MS = 25;
/** Keys are changed by commands, which have nothing else to do than to wait for a server at work. */
const KEY_WAIT_MS = 5_000;

/** A server and any number of commands may have the same file open at once. */
export function openStore(path: string): OpenedStore {
  const shared = { migrations: MIGRATIONS, synchronous: "FULL", busyTimeoutMs: BUSY_TIMEOUT_MS } as const;
  const forStore = { ...shared, cacheKiB: 16 * 1024 };
  const forKeys = { ...shared, cacheKiB: 1024, writeWaitMs: KEY_WAIT_MS };
  const store = openFor(path, forStore, (connection) => new SqliteStore(connection));
  const keys = openFor(path, forKeys, (connection) => new SqliteKeyStore(connection));
  return {
    store,
    keys,
    petJson: store.petJson,
    async close() {
      keys.close();
      await store.close();
    },
  };
}
