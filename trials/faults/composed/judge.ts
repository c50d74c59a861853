import { Troubles } from "../../simulation/world.ts";
import {
  type Action,
  type Disturbance,
  type Ending,
  type History,
  type Operation,
  operationText,
  type Period,
} from "./history.ts";

/** The time within which a revocation takes effect, as documented. */
const REVOKED_WITHIN_MS = 1_000;
/** How much counting is lost with PostgreSQL. */
const COUNTS_LOST_MS = 1_000;
/** The time to recover after the database is available again, and after another server was promoted. */
const RECOVERY_MS = { usual: 1_500, promotion: 5_000 };
/** The longest time of a request, and what a busy machine may add. A command may take longer. */
const MAX_REQUEST_MS = 8_000;
/** How long before a fault the standby may have confirmed data that it received. */
const STANDBY_LEAD_MS = 200;
/** The time to send a request, as documented. */
const SENT_WITHIN_MS = 30_000;
const SHOWN = 3;

type Of<Kind extends Action["kind"]> = Operation & { readonly action: Extract<Action, { kind: Kind }> };

function ofKind<Kind extends Action["kind"]>({ operations }: History, kind: Kind): Of<Kind>[] {
  return operations.filter((operation): operation is Of<Kind> => operation.action.kind === kind);
}

/** Whether a create or an order was acknowledged. */
const isDone = ({ status }: Operation) => status === 200 || status === 201;
/** Whether a write may have taken effect. A rejection means that it has not. */
const mayBeDone = ({ status }: Operation) => [0, 200, 201, 503].includes(status);
const isAllowed = ({ status }: Operation) => ![0, 401, 429, 503].includes(status);

const WRITES: ReadonlySet<Action["kind"]> = new Set(["create", "order", "change"]);

/** A rule returns a description of each problem. */
type Rule = (history: History) => string[];

const lost: Rule = (history) => {
  const creates = ofKind(history, "create").filter(isDone);
  const orders = ofKind(history, "order").filter(isDone);
  return history.endings.flatMap((ending) => {
    const { pets, placed } = indexOf(ending);
    const where = `at the end server ${ending.server} does not show`;
    return [
      ...creates
        .filter(({ action: { id, name } }) => pets.get(id ?? 0)?.name !== name)
        .map((create) => `${where} ${operationText(create)}`),
      ...orders
        .filter(({ action: { id, petId } }) => placed.get(id ?? 0) !== petId || !pets.get(petId)?.isOrdered)
        .map((order) => `${where} ${operationText(order)}`),
    ];
  });
};

function indexOf({ pets, orders }: Ending) {
  return {
    pets: new Map(pets.map((pet) => [pet.id, pet])),
    placed: new Map(orders.map(({ id, petId }) => [id, petId])),
  };
}

const doubled: Rule = (history) => [...doubledCreates(history), ...doubledOrders(history)];

function doubledCreates(history: History): string[] {
  const creates = ofKind(history, "create");
  const problems: string[] = [];
  for (const [name, attempts] of Map.groupBy(creates, ({ action }) => action.name)) {
    const isIdempotent = attempts[0]?.action.idempotencyKey !== undefined;
    const most = isIdempotent
      ? Math.min(1, attempts.filter(mayBeDone).length)
      : attempts.filter(mayBeDone).length;
    const stored = Math.max(
      ...history.endings.map(({ pets }) => pets.filter((pet) => pet.name === name).length),
    );
    const texts = attempts.map(operationText).join(" | ");
    if (stored > most) problems.push(`${stored} pets instead of ${most} after ${texts}`);
    const ids = attempts.filter(isDone).map(({ action }) => action.id);
    const different = new Set(ids).size;
    if (ids.length > 0 && different !== (isIdempotent ? 1 : ids.length))
      problems.push(`${ids.length} responses with ${different} identifiers: ${texts}`);
  }
  const byId = Map.groupBy(creates.filter(isDone), ({ action }) => action.id);
  for (const given of byId.values())
    if (new Set(given.map(({ action }) => action.name)).size > 1)
      problems.push(`one identifier for two pets: ${given.map(operationText).join(" | ")}`);
  return problems;
}

function doubledOrders(history: History): string[] {
  const problems: string[] = [];
  for (const [petId, placed] of Map.groupBy(
    ofKind(history, "order").filter(isDone),
    ({ action }) => action.petId,
  ))
    if (new Set(placed.map(({ action }) => action.id)).size > 1)
      problems.push(`pet ${petId} was ordered twice: ${placed.map(operationText).join(" | ")}`);
  for (const { server, orders } of history.endings)
    for (const [petId, placed] of Map.groupBy(orders, (order) => order.petId))
      if (placed.length > 1)
        problems.push(`at the end server ${server} shows ${placed.length} orders of pet ${petId}`);
  return problems;
}

