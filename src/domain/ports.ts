import type { Awaitable } from "../runtime/awaitable.ts";
import type { Rejection } from "../api/errors.ts";
import type { TaggedJson } from "../runtime/etag.ts";
import type { Identifier } from "../api/json.ts";
import type { ApiKey, Credential, KeyChange, KeySecret, NewKey } from "./api-keys.ts";
import type { KeyList, KeyListQuery } from "./key-lists.ts";
import type { NewSecret } from "./secrets.ts";
import type { Attribution, AuditEntry, AuditQuery, NewAuditEntry } from "./audit.ts";
import type { PlanName } from "./plans.ts";
import type { Policy, PolicyChange } from "./policy.ts";
import type {
  NewOperator,
  NewSignInCode,
  Operator,
  OperatorAccess,
  AdmittedOperator,
  OperatorChange,
  ProviderOperator,
  RejectedOperator,
  UnchangedOperator,
  OperatorSession,
  SignInCode,
} from "./operators.ts";
import type { Decision, Limits, Quota, Subject } from "./rate-limit.ts";
import type {
  NewPet,
  OperatorOrder,
  Order,
  OrderFilters,
  OrderUpdate,
  Pet,
  PetFilters,
  PetUpdate,
} from "./pets-and-orders.ts";
import type { Question, QuestionState, ServerState, StoredReport } from "./servers.ts";
import type { WaitingEntries, WebhookState } from "./webhooks.ts";
import type { KeyTotals, KeyTotalsQuery, UsageBatch, UsageQuery, UsageRow } from "./usage-history.ts";
import type { PageQuery, PageJson, Page } from "./pages.ts";

/** Two clocks, in milliseconds since the epoch. They are injected everywhere, so that no test sleeps. */
export interface Clock {
  /** Returns the time of the machine's clock, for times that people see: when a key expires, when a pet was created. */
  now(): number;
  /** Returns the time of a monotonic clock, which setting the machine's clock does not move: for windows and bans. */
  steadyNow(): number;
  /** How far the machine's clock has been set since the start: `now` is `steadyNow` plus this, apart from drift. */
  readonly stepMs: number;
}

export interface PetQuery extends PageQuery, PetFilters {
  /** The identifiers of the pets, ascending, each once. */
  readonly ids?: readonly bigint[] | undefined;
}

/** Selects orders of one key. */
export interface OrderPageQuery extends PageQuery, OrderFilters {}

/** Selects orders of all keys. Every condition that is given has to hold. */
export interface OrderQuery extends OrderFilters {
  readonly keyId?: number | undefined;
  readonly petId?: bigint | undefined;
  /** The identifier of the last order of the page before. */
  readonly before?: bigint | undefined;
  readonly limit: number;
}

/** A write with an Idempotency-Key. Requests with the same API key, operation and Idempotency-Key are one request. */
export interface IdempotentRequest {
  readonly keyId: number;
  readonly idempotencyKey: string;
  /** SHA-256 of the request body. The same Idempotency-Key with a different body is rejected. */
  readonly fingerprint: string;
}

export interface WriteResult {
  readonly id: bigint;
  /** The response body; a repeated request gets it again, byte for byte. */
  readonly body: string;
  /** True when the write was done before and this is its stored result. */
  readonly replayed: boolean;
}

/** An order to place, and the key that it will belong to. */
export interface OrderPlacement {
  readonly keyId: number;
  readonly petId: bigint;
}

/** The completion or cancellation of an order by the key that placed it. */
export interface OwnOrderUpdate extends OrderUpdate {
  readonly keyId: number;
  readonly id: bigint;
  /** The `If-Match` header: the order is updated only if its ETag is one of these, or if this is `*`. */
  readonly ifMatch?: string | undefined;
}

export type IdempotencyRejection = Rejection<"idempotency_conflict" | "idempotency_key_reused">;

/** Pets as JSON text. Stores write it faster than rows could be encoded here. */
export interface PetJsonSource {
  list(query: PetQuery): Awaitable<PageJson>;
  get(id: Identifier): Awaitable<TaggedJson | undefined>;
  /** Absent if other servers write too. Then responses cannot be cached. */
  readonly revisions?: PetRevisions;
  /** Drops what is cached if another process has changed pets. Called at each poll for changes. */
  checkOtherProcesses?(): void;
  /** Replaced whenever reads are sent. While it is the same, a read that has begun may serve one that begins now. */
  readonly batch?: object;
  /** The statistics of the cache, if there is one. */
  readonly cacheStatistics?: { readonly hits: number; readonly misses: number };
}

