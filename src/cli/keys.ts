import { formatTime, grouped } from "../api/formatting.ts";
import { expectedUrl } from "../config/config.ts";
import { KEY_OPTIONS, keyId } from "../config/key-options.ts";
import { ADDRESS_OPTIONS } from "../config/options.ts";
import type { Source, ValuesOf } from "../config/parse-options.ts";
import { printable, quoted, UsageError } from "../config/usage-error.ts";
import { boolean } from "../config/value-types.ts";
import type { Environment } from "../domain/api-keys.ts";
import type { Key } from "../operator/operations.ts";
import { defineCommand, Failure, type SavedSettings } from "./command.ts";
import { OperationFlags } from "./operation-flags.ts";
import {
  firstItems,
  OPERATOR_OPTIONS,
  type OperatorInput,
  SERVER_SETTINGS,
  whereOf,
  withOperator,
} from "./operator.ts";
import { columns, formatLimits, formatSecret, json, shortened, toSecond } from "./output.ts";

const expiresAt = {
  flag: "expires",
  option: KEY_OPTIONS.expires,
  toField: (ms: number | null, now: number) => (ms === null ? null : formatTime(now + ms)),
};
const labels = { flag: "label", option: KEY_OPTIONS.label };
const OPTIONS = { ...OPERATOR_OPTIONS, ...SERVER_SETTINGS };

const LIST = new OperationFlags("listKeys", {
  label: labels,
  limit: null,
  cursor: null,
});
const CREATE = new OperationFlags("createKey", { labels, expiresAt });
const UPDATE = new OperationFlags("updateKey", {
  labels,
  expiresAt: { ...expiresAt, option: { ...KEY_OPTIONS.expires, defaultText: "as it is" } },
});

type Column = readonly [header: string, cell: (key: Key) => string];
const quota =
  (of: (usage: NonNullable<Key["usage"]>) => string) =>
  ({ usage }: Key) =>
    usage === null ? "?" : of(usage);
const COLUMNS: readonly Column[] = [
  ["ID", ({ id }) => String(id)],
  ["NAME", ({ name }) => shortened(name, 40)],
  ["OWNER", ({ owner }) => shortened(owner ?? "-", 40)],
  ["PLAN", ({ plan }) => plan],
  ["ACCESS", ({ access }) => access],
  ["STATE", ({ state }) => state],
  ["MINUTE", quota(({ minute }) => `${minute.used}/${minute.limit}`)],
  ["DAY", quota(({ day }) => `${day.used}/${day.limit}`)],
  ["STRIKES", ({ strikes }) => String(strikes ?? "?")],
  ["BANNED UNTIL", ({ usage, bannedUntil }) => (usage === null ? "?" : toSecond(bannedUntil))],
  ["LAST USED", ({ lastUsedAt }) => toSecond(lastUsedAt)],
  ["EXPIRES", ({ expiresAt: time }) => toSecond(time)],
  ["CREATED", ({ createdAt }) => toSecond(createdAt)],
];

