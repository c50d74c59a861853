import { isRejection, rejection } from "../../api/errors.ts";
import type { NewAuditEntry } from "../../domain/audit.ts";
import type { Clock } from "../../domain/ports.ts";
import type { Request } from "../../http1/index.ts";
import { type AdminHandlers, WithHeaders } from "../admin-app.ts";
import { type AdminAuthentication, SESSION_MS } from "../sign-in.ts";
import type { ServerSecret } from "../server-secret.ts";
import type { ServerFacts } from "./server.ts";

interface SessionHandlerOptions {
  readonly facts: Pick<ServerFacts, "environment" | "version">;
  readonly authentication: AdminAuthentication;
  readonly serverSecret: ServerSecret;
  /** Of the listener. */
  readonly url: string;
  readonly cookieName: string;
  /** Whether browsers reach the listener over TLS only. */
  readonly isTls: boolean;
  readonly clock: Pick<Clock, "now">;
  /** Rejects while the database is unavailable: a sign-in without an entry does not happen. */
  readonly recordAudit: (entry: NewAuditEntry) => Promise<void>;
  /** Never rejects: a session can be ended at any time. */
  readonly recordIfPossible: (entry: NewAuditEntry) => Promise<void>;
}

export function sessionHandlers(options: SessionHandlerOptions) {
  const { authentication, cookieName, isTls, clock, recordAudit, recordIfPossible } = options;
  const { environment, version } = options.facts;
  const signedIn = { signedIn: true, environment, version };

  return {
    async createSession({ body: { token } }, { actor, request }) {
      const rejection = authentication.checkToken(token, actor);
      if (rejection !== undefined) return rejection;
      await recordAudit({ at: clock.now(), actor, action: "admin.signed-in" });
      return new WithHeaders(signedIn, {
        "Set-Cookie": cookie(authentication.createSession(), SESSION_MS / 1_000, isSecure(request)),
      });
    },

    getSession: (_input, { request }) =>
      isRejection(authentication.authenticate(request)) ? { signedIn: false } : signedIn,

    async deleteSession(_input, { actor, request }) {
      const session = authentication.sessionOf(request);
      if (session !== undefined) {
        authentication.endSession(session);
        await recordIfPossible({ at: clock.now(), actor, action: "admin.signed-out" });
      }
      return new WithHeaders(undefined, { "Set-Cookie": cookie("", 0, isSecure(request)) });
    },

    proveServer: ({ query: { nonce } }) =>
      nonce === undefined
        ? rejection("invalid_parameter", "nonce is required.")
        : { proof: options.serverSecret.proofOf(nonce, options.url) },
  } satisfies Partial<AdminHandlers>;

  /** Also behind a proxy that terminates TLS: then the page of the browser has an origin with https. */
  function isSecure({ headers }: Pick<Request, "headers">): boolean {
    return isTls || headers.get("origin")?.startsWith("https://") === true;
  }

  function cookie(value: string, maxAgeSeconds: number, secure: boolean): string {
    const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
    return `${cookieName}=${value}; ${attributes}`;
  }
}
