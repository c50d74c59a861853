import { boolean, type Infer, line, matching, object, oneOf } from "../api/schema.ts";
import { time } from "./key-schemas.ts";
import { SESSION_HEADER } from "./operation-rows.ts";
import { operatorId, operatorName, role, subject } from "./operator-schemas.ts";
import { environment, version } from "./server-schemas.ts";

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
