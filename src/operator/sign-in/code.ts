import { randomBytes } from "node:crypto";
import { Rejection } from "../../api/errors.ts";
import { randomBase62, SECRET_PREFIX } from "../../domain/secrets.ts";
import { mayCall, operatorState } from "../../domain/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import { sha256 } from "../../runtime/hash.ts";
import { MINUTE_MS } from "../../text/time-units.ts";
import { forbiddenRole, INVALID_CODE, INVALID_CODE_FOR_COMMANDS } from "../errors.ts";

/** How long a code works, which signs in once. */
export const CODE_MS = 5 * MINUTE_MS;

/** Generates a code for `petstore login`, which recognizes it by its beginning. */
export function generateCode(): string {
  return SECRET_PREFIX.code + randomBase62(43);
}

/** Whether a code is for commands, as `createSignInCode` makes it, and not for a browser. */
export const isForCommands = (code: string): boolean => code.startsWith(SECRET_PREFIX.code);

export const invalidCode = (code: string) => (isForCommands(code) ? INVALID_CODE_FOR_COMMANDS : INVALID_CODE);

interface SignInUrlOptions {
  readonly url: string;
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
  /** The operator to sign in; by default the first admin. */
  readonly operator?: string | undefined;
  /** The command that makes the URL, and its user, for the audit trail: `admin-url (root)`. */
  readonly madeBy: string;
}

/** Creates a URL that signs in whoever opens it first, within five minutes. */
export async function createSignInUrl(
  options: SignInUrlOptions,
): Promise<string | Rejection<"operator_not_found" | "forbidden_role">> {
  const { url, operators, clock, operator: name, madeBy } = options;
  const now = clock.now();
  const active = (await operators.listOperators()).filter((each) => operatorState(each, now) === "active");
  const operator = active.find((each) => (name === undefined ? each.role === "admin" : each.name === name));
  if (operator === undefined)
    return new Rejection(
      "operator_not_found",
      `${name === undefined ? "An operator with the role admin" : `Operator ${name}`} does not exist, is revoked or has expired.`,
    );
  if (!mayCall(operator.role, "viewer")) return forbiddenRole(operator, "viewer");
  // The code has no punctuation, which terminals would leave out of a link.
  const code = randomBytes(20).toString("hex");
  const stored = { codeHash: sha256(code), operatorId: operator.id, endsAt: now + CODE_MS, madeBy };
  await operators.createCode(stored, now);
  return `${url}/?code=${code}`;
}
