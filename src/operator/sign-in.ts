import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { Budget } from "../api/budget.ts";
import type { Rejection } from "../api/errors.ts";
import type { Actor, NewAuditEntry } from "../domain/audit.ts";
import type { Clock } from "../domain/ports.ts";
import type { Request } from "../http1/index.ts";
import type { Log } from "../observe/log.ts";
import { INVALID_TOKEN, NOT_SIGNED_IN, tooManyAttempts } from "./errors.ts";

type Checked = Pick<Request, "method" | "headers">;

/**
 * Whether the name that the client looked up is one of this server's. A page elsewhere can point its own name to this
 * address (DNS rebinding) and would then have the same origin; its name gives it away.
 */
export function isOwnHost({ headers }: Pick<Request, "headers">, hostnames: readonly string[]): boolean {
  // HTTP/1.0 has no Host. Browsers do not send it.
  const host = headers.get("host");
  if (host === null) return true;
  const name = host.replace(/:\d*$/, "").toLowerCase();
  const address = name.replace(/^\[(.*)\]$/, "$1");
  if (isIP(address) !== 0 || name === "localhost") return true;
  return hostnames.includes(name);
}

/** What browsers send for a page of this origin, and for an address that a user typed. */
const OWN_SITES = new Set(["same-origin", "none"]);
const SAFE_METHODS = new Set(["GET", "HEAD"]);

/**
 * Whether a request can come from a page of another origin. Cookies do not tell ports apart, so pages on other ports of
 * the same machine send the session cookie too. Browsers send `Origin` with every request that may change something.
 */
export function isFromOtherOrigin({ method, headers }: Checked): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null && !OWN_SITES.has(site)) return true;
  const origin = headers.get("origin");
  if (origin !== null) return hostOf(origin) !== (headers.get("host")?.toLowerCase() ?? null);
  const usesCookie = headers.get("cookie") !== null && headers.get("authorization") === null;
  return usesCookie && site === null && !SAFE_METHODS.has(method);
}

/** A proxy that terminates TLS changes the scheme, not the host. `null` is the origin of a sandboxed page. */
function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase())?.[1];
}

/** `openssl rand -hex 20` and longer: too many possibilities to guess, however fast. */
const UNGUESSABLE_LENGTH = 40;

/** The secret that operators sign in with. */
export class AdminToken {
  readonly isUnguessable: boolean;
  readonly #hash: Buffer;
  readonly #sessionKey: Buffer;

  constructor(token: string) {
    this.isUnguessable = token.length >= UNGUESSABLE_LENGTH;
    this.#hash = hash("sha256", token, "buffer");
    this.#sessionKey = createHmac("sha256", token).update("petstore admin session").digest();
  }

