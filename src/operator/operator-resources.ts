import {
  array,
  boolean,
  type Infer,
  integer,
  line,
  matching,
  nullable,
  object,
  oneOf,
} from "../api/schema.ts";
import { OPERATOR_NAME, OPERATOR_NAME_EXPECTED, ROLES } from "../domain/operators.ts";
import { time } from "./key-resources.ts";
import { environment, version } from "./resources.ts";

/** Of operators, and of how they sign in. */

export const RoleSchema = oneOf(ROLES, "What the operator may do; each role may do what those before it may");
const operatorId = integer({
  min: 1,
  max: Number.MAX_SAFE_INTEGER,
  description: "Identifier of the operator",
});
const name = line(64, { description: "Name of the operator", examples: ["ann"] });
const secretText = (description: string) =>
  matching(/^[\w-]{43}$/, "43 characters of base64url", description);

export const OperatorSchema = object("A person or a program that operates the service", {
  id: operatorId,
  name,
  role: RoleSchema,
  state: oneOf(["active", "revoked"], "Whether the token works"),
  hint: line(40, "Beginning and end of the token"),
  createdAt: time("When the operator was created"),
  tokenCreatedAt: time("When the token was made"),
  lastUsedAt: nullable(time("When the operator was last there, to the hour"), "Null if never"),
  revokedAt: nullable(time("When the operator was revoked")),
});
export type OperatorView = Infer<typeof OperatorSchema>;

export const Operators = object("Operators, the oldest first", {
  items: array(OperatorSchema, { json: "Those that are not revoked, and the last 300 that are" }),
});

export const NewOperatorSchema = object("An operator to create", {
  name: matching(OPERATOR_NAME, OPERATOR_NAME_EXPECTED, {
    description: "Name of the operator, which the audit trail has",
    examples: ["ann"],
  }),
  role: RoleSchema,
});

export const OperatorWithToken = object("An operator and their new token, which is shown only this once", {
  operator: OperatorSchema,
  token: line(200, "Token of the operator"),
});
export type OperatorWithToken = Infer<typeof OperatorWithToken>;

export const NewSession = object(
  "What to sign in with: one of the two",
  {},
  {
    token: line(200, "Token of an operator"),
    code: line(200, "Code of the URL that `petstore admin-url` prints. It works once, for five minutes."),
  },
);

const session = {
  operator: object("Who has signed in", {
    id: nullable(operatorId, "Null for the operator `token`, whose token is a setting"),
    name,
    role: RoleSchema,
  }),
  environment,
  version,
};
const signedIn = boolean("Whether the request has a session or a token");

export const Session = object(
  "All but `signedIn` is only there if `signedIn` is true.",
  { signedIn },
  session,
);
export type Session = Infer<typeof Session>;

export const CreatedSession = object("A new session", {
  signedIn,
  ...session,
  secret: secretText(
    "For the header `Petstore-Session`, without which the cookie is worth nothing: every listener on the host gets it",
  ),
});

export const nonce = matching(
  /^[\w-]{16,64}$/,
  "16 to 64 characters of base64url",
  "Random text, new each time",
);

export const ServerProof = object("Proof that the server knows the secret in its database", {
  proof: secretText("HMAC-SHA256 of the nonce and of the listener's address"),
});
