import { openSqlite, type SqliteStores } from "../../src/store/sqlite/sqlite-store.ts";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { auditStoreConformance } from "../conformance/audit-store.ts";
import { keyDetailsConformance } from "../conformance/key-details.ts";
import { keyStoreConformance } from "../conformance/key-store.ts";
import { operatorStoreConformance } from "../conformance/operator-store.ts";
import { settingsStoreConformance } from "../conformance/settings-store.ts";
import { usageHistoryConformance } from "../conformance/usage-history.ts";
import { usageStoreConformance } from "../conformance/usage-store.ts";
import { storeConformance } from "../conformance/store.ts";
import { temporaryFolder } from "./temporary-folder.ts";

storeConformance("SQLite", async () => {
  const folder = temporaryFolder();
  let opened = openSqlite(folder.path("store.db"));
  return {
    store: opened.store,
    operators: opened.operators,
    petJson: opened.petJson,
    async reopen() {
      await opened.close();
      opened = openSqlite(folder.path("store.db"));
      return opened.store;
    },
    async close() {
      await opened.close();
      folder.remove();
    },
  };
});

keyStoreConformance("SQLite", async () => {
  const folder = temporaryFolder();
  const first = openSqlite(folder.path("store.db"));
  const opened = [first];
  return {
    keys: first.keys,
    async another() {
      const other = openSqlite(folder.path("store.db"));
      opened.push(other);
      return other.keys;
    },
    async close() {
      for (const each of opened) await each.close();
      folder.remove();
    },
  };
});

operatorStoreConformance("SQLite", async () => {
  const folder = temporaryFolder();
  const first = openSqlite(folder.path("store.db"));
  const opened = [first];
  return {
    ...first,
    async another() {
      const other = openSqlite(folder.path("store.db"));
      opened.push(other);
      return other;
    },
    async close() {
      for (const each of opened) await each.close();
      folder.remove();
    },
  };
});

keyDetailsConformance("SQLite", async () => {
  const folder = temporaryFolder();
  const opened = openSqlite(folder.path("store.db"));
  return {
    keys: opened.keys,
    audit: opened.audit,
    async close() {
      await opened.close();
      folder.remove();
    },
  };
});

auditStoreConformance("SQLite", async () => {
  const folder = temporaryFolder();
  const opened: SqliteStores[] = [];
  const another = async () => {
    const other = openSqlite(folder.path("store.db"));
    opened.push(other);
    return other.audit;
  };
  return {
    audit: await another(),
    another,
    async close() {
      for (const each of opened) await each.close();
      folder.remove();
    },
  };
});

settingsStoreConformance("SQLite", async () => {
  const folder = temporaryFolder();
  const opened: SqliteStores[] = [];
  const another = async () => {
    const other = openSqlite(folder.path("store.db"));
    opened.push(other);
    return other.settings;
  };
  return {
    settings: await another(),
    another,
    async close() {
      for (const each of opened) await each.close();
      folder.remove();
    },
  };
});

usageHistoryConformance("SQLite", async () => {
  const folder = temporaryFolder();
  const opened: SqliteStores[] = [];
  const another = async () => {
    const other = openSqlite(folder.path("store.db"));
    opened.push(other);
    return other.usageHistory;
  };
  return {
    history: await another(),
    another,
    async close() {
      for (const each of opened) await each.close();
      folder.remove();
    },
  };
});

usageStoreConformance("SQLite", () => {
  const folder = temporaryFolder();
  let usageStore = openUsageStore(folder.path("limits.db"));
  return {
    usageStore,
    reopen() {
      usageStore.close();
      usageStore = openUsageStore(folder.path("limits.db"));
      return usageStore;
    },
    close() {
      usageStore.close();
      folder.remove();
    },
  };
});
