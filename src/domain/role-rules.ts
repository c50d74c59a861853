/* Which role a provider's claims about a person grant. */

import { type Role, ROLES } from "./operators.ts";

/** The roles with which people sign in. */
export const SIGN_IN_ROLES = ROLES.filter((role) => role !== "metrics");

/** A person with this value in this claim gets this role. */
export interface RoleRule {
  readonly claim: string;
  readonly value: string;
  readonly role: Role;
}

export type Claims = Readonly<Record<string, unknown>>;

/** Returns the values of a claim as texts. `a.b` is the claim of this name or, without one, the member `b` of `a`. */
export function claimValues(claims: Claims, name: string): readonly string[] {
  const found = Object.hasOwn(claims, name) ? claims[name] : memberOf(claims, name.split("."));
  const values: readonly unknown[] = Array.isArray(found) ? found : [found];
  return values.filter((each) => ["string", "number", "boolean"].includes(typeof each)).map(String);
}

function memberOf(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return memberOf(Reflect.get(value, name), rest);
}

/** Returns the highest role that a rule grants; undefined if none does. */
export function grantedRole(rules: readonly RoleRule[], claims: Claims): Role | undefined {
  const granted = rules.filter(({ claim, value }) => claimValues(claims, claim).includes(value));
  return ROLES.findLast((role) => granted.some((rule) => rule.role === role));
}

const MAX_SHOWN_VALUES = 20;
const MAX_SHOWN_LENGTH = 100;

/** Returns the claims that the rules name, as far as a person has them, for the audit trail. */
export function seenClaims(
  rules: readonly RoleRule[],
  claims: Claims,
): Readonly<Record<string, readonly string[]>> {
  const names = [...new Set(rules.map(({ claim }) => claim))];
  return Object.fromEntries(
    names.map((name) => {
      const values = claimValues(claims, name);
      const shown = values.slice(0, MAX_SHOWN_VALUES).map((value) => value.slice(0, MAX_SHOWN_LENGTH));
      const more = values.length - shown.length;
      return [`claim ${name}`, more > 0 ? [...shown, `and ${more} more`] : shown];
    }),
  );
}
