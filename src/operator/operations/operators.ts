import {
  array,
  type Infer,
  integer,
  line,
  matching,
  nullable,
  object,
  oneOf,
  updateSchema,
} from "../../api/schema.ts";
import { MAX_OVERLAP_MS } from "../../domain/key-fields.ts";
import { OPERATOR_NAME, OPERATOR_NAME_EXPECTED, OPERATOR_STATES, ROLES } from "../../domain/operators.ts";
import { created, EVERY_OPERATOR, ok, Reasoned, tagged, time } from "./rows.ts";

export const role = oneOf(ROLES, "What the operator may do; each role may do what those before it may");
export const operatorId = integer({
  min: 1,
  max: Number.MAX_SAFE_INTEGER,
  description: "Identifier of the operator",
});
export const operatorName = line(64, { description: "Name of the operator", examples: ["ann"] });

export const subject = line(2_500, "Issuer and subject of an operator who signs in with a provider");

export const OperatorSchema = object(
  "A person or a program that operates the service",
  {
    id: operatorId,
    name: operatorName,
    role,
    state: oneOf(OPERATOR_STATES, "Whether the token works"),
    hint: line(40, "Beginning and end of the token"),
    createdAt: time("When the operator was created"),
    tokenCreatedAt: time("When the token was made"),
    expiresAt: nullable(time("When the token expires; null for never")),
    overlapEndsAt: nullable(time("When the earlier tokens stop working; null unless a rotation overlaps")),
    lastUsedAt: nullable(time("When the operator was last there, to the hour"), "Null if never"),
    revokedAt: nullable(time("When the operator was revoked")),
  },
  {
    subject,
  },
);
export type OperatorView = Infer<typeof OperatorSchema>;

export const Operators = object("Operators, the oldest first", {
  items: array(OperatorSchema, {
    json: "At most 500: all who are active, and those who expired or were created last",
  }),
});

export const NewOperatorSchema = object(
  "An operator to create",
  {
    name: matching(OPERATOR_NAME, OPERATOR_NAME_EXPECTED, {
      description: "Name of the operator, which the audit trail has",
      examples: ["ann"],
    }),
    role,
  },
  { expiresAt: nullable(time("When the token expires; null for never")) },
);

export const OperatorUpdate = updateSchema("The fields to change, at least one. Null removes the expiry.", {
  role,
  expiresAt: nullable(time("When the token expires; null removes the expiry")),
});

export const OperatorRotation = object(
  "How to rotate the token of an operator",
  {},
  {
    overlapSeconds: integer({
      min: 0,
      max: MAX_OVERLAP_MS / 1_000,
      default: 0,
      description: "How long the earlier tokens, and the other sessions, still work",
    }),
  },
);

export const OperatorWithToken = object("An operator and their new token, which is shown only this once", {
  operator: OperatorSchema,
  token: line(200, "Token of the operator"),
});
export type OperatorWithToken = Infer<typeof OperatorWithToken>;

/** The operations on operators and their tokens. */
export const OPERATOR_OPERATIONS = tagged("Operators", {
  listOperators: {
    method: "GET",
    path: "/operators",
    summary: "List the operators with their roles",
    description:
      "Lists the operators, oldest first, also those that are revoked. Of a token it shows the first and the last characters; the whole is not stored. The last use is to the hour.",
    query: { name: line(64, "Only operators of this name: those who are revoked, and the one who is not") },
    success: ok("The operators", Operators),
  },
  createOperator: {
    method: "POST",
    path: "/operators",
    audited: "operator.created",
    summary: "Create an operator",
    description:
      "Creates an operator and responds with their token, which is shown only this once. From `expiresAt` on, the token and its sessions get 401. With the name of a revoked operator it lets that person in again, as a new operator with an identifier of its own.",
    body: NewOperatorSchema,
    success: created("The new operator and their token", OperatorWithToken),
    errors: ["operator_exists", "too_many_operators"],
  },
  updateOperator: {
    method: "PATCH",
    path: "/operators/{operatorId}",
    audited: "operator.updated",
    summary: "Change the role or the expiry of an operator",
    description:
      "Tokens and sessions follow on every server within a second. An operator who has expired is let in again with a new expiry. The last admin whose token does not expire keeps the role, and gets no expiry. An operator who signs in with a provider gets no higher role and no later expiry.",
    body: OperatorUpdate,
    success: ok("The changed operator", OperatorSchema),
    errors: ["operator_not_active", "operator_of_provider", "too_many_operators", "last_admin"],
  },
  rotateOperator: {
    method: "POST",
    path: "/operators/{operatorId}/rotate",
    audited: "operator.rotated",
    summary: "Rotate the token of an operator",
    description:
      "Makes a new token, which is shown only this once. The earlier ones stop working and the operator's other sessions end when the overlap is over, by default at once: on every server within a second. Every operator may rotate their own token, with the newest one or a session of it; that of somebody else needs the role admin. An operator who signs in with a provider has no token.",
    body: OperatorRotation,
    success: ok("The operator and their new token", OperatorWithToken),
    errors: [
      "operator_not_active",
      "operator_of_provider",
      "forbidden_role",
      "invalid_token",
      "too_many_attempts",
    ],
    // That of somebody else needs the role admin, which the handler checks.
    role: EVERY_OPERATOR,
  },
  revokeOperator: {
    method: "POST",
    path: "/operators/{operatorId}/revoke",
    audited: "operator.revoked",
    summary: "Revoke an operator for good",
    description:
      "Ends the token and the sessions of the operator, on every server within a second. This cannot be undone; a new operator may have the name. A person who signs in with a provider is revoked by every address that they have had. Nobody can revoke themselves, or the last admin whose token does not expire. An operator who is already revoked stays so.",
    body: Reasoned,
    success: ok("The revoked operator", OperatorSchema),
    errors: ["own_operator", "last_admin"],
  },
});
