import { createHmac, randomBytes } from "node:crypto";
import { Budget } from "../api/budget.ts";
import { Rejection } from "../api/errors.ts";
import { sha256 } from "../api/hash.ts";
import type { Actor } from "../domain/audit.ts";
import {
  type Operator,
  type OperatorAccess,
  type OperatorSession,
  type Role,
  TOKEN_OPERATOR,
} from "../domain/operators.ts";
import type { AuditStore, Clock, OperatorStore } from "../domain/ports.ts";
import { HOUR_MS } from "../domain/usage-history.ts";
import type { Request } from "../http1/index.ts";
import type { Log } from "../observe/log.ts";
import { AccessReader } from "./access.ts";
import { INVALID_CODE, INVALID_TOKEN, NOT_SIGNED_IN, tooManyAttempts } from "./errors.ts";
import { isSameSecret } from "./server-secret.ts";
import { CODE_MS } from "./token.ts";

/** Who has signed in or sent a token. */
export interface Principal {
  /** Null for the operator whose token is a setting. */
  readonly id: number | null;
  readonly name: string;
  readonly role: Role;
  /** Of an operator in the database, the hash of their token when they were let in. */
  readonly tokenHash?: string;
  /** The hash of the cookie, of a browser. */
  readonly session?: string;
}

/** A principal, and how the audit trail names them. */
export interface Identity {
  readonly principal: Principal;
  readonly actor: Actor;
}

interface AuthenticationOptions {
  readonly token: string | undefined;
  readonly operators: OperatorStore;
  readonly cookieName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: Pick<AuditStore, "recordAudit">;
}

type TokenRejection = Rejection<"invalid_token" | "too_many_attempts">;

const BEARER = /^bearer +(\S+)$/i;

/** `openssl rand -hex 20` and longer: too many possibilities to guess, however fast. */
const UNGUESSABLE_LENGTH = 40;
/** Different wrong tokens, of all clients together. */
const MAX_WRONG_TOKENS = 20;
const WINDOW_MS = 60_000;
const MAX_REMEMBERED = 100;
/** Whoever can reach the listener can send wrong tokens: 20 an hour are 175,000 entries a year, about 20 MB. */
const REPORTS = { max: 20, perSecond: 20 / 3_600 };

export const SESSION_MS = 12 * HOUR_MS;
/** Of pages, beside the cookie, which every listener on this machine gets: cookies do not tell ports apart. */
const SESSION_HEADER = "petstore-session";
/** A page on another port can add cookies that come first: browsers keep at most 180 for a host. */
const MAX_COOKIES = 200;
const USE_EVERY_MS = HOUR_MS;

const TOKEN_PRINCIPAL = { id: null, name: TOKEN_OPERATOR, role: "admin" } as const satisfies Principal;

/** 256 random bits in base64url. */
const newSecret = (): string => randomBytes(32).toString("base64url");

/** Who sends a request: a browser with a session, or a program with a token. */
export class AdminAuthentication {
  readonly #options: AuthenticationOptions;
  readonly cookieName: string;
  /** The fields of several `Cookie` headers are joined with a comma (RFC 9110, 5.3). */
  readonly #cookies: RegExp;
  readonly #access: AccessReader;
  #token: string | undefined;
  /** From this time on `#token` is the token; codes of the one before end with it. */
  #tokenSince: number;
  /** Hashes of wrong tokens, oldest first. */
  readonly #wrong = new Set<string>();
  #windowEndsAt = 0;
  #wrongInWindow = 0;
  readonly #reports: Budget;
  /** When the last use of an operator was recorded, by their identifier. */
  readonly #used = new Map<number, number>();

  constructor(options: AuthenticationOptions) {
    this.#options = options;
    this.cookieName = options.cookieName;
    this.#cookies = new RegExp(`(?:^|[;,])\\s*${options.cookieName}=([^;,\\s]*)`, "g");
    this.#access = new AccessReader(options.operators, options.clock);
    this.#token = options.token;
    this.#tokenSince = options.clock.now();
    this.#reports = new Budget({ ...REPORTS, now: () => options.clock.steadyNow() });
  }

  /** Of the setting. Ends its sessions and its codes. */
  replaceToken(token: string): void {
    this.#token = token;
    this.#tokenSince = this.#options.clock.now();
    this.#wrong.clear();
  }

  /** Applies a change of operators on this server, which would see it within a second anyway. */
  changed(): void {
    this.#access.changed();
  }

