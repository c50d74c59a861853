export { createValkeyRateLimiter, type ValkeyRateLimiterOptions } from "./valkey-rate-limiter.ts";