/** Numbers that grow when any pet changes. The second one grows also when a pet is added. */
export interface PetRevisions {
  readonly changes: number;
  readonly changesAndAdditions: number;
}

/**
 * Pets and orders, as clients use them, apart from reads of pets: PetJsonSource has those. An order belongs to the API
 * key that placed it, and other keys cannot see it. Every write is one transaction, and its promise resolves after that
 * transaction is durable. Identifiers start at 1, grow, and are never used twice. Every method throws Unavailable while
 * the database cannot be used. Times are milliseconds since the epoch.
 */
export interface ClientStore {
  createPet(
    pet: NewPet,
    at: number,
    idempotentRequest?: IdempotentRequest,
  ): Promise<WriteResult | IdempotencyRejection>;

  /** Lists the orders of a key in ascending order of identifiers. The first page and the last cost the same. */
  listOrders(keyId: number, query: OrderPageQuery): Awaitable<Page<Order>>;
  getOrder(keyId: number, id: bigint): Awaitable<Order | undefined>;
  /** Creates an order and makes its pet pending. */
  placeOrder(
    placement: OrderPlacement,
    at: number,
    idempotentRequest?: IdempotentRequest,
  ): Promise<WriteResult | IdempotencyRejection | Rejection<"pet_not_found" | "pet_not_available">>;
  /** Completes or cancels an order and makes its pet sold or available. An order with this status stays as it is. */
  updateOrder(
    update: OwnOrderUpdate,
    at: number,
  ): Promise<Order | Rejection<"order_not_found" | "order_closed" | "precondition_failed">>;

  /** Rejects new writes, finishes those already accepted, then closes the database. */
  close(): Promise<void>;
}

/**
 * All pets and orders, as operators manage them: they see the orders of every key, and change what clients cannot.
 * Every write is one transaction with its audit entry, and its promise resolves after that transaction is durable. A
 * write that changes nothing has no audit entry. Every method throws Unavailable while the database cannot be used.
 */
export interface PetsAndOrdersStore {
  /** Lists pets in ascending order of identifiers. The first page and the last cost the same. */
  listPets(query: PetQuery): Awaitable<Page<Pet>>;
  /** Lists the pets whose names contain the text, in upper or lower case. The page reads 1,000 pets at most. */
  searchPets(text: string, query: PetQuery): Awaitable<Page<Pet>>;
  getPet(id: bigint): Awaitable<Pet | undefined>;
  /** Lists orders, newest first. The first page and the last cost the same. */
  listOrders(query: OrderQuery): Awaitable<Page<OperatorOrder>>;
  getOrder(id: bigint): Awaitable<OperatorOrder | undefined>;
  /** Completes or cancels an order of any key, as a client does. */
  updateOrder(
    id: bigint,
    status: OrderUpdate["status"],
    by: Attribution,
  ): Promise<OperatorOrder | Rejection<"order_not_found" | "order_closed">>;

  createPet(pet: NewPet, by: Attribution): Promise<Pet>;
  /** A pet with a placed order keeps its status. */
  updatePet(
    id: bigint,
    change: PetUpdate,
    by: Attribution,
  ): Promise<Pet | Rejection<"pet_not_found" | "pet_ordered">>;
  /** Returns the pet as it was. A pet that has ever been ordered is not deleted. */
  deletePet(id: bigint, by: Attribution): Promise<Pet | Rejection<"pet_not_found" | "pet_has_orders">>;
}

/**
 * API keys. Every change increments the revision. Revisions become visible in ascending order, so a reader that asks
 * for the changes since the last revision it saw misses none. Every change writes its audit entry in its own
 * transaction.
 */
export interface KeyStore {
  /** Looks up the SHA-256 (hex) of a secret; secrets are not stored. Expired and revoked keys are returned as well. */
  findCredential(secretHash: string): Awaitable<Credential | undefined>;
  /** Returns what changed after the given revision. Servers poll it several times a second. */
  changesSince(revision: number): Awaitable<KeyChanges>;

  createKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey>;
  /** Creates a key if there has never been one. Of concurrent calls, one creates it. */
  createFirstKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey | undefined>;
  listKeys(query: KeyListQuery): Awaitable<KeyList>;
  getKey(id: number): Awaitable<ApiKey | undefined>;
  /** Returns the keys that exist, in any order. */
  getKeys(ids: readonly number[]): Awaitable<readonly ApiKey[]>;
  /** Returns all secrets of each key, newest first, including those that no longer work. */
  listSecrets(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, readonly KeySecret[]>>;
  /** Adds a secret. The earlier secrets stop working at `overlapEndsAt`. */
  addSecret(id: number, secret: NewSecret & { overlapEndsAt: number }, by: Attribution): Promise<void>;
  /**
   * Changes the given fields and returns the key. A key of a plan other than Enterprise has no limits of its own, and a
   * revoked key keeps the time of its revocation, whatever the change says. A change that leaves every field as it is
   * has no audit entry.
   */
  updateKey(id: number, change: KeyChange, by: Attribution): Promise<ApiKey>;
  /**
   * Adds an audit entry for some of the keys that expire before `until`, once for each expiry, and returns whether
   * there may be more. Keys that are revoked or have expired have none. Of concurrent calls, one adds it.
   */
  announceExpiries(until: number, by: Attribution): Promise<boolean>;
}

export interface KeyChanges {
  /** The current revision. */
  readonly revision: number;
  /** A text that changes when another copy of the database has taken over, which may lack the last changes. */
  readonly timeline: string;
  /** Each key once, in the order of the changes. */
  readonly changed: readonly ChangedKey[];
  /** Whether there are questions to servers: one statement shows both, several times a second. */
  readonly hasQuestions: boolean;
}

export interface ChangedKey {
  readonly key: ApiKey;
  /** `unban` if the key was unbanned after the revision, with or without other changes. */
  readonly kind: "key" | "unban";
}

/**
 * The policy: limits, ban rules and shared values. A change increments the revision of the keys, so that servers see
 * it, and writes its audit entries in its own transaction. What changes nothing writes nothing.
 */
export interface PolicyStore {
  /** Reads the policy. Values that are not stored yet have their defaults. */
  readPolicy(): Awaitable<Policy>;
  /** Changes the given values, and stores the defaults of what is not stored yet. Returns the policy afterwards. */
  updatePolicy(change: PolicyChange, by: Attribution): Promise<Policy>;
  /** How many keys that are not revoked have each plan. A plan without keys is missing. */
  countKeys(): Awaitable<Readonly<Record<PlanName, number>>>;
}

/** Texts that servers and commands store for one another, under the names of stored-values.ts. */
export interface ValueStore {
  /** Replaces the values of the given names. */
  saveValues(values: Readonly<Record<string, string>>): Promise<void>;
  readValues(): Awaitable<Readonly<Record<string, string>>>;
  /** The time of the database in milliseconds since the epoch; undefined if it has no clock of its own. */
  readTime(): Awaitable<number | undefined>;
}

/** What each server on the database reports about itself. A crash of PostgreSQL loses it until the next report. */
export interface ServerReportStore {
  /** Replaces the report of a server, and returns those of all others. */
  report(id: string, report: string): Promise<readonly StoredReport[]>;
  listReports(): Awaitable<readonly StoredReport[]>;
  deleteReports(ids: readonly string[]): Promise<void>;
}

/** Questions to servers. `KeyStore.changesSince` shows whether there are any. */
export interface QuestionStore {
  /** Stores all of the questions. Throws Overloaded if there are too many already. */
  ask(questions: readonly Question[]): Promise<void>;
  /** Takes the questions that a server may answer, each once. Deletes old questions, which nobody waits for. */
  take(server: string, machine: string): Promise<readonly Question[]>;
  answer(id: string, answer: string): Promise<void>;
  /** Returns the questions that still exist. */
  readAnswers(ids: readonly string[]): Awaitable<readonly QuestionState[]>;
  forget(ids: readonly string[]): Promise<void>;
}

/**
 * Operators, their tokens, sessions and sign-in codes. Every change is one transaction with its audit entry. Rotating
 * or revoking an operator ends their sessions.
 */
export interface OperatorStore {
  /** Lists the oldest first: all operators that are not revoked, and the last 300 that are. */
  listOperators(): Awaitable<readonly Operator[]>;
  createOperator(
    operator: NewOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<Operator | Rejection<"operator_exists" | "too_many_operators">>;
  /**
   * Creates an admin if there has never been one without an expiry, and the name and token are new. Of concurrent
   * calls, one does.
   */
  createFirstOperator(
    operator: NewOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<Operator | undefined>;
  /**
   * Sets the token of the operator with this name and role, who is created if there is none. Returns undefined if the
   * operator already has the token. Rejects a token that was used before, and any token of a revoked operator: neither
   * becomes valid again.
   */
  importOperator(
    operator: NewOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<
    | Operator
    | undefined
    | Rejection<"invalid_token" | "operator_not_active" | "operator_exists" | "too_many_operators">
  >;
  /**
   * Changes the role or the expiry. At least one admin has no expiry. The sessions of an operator who can no longer
   * sign in end. One who signs in with a provider gets no more than it grants.
   */
  updateOperator(id: number, change: OperatorChange, by: Attribution): Promise<Operator | UnchangedOperator>;
  /**
   * Admits a person whom a provider has authenticated. The token stays while the same person is active; otherwise the
   * given one replaces it. Rejects a revoked operator, by the name and by the subject.
   */
  admitOperator(
    person: ProviderOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<AdmittedOperator | RejectedOperator>;
  /** Replaces the token. */
  rotateOperator(
    id: number,
    token: TokenRotation,
    by: Attribution,
  ): Promise<Operator | Rejection<"operator_not_found" | "operator_not_active" | "invalid_token">>;
  /** Leaves an operator who is already revoked as it is. */
  revokeOperator(
    id: number,
    by: Attribution,
  ): Promise<Operator | Rejection<"operator_not_found" | "last_admin">>;
  /** Records when an operator last sent a request, to the hour. */
  recordUse(id: number, at: number): Promise<void>;

  readAccess(): Awaitable<OperatorAccess>;
  /** Deletes expired codes, and the oldest of too many. */
  createCode(code: NewSignInCode, now: number): Promise<void>;
  /** Deletes and returns the code. Of concurrent calls, one gets it. */
  takeCode(codeHash: string): Promise<SignInCode | undefined>;
  /**
   * Creates the session if its token still works, and returns whether it does. Deletes expired sessions, and the oldest
   * of too many.
   */
  createSession(session: OperatorSession, entry: NewAuditEntry): Promise<boolean>;
  /** Records the entry if the session exists. */
  deleteSession(cookieHash: string, entry: NewAuditEntry): Promise<void>;
  /** Deletes all sessions and codes of an operator. */
  deleteSessions(operatorId: number, by: Attribution): Promise<void>;
}

export interface TokenRotation extends NewSecret {
  /** The hash of the session that stays valid: from now on it is one of the new token. */
  readonly keeps?: string | undefined;
  /** The hash of the only token that may be replaced. If the operator has another one, nothing changes. */
  readonly replaces?: string | undefined;
  /** When the earlier tokens, and with them their sessions and codes, stop working; by default at once. */
  readonly overlapEndsAt?: number | undefined;
}

/** Who changed what. A change of a key, a pet or an order writes its entry in its own transaction. */
export interface AuditStore {
  /** Records what changes nothing else in the database, such as a sign-in. */
  recordAudit(entry: NewAuditEntry): Promise<void>;
  /**
   * Lists entries, newest first, or with `after` oldest first: a reader that continues after the last identifier that
   * it has read misses none.
   */
  listAudit(query: AuditQuery): Awaitable<Page<AuditEntry>>;
  /** Deletes some of the entries before a time, the oldest first; returns whether there may be more. */
  deleteAudit(before: number): Promise<boolean>;
}

/** How far the audit trail has been delivered to the webhook. Of all servers, one delivers. */
export interface WebhookStore {
  /**
   * Returns the state. If there is none, the delivery begins at the end of the audit trail, with this source. If a
   * backup without a state was restored at `restoredSince` or later, it begins with the entry of that restore.
   */
  openWebhook(source: string, restoredSince?: number): Promise<WebhookState>;
  readWebhook(): Awaitable<WebhookState | undefined>;
  /**
   * Makes the server the one that delivers, if the state is still that which it has seen. Returns the state as it is
   * then, or undefined.
   */
  takeWebhook(server: string, seen: WebhookState): Promise<WebhookState | undefined>;
  /**
   * Saves how far the server has come since it took or saved the state. Returns the state as it is then; undefined if
   * another server delivers instead, or if the database has an earlier state: a standby that was promoted may have one.
   */
  saveWebhook(server: string, progress: WebhookState): Promise<WebhookState | undefined>;
  /** Lets another server deliver at once. */
  releaseWebhook(server: string): Promise<void>;
  /** Counts, of the next 1,000 entries after a position, those with one of the actions, or all. */
  countWaiting(position: bigint, actions: ReadonlySet<string> | undefined): Awaitable<WaitingEntries>;
}

/** Requests by key, operation and hour or day, of all servers on the database. */
export interface UsageHistoryStore {
  /** Adds all of the counts or none, to the hour and to its day. Adds nothing if the batch was added before. */
  addUsage(batch: UsageBatch): Promise<void>;
  /** Returns rows in the order of interval and operation. Intervals without requests have no row. */
  readUsage(query: UsageQuery): Awaitable<readonly UsageRow[]>;
  /** Returns the totals of each key that was used in the period, those with the most requests first. */
  usageByKey(query: KeyTotalsQuery): Awaitable<readonly KeyTotals[]>;
  /** Returns when each key was last used, in milliseconds since the epoch. */
  lastUsed(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, number>>;
  /** Counts the keys that have called a deprecated operation since this time, to two seconds. */
  countDeprecatedUse(since: number): Awaitable<number>;
  /** Deletes some of the hours and days that are too old to be kept; returns whether there are more. */
  deleteOldUsage(now: number): Promise<boolean>;
}

/** All stores of one database. */
export interface Stores {
  readonly clientStore: ClientStore;
  readonly petJson: PetJsonSource;
  readonly petsAndOrders: PetsAndOrdersStore;
  readonly operators: OperatorStore;
  readonly keys: KeyStore;
  readonly policies: PolicyStore;
  readonly audit: AuditStore;
  readonly storedValues: ValueStore;
  readonly serverReports: ServerReportStore;
  readonly questions: QuestionStore;
  readonly usageHistory: UsageHistoryStore;
  readonly webhooks: WebhookStore;
}

/** Limits the requests of each subject, by the rules in rate-limit.ts. */
export interface RateLimiter {
  /**
   * Allows or rejects one request, atomically. A rate limiter in process decides without a promise. Throws Unavailable
   * when more requests wait for a decision than it can queue.
   */
  decide(subject: Subject, limits: Limits): Awaitable<Decision>;
  /**
   * Returns the decision about a request now, as far as this process knows, without counting the request: `remaining`
   * includes it. The quota of an address is always known.
   */
  peek(subject: Subject, limits: Limits): Decision;
  /** Returns the quota without counting a request; undefined if none of it is current. */
  quota(subject: Subject): Awaitable<Quota | undefined>;
  /** Returns the keys that are banned now; undefined if another process counts them. */
  bannedKeys(): readonly number[] | undefined;
  /** Ends a ban that began at least `agoMs` ago, and clears strikes from before. */
  unban(subject: Subject, agoMs: number): Awaitable<void>;
  close(): Promise<void>;
}

/** The servers on the database. */
export interface ServerRegister {
  /** Lists this server and those that have reported lately, the oldest first. */
  list(): Awaitable<readonly ServerState[]>;
  /** Lists the servers that were killed in the last hour, or have lost their network, and did not start again. */
  lost(): Awaitable<readonly ServerState[]>;
}

/** Stores the quotas of an in-process rate limiter, so that they survive a restart. */
export interface QuotaStore {
  load(): Iterable<readonly [Subject, Quota]>;
  /** Saves all of the changes or none; undefined deletes a subject. */
  save(changes: Iterable<readonly [Subject, Quota | undefined]>): void;
  find(subject: Subject): Quota | undefined;
  close(): void;
}

/** Whether a database can be used. Times are milliseconds. */
export type StateChange =
  { readonly state: "down"; readonly cause: unknown } | { readonly state: "up"; readonly afterMs: number };
