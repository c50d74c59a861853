/* A real provider of OpenID Connect on loopback, and a front that changes its responses as a hostile one would. */

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import OidcProvider from "oidc-provider";
import { temporaryDirectory } from "./cleanup.ts";

type Json = Readonly<Record<string, unknown>>;

/** What the front does with a request: a response of its own, or undefined for that of the provider. */
export type Interference = (
  request: Request,
  forward: () => Promise<Response>,
) => Promise<Response> | undefined;

const NO_INTERFERENCE: Interference = () => undefined;
const CLIENT_ID = "petstore";
const CLIENT_SECRET = "secret-of-the-client-at-the-provider";
const RS256 = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  modulusLength: 2_048,
  publicExponent: new Uint8Array([1, 0, 1]),
} as const;

const newKey = () => crypto.subtle.generateKey(RS256, true, ["sign", "verify"]);
const encoded = (value: Json) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** The claims of a person, by the name with which they log in. */
const PEOPLE: Readonly<Record<string, Json>> = {
  ann: { email: "Ann@Example.com", email_verified: true, name: "Ann", groups: ["petstore-admins", "staff"] },
  bob: { email: "bob@example.com", email_verified: true, name: "Bob", groups: ["petstore-viewers"] },
  eve: { email: "eve@example.com", email_verified: true, name: "Eve", groups: ["sales", "staff"] },
  mallory: { email: "ann@example.com", email_verified: false, groups: ["petstore-admins"] },
};

export const ROLE_RULES = ["groups=petstore-admins:admin", "groups=petstore-viewers:viewer"];

export async function startIdentityProvider({ port = 0 } = {}) {
  const key = await newKey();
  const people = new Map(Object.entries(PEOPLE));
  let interference = NO_INTERFERENCE;
  const inner = createServer();
  await new Promise<void>((resolve) => inner.listen(0, "127.0.0.1", resolve));
  const address = inner.address();
  const innerPort = typeof address === "object" ? address?.port : undefined;
  const serve = (on: number) =>
    Bun.serve({
      port: on,
      hostname: "127.0.0.1",
      fetch: (request) => interference(request, () => forward(request)) ?? forward(request),
    });

  /** The provider makes its URLs of the host that it is asked for. */
  async function forward(request: Request): Promise<Response> {
    const { pathname, search, host } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.set("x-forwarded-host", host);
    headers.set("x-forwarded-proto", "http");
    const body = request.method === "POST" ? await request.text() : null;
    return fetch(`http://127.0.0.1:${innerPort}${pathname}${search}`, {
      method: request.method,
      headers,
      body,
      redirect: "manual",
      keepalive: false,
    });
  }

  let front = serve(port);
  const frontPort = front.port ?? 0;
  const issuer = `http://127.0.0.1:${frontPort}`;
  // Its public half is for verifying.
  const { key_ops: _uses, ...jwk } = await crypto.subtle.exportKey("jwk", key.privateKey);
  const provider = new OidcProvider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: ["http://127.0.0.1/"],
        response_types: ["code"],
        grant_types: ["authorization_code"],
      },
    ],
    pkce: { required: () => true },
    claims: { email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
    scopes: ["openid", "email", "profile", "groups"],
    jwks: { keys: [{ ...jwk, alg: "RS256", use: "sig" }] },
    cookies: { keys: ["a key for cookies"] },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
    features: { devInteractions: { enabled: true } },
    findAccount: (_context: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, ...people.get(accountId) }),
    }),
    // Nobody is asked for consent.
    async loadExistingGrant({ oidc }: GrantContext) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client.clientId,
        accountId: oidc.session.accountId,
      });
      grant.addOIDCScope("openid email profile groups");
      await grant.save();
      return grant;
    },
  });
  provider.proxy = true;
  // The port of a server is known when it has started.
  provider.Client.prototype.redirectUriAllowed = (uri) => /^http:\/\/127\.0\.0\.1:\d+\/$/.test(uri);
  inner.on("request", provider.callback());

  return {
    issuer,
    clientId: CLIENT_ID,
    secret: CLIENT_SECRET,
    /** The claims of people, which can change. */
    people,
    /** What the front does from now on. */
    interfere(next = NO_INTERFERENCE) {
      interference = next;
    },
    /** Signs an ID token with the key of the provider, or with one that it does not have. */
    async sign(claims: Json, { by = key.privateKey } = {}) {
      const input = `${encoded({ alg: "RS256" })}.${encoded(claims)}`;
      const signature = await crypto.subtle.sign(RS256.name, by, Buffer.from(input));
      return `${input}.${Buffer.from(signature).toString("base64url")}`;
    },
    newKey,
    /** Refuses connections until `comeBack`. */
    goAway: () => front.stop(true),
    comeBack() {
      front = serve(frontPort);
    },
    logIn,
    async [Symbol.asyncDispose]() {
      await front.stop(true);
      inner.closeAllConnections();
      inner.close();
    },
  };
}

export type IdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>;

interface GrantContext {
  readonly oidc: {
    readonly provider: {
      readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
    };
    readonly client: { readonly clientId: string };
    readonly session: { readonly accountId: string };
  };
}

/** Logs in as a browser does. Resolves to the query with which the provider sends the browser back. */
async function logIn(authorizationUrl: string, login: string): Promise<string> {
  const cookies = new Map<string, string>();
  const { origin } = new URL(authorizationUrl);
  let url = authorizationUrl;
  let form: Record<string, string> | undefined;
  for (let step = 0; step < 10; step++) {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    const text = await response.text();
    const action = /<form[^>]* action="([^"]+)"/.exec(text)?.[1];
    form = location === null ? { prompt: "login", login, password: "any" } : undefined;
    const next = location ?? action;
    if (next === undefined)
      throw new Error(`the provider responds ${response.status}: ${text.slice(0, 500)}`);
    url = new URL(next, url).href;
    if (new URL(url).origin !== origin) return new URL(url).search;
  }
  throw new Error("the provider does not send the browser back");
}

/** The flags of a server with this provider. */
export function providerFlags({ issuer, clientId, secret }: IdentityProvider): readonly string[] {
  const file = join(temporaryDirectory("client-secret"), "secret");
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  const roles = ROLE_RULES.flatMap((rule) => ["--oidc-role", rule]);
  const client = ["--oidc-client-id", clientId, "--oidc-client-secret-file", file];
  return ["--oidc-issuer", issuer, ...client, ...roles];
}
