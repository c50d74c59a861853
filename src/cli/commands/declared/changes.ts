/* What brings a service to what a file says: the changes, each of which is one call of an operation. */

import type { InputProblem } from "../../../api/schema.ts";
import { parseTimes } from "../../../domain/fields.ts";
import { KEY_FIELDS } from "../../../domain/key-fields.ts";
import { invalidExpiry, invalidKeyField } from "../../../domain/key-rules.ts";
import { LIMITED_PLANS } from "../../../domain/policy.ts";
import type { BanRulesView, Key, OperatorView, PlanLimits } from "../../../operator/operations.ts";
import { formatTime } from "../../../text/formatting.ts";
import type { CallOperation } from "../../calls/call.ts";
import type { Declared, DeclaredKey, DeclaredOperator, KeyReference } from "./file.ts";
import { keyNames, labelOfKey } from "./key-labels.ts";

/** What there is now. */
export interface Current {
  readonly plans: readonly PlanLimits[];
  readonly banRules: BanRulesView;
  readonly operators: readonly OperatorView[];
  readonly keys: readonly Key[];
  /** The requests of the last day by key, if any may be disabled because the file lacks it. */
  readonly requests?: ReadonlyMap<number, number> | undefined;
}

type Values = Readonly<Record<string, unknown>>;

export interface Change {
  readonly action: "create" | "update" | "enable" | "disable";
  readonly kind: "plan" | "ban-rules" | "operator" | "key";
  /** Undefined for what there is once. */
  readonly name: string | undefined;
  /** The values that differ. A new thing has none before. */
  readonly before: Values;
  readonly after: Values;
  /** Makes the change with one call. Resolves to the secret of what was created. */
  readonly run: (call: CallOperation) => Promise<string | undefined>;
  /** What still uses a key or an operator that is disabled because the file lacks it. */
  readonly use?: { readonly requestsOfLastDay: number } | { readonly lastUsedAt: string | null };
}

interface ChangeOptions {
  readonly now: number;
  /** Whether keys and operators that are not in their list of the file are disabled. */
  readonly prune: boolean;
  /** The name of the operator who applies the file, who is never disabled. */
  readonly self: string | undefined;
}

/** The changes, if there are no problems. */
export interface PlannedChanges {
  readonly changes: readonly Change[];
  readonly problems: readonly InputProblem[];
  /** Why entries of the file are left out: what they name was revoked, or has expired, since the file was written. */
  readonly leftOut?: readonly InputProblem[];
}

export function planChanges(
  declared: Declared,
  current: Current,
  options: ChangeOptions,
): Required<PlannedChanges> {
  const { operators, keys } = declared;
  const keysOf = findKeys(current.keys);
  const parts = [
    changesOfPolicy(declared, current),
    ...(operators ?? []).map((each, index) => changesOfOperator(each, { index, current, ...options })),
    ...(keys ?? []).map((each, index) => changesOfKey(each, { index, keysOf, ...options })),
  ];
  const isPruned = options.prune;
  const endedOperators = isPruned && operators ? prunedOperators(operators, current.operators, options) : [];
  const pruned = [...(isPruned && keys ? prunedKeys(keys, current, keysOf) : []), ...endedOperators];
  const ended = new Set(endedOperators.map(({ name }) => name));
  const changes = [...parts.flatMap((part) => part.changes), ...pruned];
  return {
    // Another admin may replace the last one.
    changes: [...changes.filter((change) => !endsAdmin(change)), ...changes.filter(endsAdmin)],
    problems: [
      ...parts.flatMap(({ problems }) => problems),
      ...withoutAdmin(operators ?? [], current.operators, ended),
      ...namedTwice(keys ?? [], keysOf),
    ],
    leftOut: parts.flatMap(({ leftOut = [] }) => leftOut),
  };
}

/** Whether an operator may be a lasting admin until this change. */
const endsAdmin = ({ kind, before }: Change): boolean =>
  kind === "operator" && (before["role"] === "admin" || before["expiresAt"] === null);

const isLasting = ({ role, expiresAt }: Pick<DeclaredOperator, "role" | "expiresAt">): boolean =>
  role === "admin" && (expiresAt ?? null) === null;

