import { countOf, grouped } from "../../text/formatting.ts";
import { UsageError } from "../../config/usage-error.ts";
import { quoted } from "../../config/quoted.ts";
import { switchOption, list } from "../../config/value-types.ts";
import type { AuditItem, Key } from "../../operator/operations.ts";
import { locationOf } from "../calls/call.ts";
import { Failure } from "../command.ts";
import { listCommand } from "../list-command.ts";
import { confirmed, operationCommand, YES_OPTION } from "../operation-command.ts";
import { expiryFlag, overlapFlag } from "../operation-flags.ts";
import { columns, formatLimits, formatSecret, type Screen, shortened, type TableColumn } from "../output.ts";

const only = "required for the Enterprise plan, and only for it";
const FIELDS = {
  labels: { flag: "label", option: { help: "Labels of the key, at most 20" } },
  perMinute: { option: { help: `Requests per minute; ${only}` } },
  perDay: { option: { help: `Requests per day; ${only}` } },
};
const expiresAt = expiryFlag("When the key expires, or how long from now");

const quota =
  (of: (usage: NonNullable<Key["usage"]>) => string) =>
  ({ usage }: Key) =>
    usage === null ? "?" : of(usage);
const STATE_COLORS = {
  active: "green",
  banned: "red",
  disabled: "yellow",
  expired: "gray",
  revoked: "gray",
} as const satisfies Record<Key["state"], string>;
const COLUMNS: readonly TableColumn<Key>[] = [
  ["ID", ({ id }) => String(id)],
  ["NAME", ({ name }) => shortened(name, 40)],
  ["OWNER", ({ owner }) => shortened(owner ?? "-", 40)],
  ["PLAN", ({ plan }) => plan],
  ["ACCESS", ({ access }) => access],
  ["STATE", ({ state }, screen) => screen.coloredCell(STATE_COLORS[state], state)],
  ["MINUTE", quota(({ minute }) => `${minute.used}/${minute.limit}`)],
  ["DAY", quota(({ day }) => `${day.used}/${day.limit}`)],
  ["STRIKES", ({ strikes }) => String(strikes ?? "?")],
  [
    "BANNED UNTIL",
    ({ usage, bannedUntil }, screen) => (usage === null ? "?" : screen.shortTime(bannedUntil)),
  ],
  ["LAST USED", ({ lastUsedAt }, screen) => screen.shortTime(lastUsedAt)],
  ["EXPIRES", ({ expiresAt: time }, screen) => screen.shortTime(time)],
  ["CREATED", ({ createdAt }, screen) => screen.shortTime(createdAt)],
];

const LIST_OPTIONS = {
  label: {
    type: list({
      placeholder: "LABEL",
      expected: "a label",
      parse: (text) => text || undefined,
    }),
    repeatable: true,
    help: "Only keys with this label",
  },
  banned: switchOption("Only keys that are banned, as with --state banned"),
  revoked: switchOption("Revoked keys too, last"),
} as const;

const BEARER = /^(?:authorization:\s*)?bearer\s+/i;

/** A command that says what the key is after it. */
const keyChange = (operation: "disableKey" | "enableKey", outcome: (key: Key) => string) =>
  operationCommand({
    name: `keys ${operation.replace("Key", "")}`,
    operation,
    text: (key) => `Key ${key.id} ${outcome(key)}.\n`,
  });

