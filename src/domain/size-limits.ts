/** How large bodies, names and pages can be. Validation, messages and the OpenAPI documents take it from here. */

/** The longest valid body, a name of 1,024 escaped surrogate pairs, takes about 12 KiB. */
export const MAX_BODY_BYTES = 16 * 1024;
/** Of the operators' API. The longest valid body is a key with notes of 2,000 escaped surrogate pairs. */
export const MAX_ADMIN_BODY_BYTES = 64 * 1024;
/** Of an operation that needs no token: JSON of 64 KiB takes 8 ms to parse, which anybody could ask for. */
export const MAX_OPEN_BODY_BYTES = 2 * 1024;

/** In code points. */
export const NAME_MAX_LENGTH = 1_024;
export const IDEMPOTENCY_KEY_MAX_LENGTH = 255;

export const PAGE_LIMIT = { min: 1, max: 100, default: 20 } as const;
/** In the `id` parameter of `listPets`. */
export const MAX_IDS = 100;
