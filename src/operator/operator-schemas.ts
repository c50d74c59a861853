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
} from "../api/schema.ts";
import { MAX_OVERLAP_MS } from "../domain/key-fields.ts";
import { OPERATOR_NAME, OPERATOR_NAME_EXPECTED, OPERATOR_STATES, ROLES } from "../domain/operators.ts";
import { time } from "./key-schemas.ts";

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
  items: array(OperatorSchema, { json: "Those that are not revoked, and the last 300 that are" }),
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
  "How to replace the token of an operator",
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
