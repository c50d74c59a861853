export { createValkeyLimiter, type ValkeyLimiterOptions } from "./limiter.ts";