export const KEY_COMMANDS = [
  operationCommand({
    name: "keys create",
    operation: "createKey",
    description:
      "Creates an API key and prints it. Petstore stores only a hash, so the key cannot be shown again. Running servers accept it at once.",
    fields: {
      ...FIELDS,
      expiresAt: { ...expiresAt, option: { ...expiresAt.option, defaultText: "never" } },
      access: { option: { defaultText: "write" } },
    },
    examples: [
      "petstore keys create --name 'mobile app' --plan free --owner ann@example.com",
      "petstore keys create --name dashboard --plan pro --access read --label internal --label reports",
      "petstore keys create --name partner --plan enterprise --per-minute 5000 --per-day 2000000",
      "petstore keys create --name 'nightly build' --plan pro --expires 30d --env staging --json",
    ],
    showsUrl: true,
    json: ({ key, secret }) => ({ ...key, key: secret, secret }),
    text({ key, secret }, { url, values, context: { screen } }) {
      const readOnly = key.access === "read" ? "; read-only" : "";
      const expiration = key.expiresAt === null ? "" : `; expires ${screen.at(key.expiresAt)}`;
      return `Created key ${key.id} ${quoted(key.name)} in ${locationOf(values)}: ${key.plan} plan, ${formatLimits(key.limits)}${readOnly}${expiration}\n${formatSecret(secret, url)}`;
    },
  }),
  listCommand({
    name: "keys list",
    operation: "listKeys",
    summary: "List the API keys with their limits, used quotas and bans",
    description:
      "Lists the API keys of an environment, oldest first: all that are not revoked, or those that meet every given condition. --revoked adds the revoked ones, last, so it lists all. MINUTE and DAY are the requests used and the limit of the current window. While a server runs, they are at most a second old. Secrets are not stored and cannot be shown.",
    fields: {
      label: null,
      revoked: null,
      expiresBefore: {
        ...expiryFlag("Only keys that are valid and expire before this time, or so long from now"),
        flag: "expires-before",
      },
    },
    options: LIST_OPTIONS,
    defaults: { revoked: "exclude" },
    examples: [
      "petstore keys list",
      "petstore keys list --banned",
      "petstore keys list --state active --unused-since 90d",
      "petstore keys list --expires-before 7d",
      "petstore keys list --search ann@example.com --env staging --json",
      "petstore keys list --server https://admin.example.com --json",
    ],
    prepare({ query = {} }, { values: { banned, revoked, label = [] } }) {
      const { state = "banned" } = query;
      if (banned && state !== "banned")
        throw new UsageError(`--banned and --state ${String(state)} exclude each other; use one of them`);
      const [first] = label;
      return {
        query: {
          ...query,
          ...(banned && { state }),
          ...(first !== undefined && { label: first }),
          ...(revoked && { revoked: "include" }),
        },
      };
    },
    includes: (key, { values: { label = [] } }) =>
      label.every((wanted) => key.labels.some((each) => each.toLowerCase() === wanted.toLowerCase())),
    noun: "keys",
    columns: COLUMNS,
    // The server is asked for the first label only, so its count is too high for several.
    hiddenText: ({ hidden = 0 }, { values: { label = [] } }) =>
      hidden === 0 || label.length > 1
        ? undefined
        : hidden === 1
          ? "1 revoked key is hidden; --revoked lists it."
          : `${grouped(hidden)} revoked keys are hidden; --revoked lists them.`,
    ifNone: " Create one: petstore keys create --name NAME --plan free",
  }),
  operationCommand({
    name: "keys show",
    operation: "getKey",
    summary: "Show one API key with its secrets, limits, used quotas and ban",
    description:
      "Shows one key: its plan, what it has used of both limits, its strikes and its ban. While a server runs, all of it is at most a second old. Of a secret it shows the first and the last characters; the whole is not stored. After a rotation it shows the earlier secrets until their overlap ends.",
    text: (key, { context: { screen } }) => keyTable(key, screen),
  }),
  operationCommand({
    name: "keys find",
    operation: "findKey",
    description:
      "Asks for a secret without showing it, or reads it from standard input, and shows its key as petstore keys show does. A secret is never an argument: other users of the machine could read it in the list of processes. It finds the key also if the secret no longer works.",
    fields: { secret: null },
    examples: ["petstore keys find", "petstore keys find --json < secret.txt"],
    async prepare(_input, { context }) {
      const secret = (await context.readSecret("API key: ")).trim().replace(BEARER, "");
      if (secret === "") throw new Failure("no API key was given");
      return { body: { secret } };
    },
    text: ({ secretValidUntil, ...key }, { startedAt, context: { screen } }) =>
      keyTable(key, screen, [["Given secret", describeEnd(secretValidUntil, startedAt, screen)]]),
  }),
  operationCommand({
    name: "keys update",
    operation: "updateKey",
    summary: "Rename an API key, or change its owner, notes, labels, plan, access or expiry",
    description:
      "Changes the given fields of a key. --label replaces all labels. --expires counts from now; an expired key works again. Running servers apply the change within a second. Requests in the current windows still count. A revoked key stays revoked; its name, owner, notes and labels can still be changed.",
    fields: { ...FIELDS, expiresAt },
    examples: [
      "petstore keys update 3 --name 'mobile app' --owner ann@example.com",
      "petstore keys update 3 --access read --expires 90d",
      "petstore keys update 3 --plan enterprise --per-minute 5000 --per-day 2000000",
      "petstore keys update 3 --clear expires,notes,label",
    ],
    text: ({ id, name, plan, limits }) =>
      `Key ${id} ${quoted(name)} is updated: ${plan} plan, ${formatLimits(limits)}.\n`,
  }),
  operationCommand({
    name: "keys rotate",
    operation: "rotateKey",
    description:
      "Makes a new secret for a key and prints it. The earlier secrets stay valid for --overlap, so that clients can change to the new one without a failed request. The key keeps its plan, used quotas, strikes and ban.",
    fields: { overlapSeconds: overlapFlag("Time for which the earlier secrets stay valid", "1d") },
    examples: [
      "petstore keys rotate 3",
      "petstore keys rotate 3 --overlap 0   # the earlier secrets stop working at once",
    ],
    showsUrl: true,
    json: ({ key, secret, overlapEndsAt }) => ({
      ...key,
      key: secret,
      secret,
      previousSecretsValidUntil: overlapEndsAt,
    }),
    text({ key, secret, overlapEndsAt }, { url, context: { screen } }) {
      const earlier =
        key.secrets.length === 1 ? "are no longer valid" : `stay valid ${screen.until(overlapEndsAt)}`;
      return `Key ${key.id} ${quoted(key.name)} has a new secret. Its earlier secrets ${earlier}.\n${formatSecret(secret, url)}`;
    },
  }),
  keyChange("disableKey", ({ id }) => `is disabled. petstore keys enable ${id} switches it on again`),
  keyChange("enableKey", () => "is enabled"),
  operationCommand({
    name: "keys revoke",
    operation: "revokeKey",
    examples: ["petstore keys revoke 3", "petstore keys revoke 3 --reason 'leaked in a repository' --yes"],
    options: YES_OPTION,
    async request(call, { id, body }, execution) {
      const { name, revokedAt: revokedBefore } = await call("getKey", { id });
      await confirmed(`Revoke key ${id} ${quoted(name)} permanently?`, execution);
      return { key: await call("revokeKey", { id, body: { ...body } }), revokedBefore };
    },
    json: ({ key }) => key,
    text: ({ key: { id }, revokedBefore }, { context: { screen } }) =>
      revokedBefore === null
        ? `Key ${id} is revoked.\n`
        : `Key ${id} was already revoked ${screen.at(revokedBefore)}.\n`,
  }),
  operationCommand({
    name: "keys unban",
    operation: "unbanKey",
    examples: ["petstore keys unban 3"],
    async request(call, { id, body }) {
      const before = await call("getKey", { id });
      const isBanned = before.strikes === null || before.bannedUntil !== null;
      const last = async (action: "key.banned" | "key.unbanned") =>
        (await call("listAudit", { query: { target: `key:${id}`, action, limit: 1 } })).items[0];
      const [ban, unban] = isBanned ? [] : [await last("key.banned"), await last("key.unbanned")];
      const key = await call("unbanKey", { id, ...(body && { body }) });
      return { before, key, ban, unban };
    },
    json: ({ key }) => key,
    text: ({ before, key, ban, unban }, { context: { screen } }) => {
      const last = ban && lastBanText(ban, unban, screen);
      return `Key ${key.id} ${unbanText(before, screen)}${last === undefined ? "" : `; ${last}`}.\n`;
    },
  }),
];

