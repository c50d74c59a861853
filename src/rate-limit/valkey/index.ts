export { createValkeyLimiter, type ValkeyLimiterOptions } from "./valkey-rate-limiter.ts";
