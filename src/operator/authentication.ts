import type { Actor } from "../domain/audit.ts";
import type { Request } from "../http1/index.ts";
import type { Rejection } from "../api/errors.ts";
import { INVALID_TOKEN, NOT_SIGNED_IN, tooManyAttempts } from "./rejections.ts";
import type { Sessions } from "./sessions.ts";
import type { TokenAttempts } from "./token-attempts.ts";

export interface AuthenticationOptions {
  readonly sessions: Sessions;
  readonly attempts: TokenAttempts;
  readonly cookieName: string;
  /** Called for each new wrong token, and for each that is not compared. */
  readonly onWrongToken: (actor: Actor) => void;
}

export interface BlockedRejection extends Rejection<"too_many_attempts"> {
  readonly retryAfterSeconds: number;
}

export type TokenRejection = Rejection<"invalid_token"> | BlockedRejection;
export type SignInRejection = Rejection<"not_signed_in"> | TokenRejection;

/** Each takes a signature of 4 µs. */
const MAX_COOKIES = 20;
const BEARER = /^bearer +(\S+)$/i;

/** Who sends a request: a browser with a session cookie, or a program with the token. */
export class AdminAuthentication {
  constructor(private readonly options: AuthenticationOptions) {}

  authenticate(request: Request): Actor | SignInRejection {
    const authorization = request.headers.get("authorization");
    if (authorization !== null) {
      const actor: Actor = { kind: "admin API", name: request.remoteAddress };
      const [, token] = BEARER.exec(authorization) ?? [];
      return token === undefined ? INVALID_TOKEN : (this.checkToken(token, actor) ?? actor);
    }
    if (this.sessionOf(request) === undefined) return NOT_SIGNED_IN;
    return { kind: "console", name: request.remoteAddress };
  }

  /** Undefined if the token is right. */
  checkToken(token: string, actor: Actor): TokenRejection | undefined {
    const check = this.options.attempts.check(token);
    if (check.outcome === "right") return undefined;
    if (check.outcome === "blocked" || check.isNew) this.options.onWrongToken(actor);
    return check.outcome === "blocked" ? tooManyAttempts(check.retryAfterSeconds) : INVALID_TOKEN;
  }

  /**
   * The value of the session cookie, if it is valid. A page on another port of the same machine can add cookies of the
   * same name, which must not sign the operator out.
   */
  sessionOf({ headers }: Pick<Request, "headers">): string | undefined {
    // The fields of several `Cookie` headers are joined with a comma (RFC 9110, 5.3).
    const pairs = headers.get("cookie")?.split(/[;,]/) ?? [];
    const start = `${this.options.cookieName}=`;
    return pairs
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(start))
      .slice(0, MAX_COOKIES)
      .map((pair) => pair.slice(start.length))
      .find((value) => this.options.sessions.isValid(value));
  }
}
