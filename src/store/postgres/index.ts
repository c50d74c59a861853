export type { Turn } from "./circuit-breaker.ts";
export type { PoolsOptions } from "./pools.ts";
export { type OpenedStore, openPostgres } from "./open.ts";