  /** Nothing of what the database said before is used: a token that was replaced may be valid again. */
  forget(): void {
    this.changed();
    this.#wrong.clear();
  }

  async authenticate(request: Request): Promise<Identity | TokenRejection | Rejection<"not_signed_in">> {
    const authorization = request.headers.get("authorization");
    const kind = authorization === null ? "console" : "admin API";
    const actor: Actor = { kind, name: request.remoteAddress };
    const [, token] = BEARER.exec(authorization ?? "") ?? [];
    const principal =
      authorization === null
        ? await this.#principalOfSession(request)
        : token === undefined
          ? INVALID_TOKEN
          : await this.checkToken(token, actor);
    if (principal instanceof Rejection) return principal;
    return { principal, actor: { ...actor, operator: principal.name } };
  }

  /**
   * After 20 wrong tokens within a minute, no token is compared until the minute is over, so that a short token cannot
   * be guessed. A token that is too long to be guessed is compared in any case: nobody who can reach the listener can
   * keep operators out. Sessions are not affected.
   *
   * A wrong token that is sent again is no new guess: a program that still has the old token after a rotation gets 401
   * and does not lock the operators out.
   */
  async checkToken(candidate: string, actor: Actor): Promise<Principal | TokenRejection> {
    const hashed = sha256(candidate);
    if (this.#wrong.has(hashed)) return INVALID_TOKEN;
    const isGuessable = candidate.length < UNGUESSABLE_LENGTH;
    const wait = this.#blockedSeconds();
    // Counted before it is compared: guesses that are sent together are no more than 20 either.
    if (isGuessable && wait === undefined) this.#countWrong();
    const isCompared = !isGuessable || wait === undefined;
    const principal = isCompared ? await this.#holderOfToken(hashed) : undefined;
    if (principal === "unknown") return tooManyAttempts(1);
    if (principal !== undefined) {
      if (isGuessable) this.#wrongInWindow--;
      return principal;
    }
    this.#reportFailure(actor);
    if (wait !== undefined) return tooManyAttempts(wait);
    if (!isGuessable) this.#countWrong();
    const [oldest] = this.#wrong;
    if (this.#wrong.size >= MAX_REMEMBERED && oldest !== undefined) this.#wrong.delete(oldest);
    this.#wrong.add(hashed);
    return INVALID_TOKEN;
  }

  /** The token of a setting needs no database. */
  #holderOfToken(hashed: string): Principal | Promise<Principal | undefined | "unknown"> {
    if (this.#token !== undefined && isSameSecret(hashed, sha256(this.#token))) return TOKEN_PRINCIPAL;
    return this.#access.find(({ tokens }) => {
      const operator = tokens.get(hashed);
      return operator && this.#principalOf(operator, hashed);
    });
  }