/** An admin whose token does not expire has to stay. */
function withoutAdmin(
  declared: readonly DeclaredOperator[],
  operators: readonly OperatorView[],
  ended: ReadonlySet<string | undefined>,
): readonly InputProblem[] {
  const present = operators.filter(({ state }) => state !== "revoked");
  const last = present.find(isLasting);
  const added = declared.filter(({ name }) => operators.every((each) => each.name !== name));
  const staysLasting = (operator: OperatorView) => {
    const { role, expiresAt = operator.expiresAt } =
      declared.find(({ name }) => name === operator.name) ?? operator;
    return !ended.has(operator.name) && isLasting({ role, expiresAt });
  };
  if (last === undefined || present.some(staysLasting) || added.some(isLasting)) return [];
  const index = declared.findIndex(({ name }) => name === last.name);
  const path = index === -1 ? ["operators"] : ["operators", index, "name"];
  const verb = index === -1 ? "lacks" : "is";
  return [{ path, message: `${verb} ${last.name}, who is the last admin whose token does not expire` }];
}

/** A key can be named by its name in files and by its identifier. */
function namedTwice(declared: readonly DeclaredKey[], keysOf: FindKeys): readonly InputProblem[] {
  const first = new Map<Key, number>();
  return declared.flatMap(({ id }, index) => {
    const key = keysOf(id).find(({ state }) => state !== "revoked");
    const before = key && first.get(key);
    if (key && before === undefined) first.set(key, index);
    return key && before !== undefined
      ? [{ path: ["keys", index, "id"], message: `names key ${key.id}, and so does keys[${before}]` }]
      : [];
  });
}

/** A text that is the same for equal values. The same time can be written with different offsets. */
function comparable(name: string, value: unknown): string {
  const isTime = name === "expiresAt" && typeof value === "string";
  return JSON.stringify((isTime ? Date.parse(value) : value) ?? null);
}

/** Returns the given fields that differ from what there is. */
function differing<T extends object>(
  given: T,
  now: object,
): { readonly before: Values; readonly after: Partial<T> } {
  const names = Object.keys(given).filter(
    (name) => comparable(name, Reflect.get(given, name)) !== comparable(name, Reflect.get(now, name)),
  );
  const pick = (from: object) =>
    Object.fromEntries(names.map((name) => [name, Reflect.get(from, name) ?? null]));
  // They are fields of what is given.
  return { before: pick(now), after: pick(given) as Partial<T> };
}

export const hasAny = (values: object): boolean => Object.keys(values).length > 0;
const done = async (call: Promise<unknown>): Promise<undefined> => void (await call);

function changesOfPolicy({ plans, banRules }: Declared, current: Current): PlannedChanges {
  const changes = LIMITED_PLANS.flatMap((plan): Change[] => {
    const now = current.plans.find((each) => each.plan === plan);
    const { before, after } = differing(plans[plan] ?? {}, now ?? {});
    const run = (call: CallOperation) => done(call("updatePlan", { body: { plan, ...after } }));
    return hasAny(after) ? [{ action: "update", kind: "plan", name: plan, before, after, run }] : [];
  });
  const { lengthMs, maxLengthMs } = { ...current.banRules, ...banRules };
  const isTooShort = banRules.maxLengthMs !== undefined && maxLengthMs < lengthMs;
  const { before, after } = differing(banRules, current.banRules);
  const run = (call: CallOperation) => done(call("updateBanRules", { body: after }));
  if (hasAny(after))
    changes.push({ action: "update", kind: "ban-rules", name: undefined, before, after, run });
  const message = `must be at least lengthMs, which is ${lengthMs}`;
  return { changes, problems: isTooShort ? [{ path: ["banRules", "maxLengthMs"], message }] : [] };
}

interface ItemOptions extends ChangeOptions {
  readonly index: number;
}

/** A problem of an item of a list, or of one of its fields. */
function problemOf(
  list: "operators" | "keys",
  index: number,
  message: string,
  ...field: string[]
): PlannedChanges {
  return { changes: [], problems: [{ path: [list, index, ...field], message }] };
}

