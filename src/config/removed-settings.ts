import { LIMITED_PLANS } from "../domain/policy.ts";

const POSTGRES_COUNTS =
  "is no longer a setting: PostgreSQL counts since 2.0, so remove it, in the order that docs/upgrading.md has";

const changedWith = (command: string) =>
  `is no longer a setting: since 2.0 only the database has it, and keeps what an earlier release stored, so remove it; ${command} or petstore apply changes it`;
const limitsOf = (plan: string) => changedWith(`petstore plans update ${plan} --per-minute N --per-day N`);
const BAN_RULES = {
  "ban-strikes": "--strikes N",
  "ban-grace": "--grace TIME",
  "ban-length": "--length TIME",
  "ban-max-length": "--max-length TIME",
};

/** Settings of earlier releases, by the name of the flag, and what a message says of them after that name. */
export const REMOVED_SETTINGS: ReadonlyMap<string, string> = new Map([
  ["limits-url", POSTGRES_COUNTS],
  ["limits-url-file", POSTGRES_COUNTS],
  ["limits-ca", POSTGRES_COUNTS],
  ["limits-timeout", POSTGRES_COUNTS],
  ...LIMITED_PLANS.map((plan) => [`${plan}-limits`, limitsOf(plan)] as const),
  ...Object.entries(BAN_RULES).map(
    ([name, flag]) => [name, changedWith(`petstore ban-rules update ${flag}`)] as const,
  ),
]);

/** Commands of earlier releases, and what a message says of them after their name. */
export const REMOVED_COMMANDS: ReadonlyMap<string, string> = new Map([
  [
    "copy",
    "is no longer a command; use petstore backup, and petstore restore with the settings of the other database",
  ],
]);