  /** Until tokens are compared again; undefined if they are. */
  #blockedSeconds(): number | undefined {
    const leftMs = this.#windowEndsAt - this.#options.clock.steadyNow();
    if (leftMs <= 0) this.#wrongInWindow = 0;
    return this.#wrongInWindow >= MAX_WRONG_TOKENS ? Math.ceil(leftMs / 1_000) : undefined;
  }

  #countWrong(): void {
    if (this.#wrongInWindow++ === 0) this.#windowEndsAt = this.#options.clock.steadyNow() + WINDOW_MS;
  }

  /** A code works once. */
  async takeCode(
    code: string,
    actor: Actor,
  ): Promise<Principal | Rejection<"invalid_code" | "too_many_attempts">> {
    const codeHash = sha256(code);
    const holder = await this.#access.find((access) => {
      const code = access.codes.get(codeHash);
      return code && this.#operatorIn(access, code.operatorId);
    });
    if (holder === "unknown") return tooManyAttempts(1);
    const taken = holder && (await this.#options.operators.takeCode(codeHash));
    const isOutdated = taken?.operatorId === null && taken.endsAt - CODE_MS < this.#tokenSince;
    if (taken && !isOutdated && this.#options.clock.now() < taken.endsAt) return holder;
    this.#reportFailure(actor);
    return INVALID_CODE;
  }

  /** In the log and in the audit trail, which is kept for good: 20 an hour. The next has the number of the others. */
  #reportFailure(actor: Actor): void {
    const { clock, log, audit } = this.#options;
    const action = "admin.sign-in-failed";
    this.#reports.spend((unrecorded) => {
      log.event(action, { address: actor.name, unrecorded });
      const after = unrecorded > 0 ? { after: { unrecordedBefore: unrecorded } } : {};
      const entry = { at: clock.now(), actor, action, ...after } as const;
      void audit.recordAudit(entry).catch((error) => log.event("audit.write-failed", { action, error }));
    });
  }

  /**
   * The value of a new cookie, and the secret that the page keeps; undefined if the token was replaced just now, which
   * another server may have done. Rejects while the database is unavailable.
   */
  async createSession(
    { id, name, tokenHash }: Principal,
    actor: Actor,
  ): Promise<{ cookie: string; secret: string } | undefined> {
    const { clock, operators } = this.#options;
    const [cookie, secret] = [newSecret(), newSecret()];
    const createdAt = clock.now();
    const session = {
      cookieHash: sha256(cookie),
      secretHash: sha256(secret),
      operatorId: id,
      tokenCheck: id === null ? this.#tokenCheck(sha256(cookie)) : null,
      createdAt,
      endsAt: createdAt + SESSION_MS,
    };
    const entry = { at: createdAt, actor: { ...actor, operator: name }, action: "admin.signed-in" } as const;
    const isCreated = await operators.createSession(session, entry, tokenHash);
    this.changed();
    return isCreated ? { cookie, secret } : undefined;
  }

  /** Of the cookie and the secret of a request; nothing if there is none. */
  async endSession(request: Request, actor: Actor): Promise<void> {
    const { clock, operators } = this.#options;
    const principal = await this.#principalOfSession(request);
    if (principal instanceof Rejection || principal.session === undefined) return;
    const by = { at: clock.now(), actor: { ...actor, operator: principal.name } };
    await operators.deleteSession(principal.session, { ...by, action: "admin.signed-out" });
    this.changed();
  }

  /**
   * Cookies of the same name that a page on another port has added must not sign the operator out. The secret tells
   * which is the right one.
   */
  async #principalOfSession({
    headers,
  }: Pick<Request, "headers">): Promise<Principal | Rejection<"not_signed_in" | "too_many_attempts">> {
    const secret = headers.get(SESSION_HEADER);
    const found = headers.get("cookie")?.matchAll(this.#cookies).take(MAX_COOKIES);
    if (secret === null || found === undefined) return NOT_SIGNED_IN;
    const cookies = [...found].map(([, value = ""]) => sha256(value));
    const secretHash = sha256(secret);
    const now = this.#options.clock.now();
    const principal = await this.#access.find((access) => {
      const sessions = cookies.flatMap((hash) => access.sessions.get(hash) ?? []);
      const session = sessions.find((each) => isSameSecret(each.secretHash, secretHash) && now < each.endsAt);
      return session && this.#holderOf(session, access);
    });
    if (principal === "unknown") return tooManyAttempts(1);
    return principal ?? NOT_SIGNED_IN;
  }

  #holderOf(session: OperatorSession, access: OperatorAccess): Principal | undefined {
    const { operatorId, cookieHash, tokenCheck } = session;
    if (operatorId === null && tokenCheck !== this.#tokenCheck(cookieHash)) return undefined;
    const operator = this.#operatorIn(access, operatorId);
    return operator && { ...operator, session: cookieHash };
  }

  /** Undefined if they are revoked, or if there is no such setting any more. */
  #operatorIn({ tokens }: OperatorAccess, id: number | null): Principal | undefined {
    if (id === null) return this.#token === undefined ? undefined : TOKEN_PRINCIPAL;
    const [hash, operator] = tokens.entries().find(([, each]) => each.id === id) ?? [];
    return hash !== undefined && operator ? this.#principalOf(operator, hash) : undefined;
  }

  /** Sessions of the token of a setting end when it is replaced. */
  #tokenCheck(cookieHash: string): string {
    return createHmac("sha256", this.#token ?? "")
      .update(cookieHash)
      .digest("base64url");
  }

  #principalOf({ id, name, role, lastUsedAt = 0 }: Operator, tokenHash: string): Principal {
    const { clock, operators } = this.#options;
    const now = clock.now();
    if (now - Math.max(lastUsedAt, this.#used.get(id) ?? 0) >= USE_EVERY_MS) {
      this.#used.set(id, now);
      // It is tried again in an hour.
      void operators.recordUse(id, now).catch(() => {});
    }
    return { id, name, role, tokenHash };
  }
}