/** A read that began after an acknowledgement shows the acknowledged data. */
const stale: Rule = (history) => {
  const creates = ofKind(history, "create").filter(isDone);
  const orders = ofKind(history, "order");
  const placed = orders.filter(isDone);
  const problems: string[] = [];
  for (const read of ofKind(history, "read")) {
    if (read.status !== 200 && read.status !== 404) continue;
    const { after, upTo, pets } = read.action;
    const isCovered = (id = 0) => id > after && id <= upTo;
    const seen = new Map(pets.map((pet) => [pet.id, pet]));
    for (const create of creates)
      if (create.endedAt < read.startedAt && isCovered(create.action.id) && !seen.has(create.action.id ?? 0))
        problems.push(`${operationText(read)} does not show ${operationText(create)}`);
    for (const order of placed)
      if (order.endedAt < read.startedAt && isCovered(order.action.petId))
        if (!seen.get(order.action.petId)?.isOrdered)
          problems.push(`${operationText(read)} does not show ${operationText(order)}`);
  }
  for (const order of orders.filter(({ code }) => code === "pet_not_found"))
    if (creates.some(({ action, endedAt }) => action.id === order.action.petId && endedAt < order.startedAt))
      problems.push(`${operationText(order)} does not find an acknowledged pet`);
  return [...problems, ...staleCredentials(history)];
};

const STATES = { create: "active", disable: "disabled", revoke: "revoked" };

/** A key has the state of its last change. A key that was created and not changed since is valid. */
function staleCredentials(history: History): string[] {
  const changes = Map.groupBy(ofKind(history, "change"), ({ action }) => action.of);
  const problems: string[] = [];
  for (const inspection of ofKind(history, "inspect").filter(isDone)) {
    const { of, state } = inspection.action;
    const before = (changes.get(of) ?? []).filter(({ startedAt }) => startedAt < inspection.endedAt);
    const certain = before.findLast((change) => isDone(change) && change.endedAt < inspection.startedAt);
    const possible = before.slice(certain ? before.indexOf(certain) : 0);
    if (certain && !possible.some(({ action }) => STATES[action.change] === state))
      problems.push(`${operationText(inspection)} does not show ${operationText(certain)}`);
  }
  for (const operation of history.operations.filter(({ status }) => status === 401)) {
    const all = changes.get(operation.credential) ?? [];
    const created = all.find((change) => change.action.change === "create" && isDone(change));
    const isTouched = all.some(
      ({ action, startedAt }) => action.change !== "create" && startedAt < operation.endedAt,
    );
    if (operation.credential in history.expiries) continue;
    if (created && created.endedAt < operation.startedAt && !isTouched)
      problems.push(`${operationText(operation)} although the credential is valid`);
  }
  return problems;
}

/**
 * A credential allows nothing from one second after the acknowledgement that it is disabled or revoked. On the server
 * that acknowledged it, it allows nothing at once.
 */
const revoked: Rule = (history) => {
  const ends = ofKind(history, "change").filter(
    (change) => change.action.change !== "create" && isDone(change),
  );
  const end = new Map(ends.toReversed().map((change) => [change.action.of, change]));
  const stored = new Set(
    history.endings.flatMap(({ pets, keys }) => [...pets.map(({ name }) => name), ...keys]),
  );
  return history.operations.flatMap((operation) => {
    const change = end.get(operation.credential);
    if (change === undefined) return [];
    const isEffective = nameOf(operation.action) !== undefined && stored.has(nameOf(operation.action) ?? "");
    if (!isAllowed(operation) && !isEffective) return [];
    const withinMs = change.server === operation.server ? 0 : REVOKED_WITHIN_MS;
    if (change.endedAt > calmSince(history, operation, withinMs)) return [];
    return [`${operationText(operation)}${isEffective ? ", done," : ""} after ${operationText(change)}`];
  });
};

/** The name of the data that an action writes. */
function nameOf(action: Action): string | undefined {
  return action.kind === "create" || action.kind === "use" ? action.name : undefined;
}

const byTime = (a: Period, b: Period) => a.from - b.from;

/**
 * The latest time before the request that was followed by `ms` in which the server could read the changes of others. A
 * server that was paused or busy reads them before it goes on. So that excuses it only if it cannot read them then.
 */
