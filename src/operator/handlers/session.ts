import { Rejection } from "../../api/errors.ts";
import { mayCall } from "../../domain/operators.ts";
import type { Request } from "../../http1/index.ts";
import { forbiddenRole, INVALID_CODE, INVALID_TOKEN } from "../errors.ts";
import type { Principal } from "../credentials.ts";
import { SESSION_MS } from "../sign-in.ts";
import type { AdminHandlers, ListenerServices } from "./services.ts";

export function sessionHandlers(services: ListenerServices) {
  const { environment, servers, operators, operatorRates, authentication, url } = services;
  const { version } = servers.self;
  const sessionOf = ({ id, name, role }: Principal) => {
    return { signedIn: true, operator: { id, name, role }, environment, version };
  };

  return {
    async createSession({ body: { token, code } }, { by: { actor }, request, responseHeaders }) {
      const given = token ?? code;
      if (given === undefined || (token !== undefined && code !== undefined))
        return new Rejection("invalid_body", "Either token or code is required.");
      const principal = await (token === undefined
        ? authentication.takeCode(given, actor)
        : authentication.checkToken(given, actor));
      if (principal instanceof Rejection) return principal;
      if (!mayCall(principal.role, "viewer")) return forbiddenRole(principal, "viewer");
      const limited = await operatorRates.take(principal.id, request);
      if (limited) return limited;
      const created = await authentication.createSession(principal, actor);
      if (created === undefined) return token === undefined ? INVALID_CODE : INVALID_TOKEN;
      responseHeaders["Set-Cookie"] = cookie(created.cookie, SESSION_MS / 1_000, request);
      return { ...sessionOf(principal), secret: created.secret };
    },

    async getSession(_input, { request }) {
      const identity = await authentication.authenticate(request);
      if (!(identity instanceof Rejection)) return sessionOf(identity.principal);
      const { code, message, retryAfterSeconds } = identity;
      return code === "too_many_attempts"
        ? new Rejection(code, message, retryAfterSeconds)
        : { signedIn: false };
    },

    async deleteSession(_input, { by: { actor }, request, responseHeaders }) {
      await authentication.endSession(request, actor);
      responseHeaders["Set-Cookie"] = cookie("", 0, request);
      return undefined;
    },

    async deleteSessions(_input, { by, principal }) {
      if (principal) await operators.deleteSessions(principal.id, by);
      authentication.changed();
      return undefined;
    },
  } satisfies Partial<AdminHandlers>;

  function cookie(value: string, maxAgeSeconds: number, { headers }: Request): string {
    // A proxy may terminate TLS. In that case the page in the browser has an origin with https.
    const isSecure = [url, headers.get("origin")].some((each) => each?.startsWith("https://"));
    const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
    return `${authentication.cookieName}=${value}; ${attributes}`;
  }
}