/** Leaves an item of a list out, because of what has happened to what it names. */
function without(...item: Parameters<typeof problemOf>): PlannedChanges {
  const { problems, ...nothing } = problemOf(...item);
  return { ...nothing, problems: [], leftOut: problems };
}

function changesOfOperator(
  operator: DeclaredOperator,
  { index, current, now }: ItemOptions & { readonly current: Current },
): PlannedChanges {
  const { name, role, expiresAt } = operator;
  const holders = current.operators.filter((each) => each.name === name);
  const found = holders.find(({ state }) => state !== "revoked") ?? holders[0];
  if (found?.state === "revoked")
    return without(
      "operators",
      index,
      `is ${name}, who is revoked; petstore operators create lets them in again`,
      "name",
    );
  if (found?.subject !== undefined)
    return without("operators", index, `is ${name}, whose role the provider of the sign-in decides`, "name");
  const { before, after } = found ? differing(operator, found) : { before: {}, after: operator };
  const expiry = typeof after.expiresAt === "string" ? Date.parse(after.expiresAt) : undefined;
  const invalid = invalidExpiry(expiry, now);
  if (invalid) return problemOf("operators", index, "must be in the future", "expiresAt");
  if (!hasAny(after)) return NOTHING;
  if (found === undefined) {
    const body = { name, role, ...(expiresAt && { expiresAt }) };
    const run = async (call: CallOperation) => (await call("createOperator", { body })).token;
    return withoutProblems({ action: "create", kind: "operator", name, before, after: body, run });
  }
  const run = (call: CallOperation) => done(call("updateOperator", { id: found.id, body: after }));
  return withoutProblems({ action: "update", kind: "operator", name, before, after, run });
}

const NOTHING: PlannedChanges = { changes: [], problems: [] };
const withoutProblems = (...changes: Change[]): PlannedChanges => ({ changes, problems: [] });

/** Finds keys by the name in files, or by the identifier. */
type FindKeys = (reference: KeyReference) => readonly Key[];

function findKeys(keys: readonly Key[]): FindKeys {
  const found = new Map<KeyReference, Key[]>();
  for (const key of keys) {
    for (const reference of new Set([key.id, ...keyNames(key.labels)])) {
      const named = found.get(reference);
      if (named) named.push(key);
      else found.set(reference, [key]);
    }
  }
  return (reference) => found.get(reference) ?? [];
}

function changesOfKey(
  { id, disabled, ...fields }: DeclaredKey,
  options: ItemOptions & { readonly keysOf: FindKeys },
): PlannedChanges {
  const { index, keysOf } = options;
  const all = keysOf(id);
  const [found, ...others] = all.filter(({ state }) => state !== "revoked");
  const problem = (message: string) => problemOf("keys", index, message, "id");
  if (others.length > 0)
    return problem(`is the name of several keys: ${all.map((key) => key.id).join(", ")}`);
  if (found) return changesOfExistingKey({ id, disabled, ...fields }, found, options);
  const another = typeof id === "number" ? "give a new one a name such as mobile-app" : "take another name";
  if (all[0]) return without("keys", index, `names key ${all[0].id}, which is revoked; ${another}`, "id");
  if (typeof id === "number") return problem(`names no key; ${another}`);
  const body = { ...fields, labels: withName(id, fields.labels ?? []) };
  const invalid = invalidFields(body, options);
  if (invalid) return invalid;
  let keyId = 0;
  const create: Change = {
    action: "create",
    kind: "key",
    name: id,
    before: {},
    after: body,
    async run(call) {
      const { key, secret } = await call("createKey", { body });
      keyId = key.id;
      return secret;
    },
  };
  return disabled
    ? withoutProblems(create, { kind: "key", name: id, ...switched(() => keyId, true) })
    : withoutProblems(create);
}