  /** In constant time: the hashes have one length, and which of their bytes differ says nothing of the token. */
  matches(candidate: string): boolean {
    return timingSafeEqual(hash("sha256", candidate, "buffer"), this.#hash);
  }

  /** A signature that nobody can make without the token, in base64url. */
  sign(text: string): string {
    return createHmac("sha256", this.#sessionKey).update(text).digest("base64url");
  }
}

interface AuthenticationOptions {
  readonly token: string;
  readonly cookieName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Never rejects. */
  readonly recordAudit: (entry: NewAuditEntry) => Promise<void>;
}

type TokenRejection = Rejection<"invalid_token" | "too_many_attempts">;

const BEARER = /^bearer +(\S+)$/i;

/** Different wrong tokens, of all clients together. */
const MAX_WRONG_TOKENS = 20;
const WINDOW_MS = 60_000;
const MAX_REMEMBERED = 100;
/** Whoever can reach the listener can send wrong tokens: 20 an hour are 175,000 entries a year, about 20 MB. */
const REPORTS = { max: 20, perSecond: 20 / 3_600 };

export const SESSION_MS = 12 * 60 * 60 * 1000;
/** Sessions that were ended before their time. Of more, the oldest is forgotten. */
const MAX_ENDED = 10_000;
const SESSION = /^(\d{1,16})\.([\w-]{22})\.([\w-]{43})$/;
/** Each takes a signature of 4 µs. */
const MAX_COOKIES = 20;

/** Who sends a request: a browser with a session cookie, or a program with the token. */
export class AdminAuthentication {
  readonly #options: AuthenticationOptions;
  /** The fields of several `Cookie` headers are joined with a comma (RFC 9110, 5.3). */
  readonly #cookies: RegExp;
  #token: AdminToken;
  /** Hashes of wrong tokens, oldest first. */
  readonly #wrong = new Set<string>();
  #windowEndsAt = 0;
  #wrongInWindow = 0;
  readonly #reports: Budget;
  /** When the session would have ended anyway, by its identifier. */
  readonly #ended = new Map<string, number>();

  constructor(options: AuthenticationOptions) {
    this.#options = options;
    this.#cookies = new RegExp(`(?:^|[;,])\\s*${options.cookieName}=([^;,\\s]*)`, "g");
    this.#token = new AdminToken(options.token);
    this.#reports = new Budget({ ...REPORTS, now: () => options.clock.steadyNow() });
  }

  /** Ends all sessions. */
  replaceToken(token: string): void {
    this.#token = new AdminToken(token);
    this.#wrong.clear();
  }

  authenticate(request: Request): Actor | TokenRejection | Rejection<"not_signed_in"> {
    const authorization = request.headers.get("authorization");
    if (authorization !== null) {
      const actor: Actor = { kind: "admin API", name: request.remoteAddress };
      const [, token] = BEARER.exec(authorization) ?? [];
      return token === undefined ? INVALID_TOKEN : (this.checkToken(token, actor) ?? actor);
    }
    if (this.sessionOf(request) === undefined) return NOT_SIGNED_IN;
    return { kind: "console", name: request.remoteAddress };
  }

  /**
   * Undefined if the token is right. After 20 wrong ones within a minute, no token is compared until the minute is
   * over, so that a short token cannot be guessed. A token that is too long to be guessed is compared in any case:
   * nobody who can reach the listener can keep operators out. Sessions are not affected.
   *
   * A wrong token that is sent again is no new guess: a program that still has the old token after a rotation gets 401
   * and does not lock the operators out.
   */
  checkToken(candidate: string, actor: Actor): TokenRejection | undefined {
    const hashed = hash("sha256", candidate);
    if (this.#wrong.has(hashed)) return INVALID_TOKEN;
    const now = this.#options.clock.steadyNow();
    if (now >= this.#windowEndsAt) this.#wrongInWindow = 0;
    const isBlocked = this.#wrongInWindow >= MAX_WRONG_TOKENS;
    if ((!isBlocked || this.#token.isUnguessable) && this.#token.matches(candidate)) return undefined;
    this.#reportWrongToken(actor);
    if (isBlocked) return tooManyAttempts(Math.ceil((this.#windowEndsAt - now) / 1_000));
    if (this.#wrongInWindow++ === 0) this.#windowEndsAt = now + WINDOW_MS;
    const [oldest] = this.#wrong;
    if (this.#wrong.size >= MAX_REMEMBERED && oldest !== undefined) this.#wrong.delete(oldest);
    this.#wrong.add(hashed);
    return INVALID_TOKEN;
  }

  /** In the log and in the audit trail, which is kept for good: 20 an hour. The next has the number of the others. */
  #reportWrongToken(actor: Actor): void {
    const { clock, log, recordAudit } = this.#options;
    this.#reports.spend((unrecorded) => {
      log.event("admin.sign-in-failed", { address: actor.name, unrecorded });
      const after = unrecorded > 0 ? { after: { unrecordedBefore: unrecorded } } : {};
      void recordAudit({ at: clock.now(), actor, action: "admin.sign-in-failed", ...after });
    });
  }

  /**
   * The value of a new cookie: the time at which the session ends, a random identifier and a signature by the admin
   * token. So sessions need no storage, survive a restart, and end when the token is replaced.
   */
  createSession(): string {
    const signed = `${this.#options.clock.now() + SESSION_MS}.${randomBytes(16).toString("base64url")}`;
    return `${signed}.${this.#token.sign(signed)}`;
  }

  /**
   * The value of the session cookie, if it is valid. A page on another port of the same machine can add cookies of the
   * same name, which must not sign the operator out.
   */
  sessionOf({ headers }: Pick<Request, "headers">): string | undefined {
    const found = headers.get("cookie")?.matchAll(this.#cookies).take(MAX_COOKIES) ?? [];
    return Iterator.from(found)
      .map(([, value = ""]) => value)
      .find((value) => this.isValidSession(value));
  }

  isValidSession(value: string): boolean {
    const session = this.#parseSession(value);
    return session !== undefined && !this.#ended.has(session.id);
  }

  endSession(value: string): void {
    const session = this.#parseSession(value);
    if (session === undefined) return;
    if (this.#ended.size >= MAX_ENDED) this.#forgetEnded();
    this.#ended.set(session.id, session.endsAt);
  }

  /** Undefined if the session is over or was not made with this token. */
  #parseSession(value: string): { readonly id: string; readonly endsAt: number } | undefined {
    const [, endsAt = "", id = "", signature = ""] = SESSION.exec(value) ?? [];
    if (id === "") return undefined;
    const expected = Buffer.from(this.#token.sign(`${endsAt}.${id}`));
    const isSigned = timingSafeEqual(Buffer.from(signature), expected);
    return isSigned && this.#options.clock.now() < Number(endsAt)
      ? { id, endsAt: Number(endsAt) }
      : undefined;
  }

  #forgetEnded(): void {
    const now = this.#options.clock.now();
    for (const [id, endsAt] of this.#ended) if (endsAt <= now) this.#ended.delete(id);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size >= MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
  }
}