/** What an unban has changed. */
function unbanText({ strikes, bannedUntil }: Key, screen: Screen): string {
  if (strikes === null) return "is unbanned by every running server within a second";
  if (bannedUntil !== null) return `is unbanned; its ban would have ended ${screen.at(bannedUntil)}`;
  return strikes === 0
    ? "was not banned and had no strikes"
    : `was not banned; its ${countOf(strikes, "strike")} towards a ban ${strikes === 1 ? "was" : "were"} removed`;
}

/** How the last ban ended: an unban comes after it, or its time has passed. */
function lastBanText(ban: AuditItem, unban: AuditItem | undefined, screen: Screen): string | undefined {
  if (unban && unban.id > ban.id) return `it was last unbanned ${screen.at(unban.at)}`;
  const until = ban.after?.["bannedUntil"];
  return typeof until === "string" ? `its last ban ended ${screen.at(until)}` : undefined;
}

/** A key as `keys show` and `keys find` print it. */
function keyTable(key: Key, screen: Screen, extra: readonly (readonly string[])[] = []): string {
  const timeOr = (time: string | null, none: string) => (time === null ? none : screen.time(time));
  return columns([
    ["Key", String(key.id)],
    ["Name", key.name],
    ["Owner", key.owner ?? "-"],
    ...(key.notes?.split("\n").map((line, i) => [i === 0 ? "Notes" : "", line]) ?? []),
    ["Labels", key.labels.join(", ") || "-"],
    ["Plan", `${key.plan}: ${formatLimits(key.limits)}`],
    ["Access", key.access],
    ["State", screen.coloredCell(STATE_COLORS[key.state], describeState(key, screen))],
    ...secretRows(key, screen),
    ...extra,
    ["This minute", describeWindow(key.usage?.minute, screen)],
    ["This day", describeWindow(key.usage?.day, screen)],
    ["Strikes", String(key.strikes ?? "?")],
    ["Last used", timeOr(key.lastUsedAt, "never")],
    ["Created", timeOr(key.createdAt, "")],
    ["Expires", timeOr(key.expiresAt, "never")],
    ...(key.revokedAt === null ? [] : [["Revoked", timeOr(key.revokedAt, "")]]),
  ]);
}