function changesOfExistingKey(
  { id, disabled, ...fields }: DeclaredKey,
  found: Key,
  options: ItemOptions,
): PlannedChanges {
  const { plan, limits, ...rest } = fields;
  const given = {
    ...rest,
    plan,
    ...(rest.labels && { labels: withName(id, rest.labels) }),
    ...(limits && { limits }),
  };
  const ownLimits = found.plan === "enterprise" ? found.limits : undefined;
  const { before, after } = differing(given, { ...found, limits: ownLimits });
  const effective = limits ?? (plan === "enterprise" ? ownLimits : undefined);
  const invalid = invalidFields({ ...after, plan, ...(effective && { limits: effective }) }, options);
  if (invalid) return invalid;
  const key = { kind: "key", name: `${id}` } as const;
  const changes: Change[] = [];
  if (hasAny(after))
    changes.push({
      ...key,
      action: "update",
      before,
      after,
      run: (call) => done(call("updateKey", { id: found.id, body: after })),
    });
  const isExpired = found.state === "expired" && after.expiresAt === undefined;
  const isSwitched = disabled !== undefined && disabled !== (found.state === "disabled") && !isExpired;
  if (isSwitched) changes.push({ ...key, ...switched(() => found.id, disabled) });
  return isExpired && changes.length > 0
    ? without(
        "keys",
        options.index,
        `names key ${found.id}, which has expired; give it a later expiresAt`,
        "id",
      )
    : withoutProblems(...changes);
}

/** The labels of a key that a file names. */
function withName(id: KeyReference, labels: readonly string[]): readonly string[] {
  return typeof id === "number"
    ? labels
    : [...labels.filter((label) => label !== labelOfKey(id)), labelOfKey(id)];
}

type KeyFields = Omit<DeclaredKey, "id" | "disabled">;

/** Checks what a schema cannot express, as the operation will. */
function invalidFields(
  fields: Partial<KeyFields>,
  { now, index }: Pick<ItemOptions, "now" | "index">,
): PlannedChanges | undefined {
  const { limits, ...rest } = parseTimes(KEY_FIELDS, fields);
  const invalid = invalidKeyField({ ...rest, ...(limits && { limits }) }, { now });
  return (
    invalid && {
      changes: [],
      problems: invalid.problems.map(({ path, message }) => ({ path: ["keys", index, ...path], message })),
    }
  );
}

function switched(
  idOf: () => number,
  disabled: boolean,
): Pick<Change, "action" | "before" | "after" | "run"> {
  return {
    action: disabled ? "disable" : "enable",
    before: { disabled: !disabled },
    after: { disabled },
    run: (call) =>
      done(disabled ? call("disableKey", { id: idOf(), body: {} }) : call("enableKey", { id: idOf() })),
  };
}

function prunedKeys(
  declared: readonly DeclaredKey[],
  { keys, requests }: Current,
  keysOf: FindKeys,
): readonly Change[] {
  const named = new Set(declared.flatMap(({ id }) => keysOf(id)));
  const others = keys.filter((key) => !named.has(key) && ["active", "banned"].includes(key.state));
  return others.map(({ id, name }) =>
    Object.assign(
      switched(() => id, true),
      {
        kind: "key",
        name: `${id} (${name})`,
        use: { requestsOfLastDay: requests?.get(id) ?? 0 },
      } as const,
    ),
  );
}

/** An operator is disabled by an expiry, which an admin can remove. It must be in the future. */
const EXPIRY_MS = 1_000;

/** Operators who sign in with a provider are there as long as it says. */
function prunedOperators(
  declared: readonly DeclaredOperator[],
  operators: readonly OperatorView[],
  { now, self }: ChangeOptions,
): readonly Change[] {
  const named = new Set([...declared.map(({ name }) => name), self]);
  const others = operators.filter(
    ({ name, state, subject }) => !named.has(name) && state === "active" && subject === undefined,
  );
  const expiresAt = formatTime(now + EXPIRY_MS);
  return others
    .filter((each) => each.expiresAt === null || Date.parse(each.expiresAt) > now + EXPIRY_MS)
    .map(({ id, name, expiresAt: before, lastUsedAt }) => ({
      action: "disable",
      kind: "operator",
      name,
      use: { lastUsedAt },
      before: { expiresAt: before },
      after: { expiresAt },
      run: (call) => done(call("updateOperator", { id, body: { expiresAt } })),
    }));
}