function calmSince({ disturbances }: History, { server, sentAt, endedAt }: Operation, ms: number): number {
  const ofDatabase = disturbances.filter(({ part }) =>
    ["primary", "promotion", "certificate"].includes(part),
  );
  const calm = troublesOf(ofDatabase).calmSince(sentAt, ms);
  const isUndisturbed = calm === sentAt - ms && !ofDatabase.some((each) => isNear(each, { sentAt, endedAt }));
  if (isUndisturbed) return calm;
  const ofServer = disturbances.filter(({ part, number }) => part === "server" && number === server);
  return troublesOf([...ofDatabase, ...ofServer]).calmSince(sentAt, ms);
}

function isNear(
  { from, until, ...rest }: Disturbance,
  { sentAt, endedAt }: Pick<Operation, "sentAt" | "endedAt">,
) {
  return from < endedAt && until + recoveryOf({ from, until, ...rest }) > sentAt;
}

function troublesOf(disturbances: readonly Disturbance[]): Troubles {
  const troubles = new Troubles();
  for (const each of disturbances.toSorted(byTime))
    troubles.add(each.from, each.until + recoveryOf(each) - each.from);
  return troubles;
}

const recoveryOf = ({ part }: Disturbance) =>
  part === "promotion" ? RECOVERY_MS.promotion : RECOVERY_MS.usual;

/** Limits are exact. What PostgreSQL counted within a second before it was killed may be lost. */
const limits: Rule = (history) => {
  const { disturbances } = history;
  const uncounted = (allowed: Operation) =>
    disturbances.some(
      ({ part, what, from }) =>
        part === "promotion" &&
        what === "killed" &&
        allowed.endedAt > from - COUNTS_LOST_MS &&
        allowed.startedAt < from,
    );
  return Object.entries(history.limits).flatMap(([name, limit]) => {
    const sent = history.operations.filter(({ credential }) => credential === name);
    const allowed = sent.filter((operation) => isAllowed(operation) && !uncounted(operation));
    if (allowed.length > limit) return [`${name} was allowed ${allowed.length} requests of ${limit}`];
    const early = sent.find((one) => {
      const others = sent.filter((other) => other !== one && other.startedAt < one.endedAt);
      return one.status === 429 && others.length < limit;
    });
    // Another key may have had the identifier, and been lost.
    return early && history.mayBeLostUntil === undefined
      ? [`${operationText(early)} before ${limit} requests`]
      : [];
  });
};

/** A key expires by the clock of the server, even after that clock was set. */
const expiry: Rule = (history) =>
  history.operations.flatMap((operation) => {
    const { server, credential, startedAt, endedAt, status } = operation;
    const expiresAt = history.expiries[credential];
    if (expiresAt === undefined || status === 0 || status === 503) return [];
    const clock = history.clocks.filter(
      (each) => each.server === server && each.from < endedAt && each.until > startedAt,
    );
    const [{ aheadMs } = { aheadMs: 0 }] = clock;
    // The clock was set during the request, so both outcomes are correct.
    if (aheadMs === undefined || clock.length > 1) return [];
    const isExpired = startedAt + aheadMs > expiresAt;
    if (isExpired === (status === 401)) return [];
    return [`${operationText(operation)} although the key ${isExpired ? "has expired" : "is valid"}`];
  });

/** A commit waits for the standby until a promotion has replaced the primary. */
const withoutStandby: Rule = (history) => {
  if (history.mayBeLostUntil !== undefined) return [];
  const absences = history.disturbances.filter(({ part }) => part === "standby");
  const writes = history.operations.filter((each) => isDone(each) && WRITES.has(each.action.kind));
  return absences.flatMap(({ from, until }) =>
    writes
      .filter(({ startedAt, endedAt }) => startedAt > from + STANDBY_LEAD_MS && endedAt < until)
      .map((write) => `${operationText(write)} while the standby was away`),
  );
};

/** The responses that a client may get besides 503, by kind. Several clients place orders for one pet. */
const EXPECTED: Readonly<Record<Action["kind"], readonly string[]>> = {
  create: ["201", "409 idempotency_conflict"],
  order: ["201", "409 idempotency_conflict", "409 pet_not_available", "404 pet_not_found"],
  read: ["200", "404"],
  change: ["200", "201"],
  inspect: ["200"],
  use: ["200", "201", "404 not_found"],
};

/** Matches why a server responds 503 when another one holds a lock for too long. */
const LOCKED = /lock timeout/;

