/* The greatest sizes of bodies, names and pages. Validation, messages and OpenAPI documents take them from here. */

/** The longest valid body, a name of 1,024 escaped surrogate pairs, takes about 12 KiB. */
export const MAX_BODY_BYTES = 16 * 1024;
/** The longest valid body of the operators' API is a key with notes of 2,000 escaped surrogate pairs. */
export const MAX_ADMIN_BODY_BYTES = 64 * 1024;
/** The largest body without a token: anybody could send JSON of 64 KiB, which takes 8 ms to parse. */
export const MAX_OPEN_BODY_BYTES = 4 * 1024;

/** The longest answer of a server to another one or to a command. */
export const MAX_ANSWER_LENGTH = 1024 * 1024;

/** The length in code points. */
export const NAME_MAX_LENGTH = 1_024;

export const PAGE_LIMIT = { min: 1, max: 100, default: 20 } as const;
/**
 * How many rows a page of operators looks at to find those that it shows, where no index has all of its conditions.
 * SQLite takes 5 ms for them.
 */
export const MAX_ROWS_SEARCHED = 5_000;
/** How many pets each step of a search looks at, in 0.5 ms on SQLite, and how many steps a page has. */
export const PET_SEARCH = { rowsPerStep: 1_000, maxSteps: 20 } as const;
/** The number of identifiers in the `id` parameter of `listPets`. */
export const MAX_IDS = 100;