const keysList = defineCommand({
  name: "keys list",
  summary: "List the API keys with their limits, usage and bans",
  description:
    "Lists the API keys of an environment, oldest first: all of them, or those that meet every given condition. MINUTE and DAY are the requests used and the limit of the current window. While a server runs, usage is at most a second old. Secrets are not stored and cannot be shown.",
  options: {
    ...LIST.options,
    banned: { type: boolean, default: false, help: "Only keys that are banned, as with --state banned" },
    ...OPTIONS,
  },
  savedOptions: SERVER_SETTINGS,
  examples: [
    "petstore keys list",
    "petstore keys list --banned",
    "petstore keys list --state active --unused-since 90d",
    "petstore keys list --search ann@example.com --env staging --json",
    "petstore keys list --server https://admin.example.com --json",
  ],
  async run(input, context) {
    const { query } = LIST.inputOf(input.values, context.clock.now());
    const { label: given, state, ...conditions } = query;
    if (input.values.banned && state !== undefined && state !== "banned")
      return new UsageError(`--banned and --state ${state} exclude each other; use one of them`);
    const [label, ...more] = (given ?? []) as readonly string[];
    const filters = { ...conditions, label, state: input.values.banned ? "banned" : state };
    return withOperator(input, context, async (call) => {
      const found = await firstItems(Infinity, (page) =>
        call("listKeys", { query: { ...(filters as object), ...page } }),
      );
      const keys = found.items.filter((key) => more.every((each) => hasLabel(key, each)));
      if (input.values.json) await context.print(json(keys));
      else if (keys.length > 0)
        await context.print(
          columns([
            COLUMNS.map(([header]) => header),
            ...keys.map((key) => COLUMNS.map(([, cell]) => cell(key))),
          ]),
        );
      else {
        const { total } = await call("listKeys", { query: { limit: 1 } });
        await context.print(`${emptyText(total, input.values)}\n`);
      }
      return undefined;
    });
  },
});

function hasLabel(key: Key, label: string): boolean {
  return key.labels.some((each) => each.toLowerCase() === label.toLowerCase());
}

function emptyText(total: number, values: OperatorInput["values"]): string {
  if (total === 1) return `The only key in ${values.env} does not match.`;
  if (total > 0) return `None of the ${total} keys in ${values.env} matches.`;
  return `There are no keys in ${whereOf(values)}. Create one: petstore keys create --name NAME --plan free`;
}

const keysCreate = defineCommand({
  name: "keys create",
  summary: "Create an API key and print it",
  description:
    "Creates an API key and prints it. Petstore stores only a hash, so the key cannot be shown again. Running servers accept it at once. The data directory and its database are created if missing.",
  options: { ...CREATE.options, ...OPTIONS, ...ADDRESS_OPTIONS },
  required: CREATE.required as readonly never[],
  savedOptions: { ...ADDRESS_OPTIONS, ...SERVER_SETTINGS },
  examples: [
    "petstore keys create --name 'mobile app' --plan free --owner ann@example.com",
    "petstore keys create --name dashboard --plan pro --access read --label internal --label reports",
    "petstore keys create --name partner --plan enterprise --per-minute 5000 --per-day 2000000",
    "petstore keys create --name 'nightly build' --plan pro --expires 30d --env staging --json",
  ],
  async run(input, context) {
    const { body } = CREATE.inputOf(input.values, context.clock.now());
    return withOperator(
      input,
      context,
      async (call, saved) => {
        const { key, secret } = await call("createKey", { body: body as never });
        const readOnly = key.access === "read" ? "; read-only" : "";
        const expiration = key.expiresAt === null ? "" : `; expires at ${key.expiresAt}`;
        const summary = `Created key ${key.id} ${quoted(key.name)} in ${input.values.env}: ${key.plan} plan, ${formatLimits(key.limits)}${readOnly}${expiration}`;
        await context.print(
          input.values.json
            ? json({ ...key, key: secret, secret })
            : `${summary}\n${formatSecret(secret, clientUrl(input, saved))}`,
        );
        return undefined;
      },
      { createsData: true, flags: CREATE },
    );
  },
});

const keysRotate = defineCommand({
  name: "keys rotate",
  summary: "Give an API key a new secret and print it",
  description:
    "Gives a key a new secret and prints it. The previous secrets stay valid for --overlap, so that clients can change to the new one without a failed request. The key keeps its plan, usage, strikes and ban.",
  positionals: { ID: keyId },
  options: { overlap: KEY_OPTIONS.overlap, ...OPTIONS, ...ADDRESS_OPTIONS },
  savedOptions: { ...ADDRESS_OPTIONS, ...SERVER_SETTINGS },
  examples: [
    "petstore keys rotate 3",
    "petstore keys rotate 3 --overlap 0   # the previous secrets stop working at once",
  ],
  async run(input, context) {
    const { positionals, values } = input;
    return withOperator(input, context, async (call, saved) => {
      const body = { overlapSeconds: Math.ceil(values.overlap / 1_000) };
      const rotated = await call("rotateKey", { id: positionals.ID, body });
      const { key, secret, overlapEndsAt: previousSecretsValidUntil } = rotated;
      const previous =
        values.overlap === 0 ? "are no longer valid" : `stay valid until ${previousSecretsValidUntil}`;
      const summary = `Key ${key.id} ${quoted(key.name)} has a new secret. Its previous secrets ${previous}.`;
      await context.print(
        values.json
          ? json({ ...key, key: secret, secret, previousSecretsValidUntil })
          : `${summary}\n${formatSecret(secret, clientUrl(input, saved))}`,
      );
      return undefined;
    });
  },
});

