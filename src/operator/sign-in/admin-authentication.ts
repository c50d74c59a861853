import { randomBytes, timingSafeEqual } from "node:crypto";
import { Rejection } from "../../api/errors.ts";
import { sha256 } from "../../runtime/hash.ts";
import type { Actor, AuditedValues } from "../../domain/audit.ts";
import type { OperatorAccess } from "../../domain/operators.ts";
import { SECRET_PREFIX } from "../../domain/secrets.ts";
import type { AuditStore } from "../../domain/ports/audit.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { HOUR_MS } from "../../text/time-units.ts";
import type { Request } from "../../http1/index.ts";
import type { Log } from "../../observe/log.ts";
import { AccessReader } from "./access.ts";
import { type FoundCredential, type Principal, principalWith } from "./credential-rules.ts";
import { invalidCode } from "./code.ts";
import { INVALID_TOKEN, LOGIN_ENDED, NOT_SIGNED_IN } from "../errors.ts";
import { FailedSignIns } from "./failed-sign-ins.ts";
import { GuessLimiter, type TokenRejection } from "./guess-limiter.ts";
import { SESSION_HEADER } from "../operations/sessions.ts";

/** Who signs in. */
export type NewSessionPrincipal = Principal & {
  /** How, for the audit trail: who made the code, or what the provider says. */
  readonly details?: AuditedValues;
  /** The session in which the code was made. */
  readonly madeIn?: string | undefined;
};

/** A principal, and the actor that the audit trail names. */
export interface Identity {
  readonly principal: Principal;
  readonly actor: Actor;
}

interface AuthenticationOptions {
  readonly operators: OperatorStore;
  readonly cookieName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: Pick<AuditStore, "recordAudit">;
}

const BEARER = /^bearer +(\S+)$/i;
/** A session of a program: its cookie and its secret in one token. */
const SESSION_TOKEN = new RegExp(`^${SECRET_PREFIX.session}([\\w-]{43})\\.([\\w-]{43})$`);

export function sessionToken({ cookie, secret }: { readonly cookie: string; readonly secret: string }) {
  return `${SECRET_PREFIX.session}${cookie}.${secret}`;
}

export const SESSION_MS = 12 * HOUR_MS;
/**
 * The number of cookies that are read. A page on another port can add cookies that come first; browsers keep at most
 * 180 for a host.
 */
const MAX_COOKIES = 200;
/** How often the use of an operator is recorded. */
const RECORD_USE_EVERY_MS = HOUR_MS;

/** Makes a secret: 256 random bits in base64url. */
const newSecret = (): string => randomBytes(32).toString("base64url");

/** Authenticates requests: of a browser with a session, or of a program with a token. */
export class AdminAuthentication {
  readonly #options: AuthenticationOptions;
  readonly cookieName: string;
  /** Matches the cookies. The fields of several `Cookie` headers are joined with a comma (RFC 9110, section 5.3). */
  readonly #cookies: RegExp;
  readonly #access: AccessReader;
  readonly #guesses: GuessLimiter;
  readonly #failures: FailedSignIns;
  /** The tokens that are being compared, by their hashes: the same one is compared and counted once. */
  #checks = new Map<string, Promise<Principal | TokenRejection>>();
  /** When the last use by each operator was recorded, by identifier. */
  readonly #used = new Map<number, number>();

  constructor(options: AuthenticationOptions) {
    this.#options = options;
    this.cookieName = options.cookieName;
    this.#cookies = new RegExp(`(?:^|[;,])\\s*${options.cookieName}=([^;,\\s]*)`, "g");
    this.#access = new AccessReader(options.operators, options.clock);
    this.#guesses = new GuessLimiter(options.clock);
    this.#failures = new FailedSignIns(options);
  }

  /** Applies a change of operators to this server at once. It would follow the change within a second anyway. */
  changed(): void {
    this.#access.changed();
    this.#checks = new Map();
  }

  async authenticate(request: Request): Promise<Identity | TokenRejection | Rejection<"not_signed_in">> {
    const authorization = request.headers.get("authorization");
    const kind = authorization === null ? "console" : "admin API";
    const actor: Actor = { kind, name: request.remoteAddress };
    const [, token] = BEARER.exec(authorization ?? "") ?? [];
    const principal =
      authorization === null || SESSION_TOKEN.test(token ?? "")
        ? await this.#principalOfSession(request)
        : token === undefined
          ? INVALID_TOKEN
          : await this.checkToken(token, request, actor);
    if (principal instanceof Rejection) return principal;
    return { principal, actor: { ...actor, operator: principal.name } };
  }

