export type { Turn } from "./circuit-breaker.ts";
export type { EngineOptions } from "./pools.ts";
export { type OpenedStore, openPostgres } from "./open.ts";