const keysShow = defineCommand({
  name: "keys show",
  summary: "Show one API key with its secrets, limits, usage and ban",
  description:
    "Shows one key: its plan, its usage of both limits, its strikes and its ban. While a server runs, usage is at most a second old. Of a secret it shows the first and the last characters; the whole is not stored. After a rotation it shows the previous secrets until their overlap ends.",
  positionals: { ID: keyId },
  options: OPTIONS,
  savedOptions: SERVER_SETTINGS,
  examples: ["petstore keys show 3", "petstore keys show 3 --json"],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const key = await call("getKey", { id: input.positionals.ID });
      await context.print(input.values.json ? json(key) : keyTable(key));
      return undefined;
    }),
});

const BEARER = /^(?:authorization:\s*)?bearer\s+/i;

const keysFind = defineCommand({
  name: "keys find",
  summary: "Find the API key that has a given secret",
  description:
    "Asks for a secret without showing it, or reads it from standard input, and shows its key as petstore keys show does. A secret is never an argument: other users of the machine could read it in the list of processes. It finds the key also if the secret no longer works.",
  options: OPTIONS,
  savedOptions: SERVER_SETTINGS,
  examples: ["petstore keys find", "petstore keys find --json < secret.txt"],
  async run(input, context) {
    const secret = (await context.readSecret("API key: ")).trim().replace(BEARER, "");
    if (secret === "") return new Failure("no API key was given");
    return withOperator(input, context, async (call) => {
      const { secretValidUntil, ...key } = await call("findKey", { body: { secret } });
      const now = context.clock.now();
      const shown = [["Given secret", describeEnd(secretValidUntil, now)]];
      await context.print(input.values.json ? json({ ...key, secretValidUntil }) : keyTable(key, shown));
      return undefined;
    });
  },
});

function describeEnd(validUntil: string | null, now: number): string {
  if (validUntil === null) return "the current one";
  const end = Date.parse(validUntil);
  // An overlap of 0 is stored as the beginning of the epoch.
  if (end === 0) return "replaced, and no longer valid";
  return now < end ? `replaced, valid until ${validUntil}` : `replaced, no longer valid since ${validUntil}`;
}

const CLEARED = { owner: null, notes: null, labels: [] } as const;

const keysUpdate = defineCommand({
  name: "keys update",
  summary: "Rename an API key, or change its owner, notes, labels, plan, access or expiry",
  description:
    "Changes the given fields of a key. --label replaces all labels. --expires counts from now; an expired key works again. Running servers apply the change within a second. Usage in the current windows still counts. A revoked key stays revoked; its name, owner, notes and labels can still be changed.",
  positionals: { ID: keyId },
  options: { ...UPDATE.options, clear: KEY_OPTIONS.clear, ...OPTIONS },
  savedOptions: SERVER_SETTINGS,
  examples: [
    "petstore keys update 3 --name 'mobile app' --owner ann@example.com",
    "petstore keys update 3 --access read --expires 90d",
    "petstore keys update 3 --expires never --clear notes,labels",
  ],
  async run(input, context) {
    const { body } = UPDATE.inputOf(input.values, context.clock.now());
    const { clear = [] } = input.values;
    const both = clear.find((field) => field in body);
    if (both !== undefined) {
      const flag = both === "labels" ? "label" : both;
      return new UsageError(`--${flag} and --clear ${both} exclude each other; use one of them`);
    }
    const change = { ...body, ...Object.fromEntries(clear.map((field) => [field, CLEARED[field]])) };
    if (Object.keys(change).length === 0) {
      const flags = Object.keys(UPDATE.options).map((flag) => `--${flag}`);
      return new UsageError(`keys update needs a change: ${flags.join(", ")} or --clear`);
    }
    return withOperator(
      input,
      context,
      async (call) => {
        const key = await call("updateKey", { id: input.positionals.ID, body: change as never });
        await context.print(
          input.values.json ? json(key) : `Key ${key.id} ${quoted(key.name)} is updated.\n`,
        );
        return undefined;
      },
      { flags: UPDATE },
    );
  },
});

