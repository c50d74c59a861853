import { Rejection } from "../../api/errors.ts";
import type { Actor } from "../../domain/audit.ts";
import { mayCall } from "../../domain/operators.ts";
import type { Request } from "../../http1/index.ts";
import { forbiddenRole, INVALID_CODE, INVALID_TOKEN, NO_PROVIDER } from "../errors.ts";
import type { Principal } from "../credentials.ts";
import type { BodyOf } from "../operations.ts";
import { SESSION_MS } from "../sign-in.ts";
import type { AdminHandlers, ListenerServices } from "./services.ts";

export function sessionHandlers(services: ListenerServices) {
  const { environment, servers, operators, operatorRates, authentication, providerSignIn, url } = services;
  const { version } = servers.self;
  const sessionOf = ({ id, name, role }: Principal) => {
    return { signedIn: true, operator: { id, name, role }, environment, version };
  };

  return {
    async createSession({ body }, { by: { actor }, request, responseHeaders }) {
      const { code } = body;
      if (Object.keys(body).length !== 1)
        return new Rejection("invalid_body", "One of token, code and provider is required.");
      const principal = await principalOf(body, request, actor);
      if (principal instanceof Rejection) return principal;
      if (!mayCall(principal.role, "viewer")) return forbiddenRole(principal, "viewer");
      const limited = await operatorRates.take(principal.id, request);
      if (limited) return limited;
      const created = await authentication.createSession(principal, actor);
      if (created === undefined) return code === undefined ? INVALID_TOKEN : INVALID_CODE;
      responseHeaders["Set-Cookie"] = cookie(created.cookie, SESSION_MS / 1_000, request);
      return { ...sessionOf(principal), secret: created.secret };
    },

    async beginSignIn(_input, { request }) {
      return providerSignIn?.begin(redirectUriOf(request)) ?? NO_PROVIDER;
    },

    async getSession(_input, { request }) {
      const identity = await authentication.authenticate(request);
      const provider = providerSignIn && { provider: providerSignIn.host };
      if (!(identity instanceof Rejection)) return { ...sessionOf(identity.principal), ...provider };
      const { code, message, retryAfterSeconds } = identity;
      return code === "too_many_attempts"
        ? new Rejection(code, message, retryAfterSeconds)
        : { signedIn: false, ...provider };
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

  async function principalOf(
    { token = "", code, provider }: BodyOf<"createSession">,
    request: Request,
    actor: Actor,
  ) {
    if (provider)
      return (
        providerSignIn?.finish({ ...provider, redirectUri: redirectUriOf(request) }, actor) ?? NO_PROVIDER
      );
    return code === undefined
      ? authentication.checkToken(token, actor)
      : authentication.takeCode(code, actor);
  }

  /** Where the provider sends the browser: the page that begins or ends the sign-in, behind whatever proxy. */
  function redirectUriOf({ headers }: Request): string {
    return `${headers.get("origin") ?? url}/`;
  }

  function cookie(value: string, maxAgeSeconds: number, { headers }: Request): string {
    // A proxy may terminate TLS. In that case the page in the browser has an origin with https.
    const isSecure = [url, headers.get("origin")].some((each) => each?.startsWith("https://"));
    const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
    return `${authentication.cookieName}=${value}; ${attributes}`;
  }
}