  /** Authenticates a token. A token that was wrong may be right now, because a server has read it from a setting. */
  async checkToken(
    candidate: string,
    { clientAddress: address }: Pick<Request, "clientAddress">,
    actor: Actor,
  ): Promise<Principal | TokenRejection> {
    const hash = sha256(candidate);
    const compare = (access: OperatorAccess) => this.#principalWith(access, { tokenHash: hash });
    if (this.#guesses.wasWrong(hash)) return (await this.#access.findKnown(compare)) ?? INVALID_TOKEN;
    const checks = this.#checks;
    const check =
      checks.get(hash) ??
      this.#guesses.limit(candidate, {
        address,
        find: (each) => this.#access.find(each),
        compare,
        onWrong: () => this.#failures.report(actor),
      });
    checks.set(hash, check);
    return check.finally(() => checks.delete(hash));
  }

  /** Authenticates a code, which works once. */
  async takeCode(
    code: string,
    actor: Actor,
  ): Promise<NewSessionPrincipal | Rejection<"invalid_code" | "invalid_token">> {
    const codeHash = sha256(code);
    const holder = await this.#access.find((access) => {
      const code = access.codes.get(codeHash);
      return code && this.#principalWith(access, code);
    });
    if (holder instanceof Rejection) return holder;
    const taken = holder && (await this.#options.operators.takeCode(codeHash));
    if (taken) {
      const { madeBy, madeIn } = taken;
      return { ...holder, madeIn, ...(madeBy !== undefined && { details: { codeMadeBy: madeBy } }) };
    }
    this.#failures.report(actor);
    return invalidCode(code);
  }

  /**
   * Creates a session, which works as long as its token. Resolves to the value of its cookie and the secret that the
   * page keeps, or to undefined if the token has just stopped working, perhaps on another server. Rejects while the
   * database is unavailable.
   */
  async createSession(
    { id, name, tokenHash, madeIn, details }: NewSessionPrincipal,
    actor: Actor,
  ): Promise<{ cookie: string; secret: string } | undefined> {
    const { clock, operators } = this.#options;
    const [cookie, secret] = [newSecret(), newSecret()];
    const createdAt = clock.now();
    const session = {
      cookieHash: sha256(cookie),
      secretHash: sha256(secret),
      operatorId: id,
      tokenHash,
      madeIn,
      createdAt,
      endsAt: createdAt + SESSION_MS,
    };
    const action = "admin.signed-in";
    const by = { at: createdAt, actor: { ...actor, operator: name } };
    const entry = { ...by, action, ...(details && { after: details }) } as const;
    const isCreated = await operators.createSession(session, entry);
    this.changed();
    return isCreated ? { cookie, secret } : undefined;
  }

  /** Ends the session of a request, if it has one. */
  async endSession(request: Request, actor: Actor): Promise<void> {
    const { clock, operators } = this.#options;
    const principal = await this.#principalOfSession(request);
    if (principal instanceof Rejection || principal.session === undefined) return;
    const by = { at: clock.now(), actor: { ...actor, operator: principal.name } };
    await operators.deleteSession(principal.session, { ...by, action: "admin.signed-out" });
    this.changed();
  }

  /**
   * Finds the session of a request. A page on another port may have added cookies of the same name, which must not sign
   * the operator out, so the secret determines the right one.
   */
  async #principalOfSession({
    headers,
  }: Pick<Request, "headers">): Promise<Principal | TokenRejection | Rejection<"not_signed_in">> {
    const given = this.#sessionIn(headers);
    if (given === undefined) return NOT_SIGNED_IN;
    const isOfProgram = headers.get("authorization") !== null;
    const cookies = given.cookies.map((cookie) => sha256(cookie));
    const secretHash = sha256(given.secret);
    const principal = await this.#access.find((access) => {
      const sessions = cookies.flatMap((hash) => access.sessions.get(hash) ?? []);
      const session = sessions.find((each) => isSameSecret(each.secretHash, secretHash));
      const operator = session && this.#principalWith(access, session);
      return operator instanceof Rejection
        ? operator
        : operator && { ...operator, session: session.cookieHash };
    });
    return principal ?? (isOfProgram ? LOGIN_ENDED : NOT_SIGNED_IN);
  }

  /** Returns what identifies a session: of a program, or of a page. */
  #sessionIn(headers: Request["headers"]) {
    const [, token = ""] = BEARER.exec(headers.get("authorization") ?? "") ?? [];
    const [, cookie, secretOfToken] = SESSION_TOKEN.exec(token) ?? [];
    if (cookie !== undefined && secretOfToken !== undefined)
      return { cookies: [cookie], secret: secretOfToken };
    const secret = headers.get(SESSION_HEADER.toLowerCase());
    const found = headers.get("cookie")?.matchAll(this.#cookies).take(MAX_COOKIES);
    if (secret === null || found === undefined) return undefined;
    return { cookies: [...found].map(([, value = ""]) => value), secret };
  }

  #principalWith(access: OperatorAccess, credential: FoundCredential) {
    const { clock, operators } = this.#options;
    const now = clock.now();
    const principal = principalWith(access, credential, now);
    if (principal === undefined || principal instanceof Rejection) return principal;
    const { id, tokenHash } = principal;
    const { lastUsedAt = 0 } = access.tokens.get(tokenHash)?.operator ?? {};
    if (now - Math.max(lastUsedAt, this.#used.get(id) ?? 0) >= RECORD_USE_EVERY_MS) {
      this.#used.set(id, now);
      // If this fails, it is tried again in an hour.
      void operators.recordUse(id, now).catch(() => {});
    }
    return principal;
  }
}

/** Compares the hashes of two secrets in constant time. */
function isSameSecret(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}