const keysSetPlan = defineCommand({
  name: "keys set-plan",
  summary: "Move an API key to another plan",
  description:
    "Moves a key to another plan, or changes the limits of an Enterprise key. Running servers apply the change within a second. Usage in the current windows still counts.",
  positionals: { ID: keyId, PLAN: KEY_OPTIONS.plan.type },
  options: {
    "per-minute": KEY_OPTIONS["per-minute"],
    "per-day": KEY_OPTIONS["per-day"],
    ...OPTIONS,
  },
  savedOptions: SERVER_SETTINGS,
  examples: [
    "petstore keys set-plan 3 business",
    "petstore keys set-plan 3 enterprise --per-minute 5000 --per-day 2000000",
  ],
  run: (input, context) =>
    withOperator(
      input,
      context,
      async (call) => {
        const { ID: id, PLAN: plan } = input.positionals;
        const { body } = UPDATE.inputOf({ ...input.values, plan }, context.clock.now());
        const key = await call("updateKey", { id, body: body as never });
        const line = `Key ${id} is now on the ${plan} plan: ${formatLimits(key.limits)}.`;
        await context.print(input.values.json ? json(key) : `${line}\n`);
        return undefined;
      },
      { flags: UPDATE },
    ),
});

interface KeyChange {
  readonly name: string;
  readonly operation: "revokeKey" | "unbanKey" | "disableKey" | "enableKey";
  readonly summary: string;
  readonly description: string;
  /** `startedAt` is the time at which the command began. */
  readonly done: (key: Key, startedAt: number) => string;
}

/** A command that changes one key and needs nothing but its ID. */
const changeCommand = ({ name, operation, done, ...texts }: KeyChange) =>
  defineCommand({
    name,
    ...texts,
    positionals: { ID: keyId },
    options: OPTIONS,
    savedOptions: SERVER_SETTINGS,
    examples: [`petstore ${name} 3`],
    run: (input, context) =>
      withOperator(input, context, async (call) => {
        const startedAt = context.clock.now();
        const key = await call(operation, { id: input.positionals.ID });
        await context.print(input.values.json ? json(key) : `${done(key, startedAt)}\n`);
        return undefined;
      }),
  });

const keysRevoke = changeCommand({
  name: "keys revoke",
  operation: "revokeKey",
  summary: "Revoke an API key permanently",
  description:
    "Revokes a key: running servers reject it within a second. This cannot be undone. Revoking a key twice has no further effect.",
  done: ({ id, revokedAt }, startedAt) =>
    revokedAt !== null && Date.parse(revokedAt) < startedAt
      ? `Key ${id} was already revoked at ${revokedAt}.`
      : `Key ${id} is revoked.`,
});

const keysDisable = changeCommand({
  name: "keys disable",
  operation: "disableKey",
  summary: "Switch an API key off until it is enabled again",
  description:
    "Disables a key: running servers respond 401 to it within a second. petstore keys enable switches it on again. Its secrets, plan and usage stay.",
  done: ({ id }) => `Key ${id} is disabled. petstore keys enable ${id} switches it on again.`,
});

