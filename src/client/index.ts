export type * from "./types.ts";
export type { RateLimit, ResponseMetadata } from "./response.ts";
export { Petstore } from "./petstore.ts";
export * from "./errors.ts";