/**
 * All responses are expected ones. A 503 response or none occurs only during a fault or soon after it. No response
 * takes longer than allowed.
 */
const statuses: Rule = (history) => {
  const changes = ofKind(history, "change");
  const credentials = new Set(changes.map(({ action }) => action.of));
  const ended = new Set(changes.flatMap(({ action }) => (action.change === "create" ? [] : action.of)));
  const { mayBeLostUntil = -Infinity } = history;
  const mayBeLost = new Set(
    changes.filter(({ startedAt }) => startedAt < mayBeLostUntil).map(({ action }) => action.of),
  );
  return history.operations.flatMap((operation) => {
    const { action } = operation;
    if ("of" in action && mayBeLost.has(action.of) && [0, 404].includes(operation.status)) return [];
    const problem = unexpected(operation, history, { credentials, ended });
    return problem === undefined ? [] : [`${operationText(operation)}: ${problem}`];
  });
};

interface Credentials {
  readonly credentials: ReadonlySet<string>;
  /** Those that somebody disabled or revoked. */
  readonly ended: ReadonlySet<string>;
}

function unexpected(operation: Operation, history: History, { credentials, ended }: Credentials) {
  const { status, code, credential, action } = operation;
  const near = history.disturbances.filter((each) => {
    const end = each.until + recoveryOf(each);
    return each.from < operation.endedAt && end > operation.startedAt;
  });
  const disturbed = near.filter(({ number }) => number === undefined || number === operation.server);
  const takesMs = operation.endedAt - operation.sentAt;
  const servers = disturbed.filter(({ part }) => part === "server");
  const frozenMs = servers.reduce((sum, { from, until }) => sum + until - from, 0);
  const isLate = operation.server !== 0 && takesMs > MAX_REQUEST_MS + frozenMs;
  if (status !== 0 && isLate) return `it took ${Math.round(takesMs)} ms`;
  if (status === 0) {
    const isExpected = operation.server === 0 ? disturbed.length > 0 : servers.length > 0;
    return isExpected ? undefined : "the server had no fault";
  }
  // A client whose body waits for another response may wait for as long as no standby confirms commits.
  if (status === 408 && operation.sentAt - operation.startedAt > SENT_WITHIN_MS) return undefined;
  if (status === 503) {
    // A server that does not go on holds its locks until PostgreSQL ends its transaction.
    const causes = LOCKED.test(operation.reason ?? "") ? near : disturbed;
    return causes.length > 0 ? undefined : "the database had no fault";
  }
  if (status === 401 && credentials.has(credential)) return undefined;
  if (status === 429 && credential in history.limits) return undefined;
  // An address that uses many tokens which are not valid may guess them.
  if (code === "too_many_attempts" && ended.has(credential)) return undefined;
  const isExpected = EXPECTED[action.kind].some(
    (text) => text === `${status}` || text === `${status} ${code}`,
  );
  return isExpected ? undefined : "unexpected";
}

const failed: Rule = ({ failures }) => [...failures];

/** Every audit entry that is stored is delivered. */
const undelivered: Rule = (history) => [...history.undelivered];

/** The rules by name, so that a problem names the broken promise. */
export const RULES = {
  lost,
  doubled,
  stale,
  revoked,
  limits,
  expiry,
  withoutStandby,
  statuses,
  undelivered,
  failed,
} as const;

/** The rules about what clients were told, which may be lost with a primary that waited for no standby. */
const ABOUT_DATA: ReadonlySet<string> = new Set(["lost", "doubled", "stale", "revoked", "expiry"]);

/** The writes before the promotion of a standby for which the primary did not wait may be done or not. */
function withoutLost(history: History): History {
  const { mayBeLostUntil = -Infinity } = history;
  const operations = history.operations.map((operation) =>
    operation.startedAt < mayBeLostUntil && WRITES.has(operation.action.kind) && isDone(operation)
      ? { ...operation, status: 0 }
      : operation,
  );
  return { ...history, operations };
}

/** Lists the broken promises, each with its first few problems. */
export function judge(history: History): string[] {
  const certain = withoutLost(history);
  return Object.entries(RULES).flatMap(([name, rule]) => {
    const problems = [...new Set(rule(ABOUT_DATA.has(name) ? certain : history))].map(
      (problem) => `${name}: ${problem}`,
    );
    const more = problems.length - SHOWN;
    return more > 0 ? problems.slice(0, SHOWN).concat(`${name}: ${more} more`) : problems;
  });
}