const keysEnable = changeCommand({
  name: "keys enable",
  operation: "enableKey",
  summary: "Switch a disabled API key on again",
  description: "Enables a key that was disabled: running servers accept it within a second.",
  done: ({ id }) => `Key ${id} is enabled.`,
});

const keysUnban = changeCommand({
  name: "keys unban",
  operation: "unbanKey",
  summary: "End the ban of an API key",
  description:
    "Ends the ban of a key and resets its strikes; its next ban is a first one again. Running servers apply it within a second. Usage still counts, so the key may have reached its limit. It does not prevent a later ban.",
  done: ({ id }) => `Key ${id} is not banned and has no strikes.`,
});

export const KEY_COMMANDS = [
  keysCreate,
  keysList,
  keysShow,
  keysFind,
  keysUpdate,
  keysSetPlan,
  keysRotate,
  keysDisable,
  keysEnable,
  keysRevoke,
  keysUnban,
];

type AddressValues = ValuesOf<typeof ADDRESS_OPTIONS> & { readonly env: Environment };

interface AddressInput {
  readonly values: AddressValues;
  source(flag: keyof typeof ADDRESS_OPTIONS): Source | undefined;
  valuesWith(saved: SavedSettings): AddressValues;
}

/**
 * The URL of the API for a new secret; undefined if it is not known. The variables of host and port do not override the
 * URL that the server saved: PETSTORE_PORT=0 does not say where it listens.
 */
function clientUrl({ values, source, valuesWith }: AddressInput, saved: SavedSettings): string | undefined {
  const isGiven =
    source("public-url") ?? [source("host"), source("port")].find((given) => given?.name.startsWith("--"));
  return expectedUrl(isGiven ? values : valuesWith(saved));
}

/** A key as `keys show` and `keys find` print it. */
function keyTable(key: Key, extra: readonly (readonly string[])[] = []): string {
  return columns([
    ["Key", String(key.id)],
    ["Name", printable(key.name)],
    ["Owner", key.owner === null ? "-" : printable(key.owner)],
    ...(key.notes ?? "")
      .split("\n")
      .flatMap((line, i) => (key.notes === null ? [] : [[i === 0 ? "Notes" : "", printable(line)]])),
    ["Labels", key.labels.length === 0 ? "-" : key.labels.map(printable).join(", ")],
    ["Plan", `${key.plan}: ${formatLimits(key.limits)}`],
    ["Access", key.access],
    ["State", describeState(key)],
    ...secretRows(key),
    ...extra,
    ["This minute", describeWindow(key.usage?.minute)],
    ["This day", describeWindow(key.usage?.day)],
    ["Strikes", String(key.strikes ?? "?")],
    ["Last used", key.lastUsedAt ?? "never"],
    ["Created", key.createdAt],
    ["Expires", key.expiresAt ?? "never"],
    ...(key.revokedAt === null ? [] : [["Revoked", key.revokedAt]]),
  ]);
}

/** One row for each that works: after a rotation, the previous ones until their overlap ends. */
function secretRows({ secrets }: Key): string[][] {
  return secrets.map(({ hint, createdAt, validUntil }, index) => {
    const since = createdAt === null ? "" : `, created at ${createdAt}`;
    const end = validUntil === null ? "" : `, valid until ${validUntil}`;
    return [index === 0 ? "Secret" : "", `${hint ?? "of an earlier release"}${since}${end}`];
  });
}

function describeState({ state, bannedUntil, usage }: Key): string {
  if (state === "banned") return `banned until ${bannedUntil}`;
  return state === "active" && usage === null ? "active, unless it is banned" : state;
}

function describeWindow(window: NonNullable<Key["usage"]>["minute"] | undefined): string {
  if (window === undefined) return "?";
  const { used, limit, resetsAt } = window;
  const usage = `${grouped(used)} of ${grouped(limit)} used`;
  return resetsAt === null ? usage : `${usage}, resets at ${resetsAt}`;
}
