import { Rejection } from "../../api/errors.ts";
import type { Actor } from "../../domain/audit.ts";
import { mayCall } from "../../domain/operators.ts";
import type { Request } from "../../http1/index.ts";
import { sha256 } from "../../runtime/hash.ts";
import { formatTime } from "../../text/formatting.ts";
import { CODE_FOR_COMMANDS, forbiddenRole, INVALID_TOKEN, NO_PROVIDER, NOT_OF_PROVIDER } from "../errors.ts";
import type { Principal } from "../sign-in/credential-rules.ts";
import type { BodyOf } from "../operations.ts";
import { SESSION_MS, sessionToken } from "../sign-in/admin-authentication.ts";
import { CODE_MS, generateCode, invalidCode, isForCommands } from "../sign-in/code.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

type SessionServices = Pick<
  Services,
  "environment" | "servers" | "operators" | "operatorRates" | "authentication" | "providerSignIn" | "url"
>;

export function sessionHandlers(services: SessionServices) {
  const { environment, servers, operators, operatorRates, authentication, providerSignIn, url } = services;
  const { version } = servers.self;
  const sessionOf = ({ id, name, role, subject }: Principal) => {
    const operator = { id, name, role, ...(subject !== undefined && { subject }) };
    return { signedIn: true, operator, environment, version };
  };

  return {
    async createSession({ body }, { by: { actor }, request, responseHeaders }) {
      const { credential = "cookie", ...given } = body;
      if (Object.keys(given).length !== 1)
        return new Rejection("invalid_body", "One of token, code and provider is required.");
      if (credential === "cookie" && isForCommands(given.code ?? "")) return CODE_FOR_COMMANDS;
      const principal = await principalOf(given, request, actor);
      if (principal instanceof Rejection) return principal;
      if (!mayCall(principal.role, "viewer")) return forbiddenRole(principal, "viewer");
      const limited = await operatorRates.take(principal.id, request);
      if (limited) return limited;
      const created = await authentication.createSession(principal, actor);
      if (created === undefined) return given.code === undefined ? INVALID_TOKEN : invalidCode(given.code);
      const session = { ...sessionOf(principal), secret: created.secret };
      if (credential === "token") return { ...session, token: sessionToken(created) };
      responseHeaders["Set-Cookie"] = cookie(created.cookie, SESSION_MS / 1_000, request);
      return session;
    },

    async beginSignIn(_input, { request }) {
      return providerSignIn?.begin(redirectUriOf(request), request) ?? NO_PROVIDER;
    },

    async createSignInCode(_input, { principal, by }) {
      if (principal?.subject === undefined) return NOT_OF_PROVIDER;
      const code = generateCode();
      const endsAt = by.at + CODE_MS;
      const { id: operatorId, name, session: madeIn } = principal;
      const made = { madeBy: `console (${name})`, madeIn };
      await operators.createCode({ codeHash: sha256(code), operatorId, endsAt, ...made }, by.at);
      authentication.changed();
      return { code, expiresAt: formatTime(endsAt) };
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
        providerSignIn?.finish({ ...provider, redirectUri: redirectUriOf(request) }, request, actor) ??
        NO_PROVIDER
      );
    return code === undefined
      ? authentication.checkToken(token, request, actor)
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