/** A row for each secret that works: after a rotation, the previous ones until their overlap ends. */
function secretRows({ secrets }: Key, screen: Screen): string[][] {
  return secrets.map(({ hint, createdAt, validUntil }, index) => {
    const since = createdAt === null ? "" : `, created ${screen.at(createdAt)}`;
    const end = validUntil === null ? "" : `, valid ${screen.until(validUntil)}`;
    return [index === 0 ? "Secret" : "", `${hint ?? "of an earlier release"}${since}${end}`];
  });
}

function describeState({ state, bannedUntil, usage }: Key, screen: Screen): string {
  if (state === "banned" && bannedUntil !== null) return `banned ${screen.until(bannedUntil)}`;
  return state === "active" && usage === null ? "active, unless it is banned" : state;
}

function describeWindow(window: NonNullable<Key["usage"]>["minute"] | undefined, screen: Screen): string {
  if (window === undefined) return "?";
  const { used, limit, resetsAt } = window;
  const text = `${grouped(used)} of ${grouped(limit)} used`;
  return resetsAt === null ? text : `${text}, resets ${screen.at(resetsAt)}`;
}

function describeEnd(validUntil: string | null, now: number, screen: Screen): string {
  if (validUntil === null) return "the current one";
  const end = Date.parse(validUntil);
  // An overlap of 0 is stored as the beginning of the epoch.
  if (end === 0) return "replaced, and no longer valid";
  return now < end
    ? `replaced, valid ${screen.until(validUntil)}`
    : `replaced, stopped working ${screen.at(validUntil)}`;
}
