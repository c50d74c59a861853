export { openUsageStore } from "./usage-store.ts";
export { acquireLock, type Lock } from "./process-lock.ts";
export { type OpenedStore, openStore } from "./open.ts";
