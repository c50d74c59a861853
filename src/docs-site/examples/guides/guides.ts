import type { ExampleTemplates } from "../example.ts";
import { AUTHENTICATION } from "./authentication.ts";
import { DEPRECATION_AFTER, DEPRECATION_BEFORE } from "./deprecation.ts";
import { ERRORS } from "./errors.ts";
import { IDEMPOTENCY } from "./idempotency.ts";
import { INTEGERS } from "./integers.ts";
import { PAGINATION } from "./pagination.ts";
import { PETS_BY_ID } from "./pets-by-id.ts";
import { QUICKSTART } from "./quickstart.ts";
import { RATE_LIMITS } from "./rate-limits.ts";

/** The examples that belong to a guide and not to one operation. */
export const GUIDE_EXAMPLES = {
  quickstart: QUICKSTART,
  authentication: AUTHENTICATION,
  pagination: PAGINATION,
  "pets-by-id": PETS_BY_ID,
  "rate-limits": RATE_LIMITS,
  idempotency: IDEMPOTENCY,
  errors: ERRORS,
  integers: INTEGERS,
  "deprecation-before": DEPRECATION_BEFORE,
  "deprecation-after": DEPRECATION_AFTER,
} as const satisfies Readonly<Record<string, ExampleTemplates>>;

export type GuideExample = keyof typeof GUIDE_EXAMPLES;
