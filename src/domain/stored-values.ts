/* The names of the stored values: texts that servers and commands leave in the database for one another. */

/** When the last backup was made, in milliseconds since the epoch. */
export const LAST_BACKUP = "last-backup";

/** The timeline of the PostgreSQL server and its mark. */
export const PRIMARY_TIMELINE = "primary";

/** The base URL for clients of the server that was started last. */
export const PUBLIC_URL = "public-url";

/** The times of the clock by which old data is deleted (store/retention-clock.ts). */
export const CLOCK_TRUSTED_AT = "clock-trusted-at";
export const CLOCK_DOUBTED_AT = "clock-doubted-at";
export const CLOCK_DOUBTED_FOR = "clock-doubted-for";
