import { boolean, type Infer, line, matching, object, oneOf } from "../../api/schema.ts";
import { operatorId, operatorName, role, subject } from "./operators.ts";
import { ok, tagged, time } from "./rows.ts";
import { environment, version } from "./servers.ts";

/**
 * The header with the second secret of a session. Every listener on this machine receives the cookie, because cookies
 * do not distinguish ports.
 */
export const SESSION_HEADER = "Petstore-Session";

const secretText = (description: string) =>
  matching(/^[\w-]{43}$/, "43 characters of base64url", description);

const signInSecrets = {
  state: line(100, "Comes back in the response"),
  nonce: line(100, "Comes back in the ID token"),
  codeVerifier: line(200, "Proves to the provider that the page has begun the sign-in (PKCE)"),
};

export const NewSession = object(
  "What to sign in with: one of the three",
  {},
  {
    token: line(200, "Token of an operator"),
    code: line(
      200,
      "Code of the URL that `petstore admin-url` prints, or of `createSignInCode`. It works once, for five minutes.",
    ),
    credential: oneOf(["cookie", "token"], {
      default: "cookie",
      description: "What the session is for: a browser gets a cookie, a program a token",
    }),
    provider: object("The response of the provider, and what `beginSignIn` has responded", {
      response: line(3_000, "The query with which the provider has sent the browser back"),
      ...signInSecrets,
    }),
  },
);

export const BegunSignIn = object("A sign-in with the provider", {
  url: line(8_000, "Where to send the browser. The provider sends it back to `/` of the listener."),
  ...signInSecrets,
});

const session = {
  operator: object("Who has signed in", { id: operatorId, name: operatorName, role }, { subject }),
  environment,
  version,
};
const signedIn = boolean("Whether the request has a session or a token");

export const Session = object(
  "`operator`, `environment` and `version` are only there if `signedIn` is true.",
  { signedIn },
  { ...session, provider: line(300, "Host of the provider with which people can sign in, if there is one") },
);
export type Session = Infer<typeof Session>;

export const CreatedSession = object(
  "A new session",
  {
    signedIn,
    ...session,
    secret: secretText(
      `For the header \`${SESSION_HEADER}\`, without which the cookie is worth nothing: every listener on the host gets it`,
    ),
  },
  { token: line(200, "Token of the session, for a program: `Authorization: Bearer <token>`") },
);

export const CreatedCode = object("A code that signs in once", {
  code: line(200, "The code. It is shown only this once."),
  expiresAt: time("When the code stops working"),
});

/** The operations that sign in and out. */
export const SESSION_OPERATIONS = tagged("Session", {
  createSession: {
    method: "POST",
    path: "/session",
    audited: "admin.signed-in",
    summary: "Sign in",
    description: `Trades a token, a code or the response of a provider for a session, for browsers: a cookie, and a secret that the page sends as the header \`${SESSION_HEADER}\`. It is valid for 12 hours, and no longer than the token. Programs send the token in every request instead: \`Authorization: Bearer <token>\`.`,
    body: NewSession,
    success: ok("The session; `Set-Cookie` has the cookie", CreatedSession),
    errors: [
      "invalid_token",
      "invalid_code",
      "rejected_sign_in",
      "sign_in_not_allowed",
      "no_provider",
      "provider_unavailable",
      "too_many_attempts",
      "too_many_requests",
      "forbidden_role",
    ],
    needsNoToken: true,
  },
  beginSignIn: {
    method: "POST",
    path: "/session/provider",
    audited: "nothing",
    summary: "Begin to sign in with the provider",
    description:
      "For browsers: responds with the URL of the provider (OpenID Connect), and with what the page keeps until the provider has sent the browser back. `createSession` takes both.",
    success: ok("Where to sign in", BegunSignIn),
    errors: ["no_provider", "provider_unavailable", "too_many_attempts"],
    needsNoToken: true,
  },
  createSignInCode: {
    method: "POST",
    path: "/session/code",
    audited: "nothing",
    summary: "Make a code for the command line",
    description:
      "Makes a code for `petstore login`, for an operator who signs in with a provider and has no token. It signs in no browser. An operator has five codes at most: a new one ends the oldest. Its session ends with the one that made it, 12 hours after they signed in at the latest.",
    success: ok("The code", CreatedCode),
    errors: ["no_provider"],
    makesCredential: true,
    role: "viewer",
  },
  getSession: {
    method: "GET",
    path: "/session",
    summary: "Show who is signed in",
    description: "Shows the operator of the session or of the token. Responds without either, too.",
    success: ok("The session", Session),
    errors: ["too_many_attempts"],
    needsNoToken: true,
  },
  deleteSession: {
    method: "DELETE",
    path: "/session",
    audited: "admin.signed-out",
    summary: "Sign out",
    description: "Ends the session of the cookie and the secret: on every server, within a second.",
    success: { status: 204, description: "The session is over" },
    needsNoToken: true,
  },
  deleteSessions: {
    method: "DELETE",
    path: "/sessions",
    audited: "admin.signed-out",
    summary: "Sign out everywhere",
    description:
      "Ends all sessions of the operator who sends it, and the codes that nobody has used: on every server, within a second. The token stays valid.",
    success: { status: 204, description: "The sessions are over" },
    role: "viewer",
  },
});
