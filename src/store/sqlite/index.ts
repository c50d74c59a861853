export { openLedger } from "./ledger.ts";
export { acquireLock, type Lock } from "./lock.ts";
export { type OpenedStore, openStore } from "./open.ts";
