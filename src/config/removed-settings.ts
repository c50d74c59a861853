const POSTGRES_COUNTS =
  "is no longer a setting: PostgreSQL counts since 2.0, so remove it, in the order that docs/upgrading.md has";

/** Settings of earlier releases, by the name of the flag, and what a message says of them after that name. */
export const REMOVED_SETTINGS: ReadonlyMap<string, string> = new Map([
  ["limits-url", POSTGRES_COUNTS],
  ["limits-url-file", POSTGRES_COUNTS],
  ["limits-ca", POSTGRES_COUNTS],
  ["limits-timeout", POSTGRES_COUNTS],
]);

/** Commands of earlier releases, and what a message says of them after their name. */
export const REMOVED_COMMANDS: ReadonlyMap<string, string> = new Map([
  [
    "copy",
    "is no longer a command; use petstore backup, and petstore restore with the settings of the other database",
  ],
]);
