export type { Turn } from "./breaker.ts";
export type { EngineOptions } from "./engine.ts";
export { type OpenedStore, openPostgres } from "./open.ts";
