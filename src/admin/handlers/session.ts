import type { NewAuditEntry } from "../../domain/audit.ts";
import type { Clock } from "../../domain/ports.ts";
import type { AdminAuthentication } from "../authentication.ts";
import { type HandlersOf, isAdminRejection, WithHeaders } from "../handler.ts";
import { SESSION_MS, type Sessions } from "../sessions.ts";
import type { ServerFacts } from "./server.ts";

export interface SessionHandlerOptions {
  readonly facts: Pick<ServerFacts, "environment" | "version">;
  readonly authentication: AdminAuthentication;
  readonly sessions: Sessions;
  readonly cookieName: string;
  /** Whether browsers reach the listener over TLS only. */
  readonly isTls: boolean;
  readonly clock: Pick<Clock, "now">;
  /** Never rejects: operators can sign in while the database is unavailable. */
  readonly recordAudit: (entry: NewAuditEntry) => Promise<void>;
}

export function sessionHandlers(
  options: SessionHandlerOptions,
): HandlersOf<"createSession" | "getSession" | "deleteSession"> {
  const { authentication, sessions, cookieName, isTls, clock, recordAudit } = options;
  const { environment, version } = options.facts;
  const signedIn = { signedIn: true, environment, version };

  return {
    async createSession({ body: { token } }, { actor }) {
      const rejection = authentication.checkToken(token, actor);
      if (rejection !== undefined) return rejection;
      await recordAudit({ at: clock.now(), actor, action: "admin.signed-in" });
      return new WithHeaders(signedIn, { "Set-Cookie": cookie(sessions.create(), SESSION_MS / 1_000) });
    },

    getSession: (_input, { request }) =>
      isAdminRejection(authentication.authenticate(request)) ? { signedIn: false } : signedIn,

    async deleteSession(_input, { actor, request }) {
      const session = authentication.sessionOf(request);
      if (session !== undefined && sessions.isValid(session)) {
        sessions.end(session);
        await recordAudit({ at: clock.now(), actor, action: "admin.signed-out" });
      }
      return new WithHeaders(undefined, { "Set-Cookie": cookie("", 0) });
    },
  };

  function cookie(value: string, maxAgeSeconds: number): string {
    const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isTls ? "; Secure" : ""}`;
    return `${cookieName}=${value}; ${attributes}`;
  }
}
