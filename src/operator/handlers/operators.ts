import { TokenBucket } from "../../runtime/token-bucket.ts";
import { Rejection } from "../../api/errors.ts";
import { formatOptionalTime, formatTime } from "../../text/formatting.ts";
import { toSafeNumber } from "../../api/json.ts";
import { invalidExpiry } from "../../domain/key-rules.ts";
import { mayCall, type Operator, operatorState } from "../../domain/operators.ts";
import { forbiddenRole, OWN_OPERATOR, tooManyAttempts } from "../errors.ts";
import { generateToken, toNewToken } from "../sign-in/token.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

/**
 * The limit for rotations by operators with the role metrics, whose replaced tokens and audit entries are kept: 20 at
 * once and 20 an hour.
 */
const METRICS_ROTATIONS = 20;
const SECONDS_PER_ROTATION = 3_600 / METRICS_ROTATIONS;

export function operatorHandlers(services: Pick<Services, "operators" | "clock" | "applyOperatorChanges">) {
  const { operators, clock, applyOperatorChanges } = services;
  const rotations = new TokenBucket({
    max: METRICS_ROTATIONS,
    perSecond: 1 / SECONDS_PER_ROTATION,
    now: () => clock.steadyNow(),
  });

  return {
    listOperators: async ({ query: { name } }) => ({
      items: (await operators.listOperators(name)).map(viewOf),
    }),

    async createOperator({ body: { name, role, expiresAt } }, { by }) {
      const expiry = expiresAt ? { expiresAt: Date.parse(expiresAt) } : {};
      const invalid = invalidExpiry(expiry.expiresAt, by.at);
      if (invalid) return invalid;
      const token = generateToken();
      const operator = await operators.createOperator({ name, role, ...expiry }, toNewToken(token), by);
      return operator instanceof Rejection ? operator : { operator: applied(operator), token };
    },

    async updateOperator({ id, body: { expiresAt, ...role } }, { by }) {
      const expiry =
        expiresAt === undefined ? {} : { expiresAt: expiresAt === null ? null : Date.parse(expiresAt) };
      const invalid = invalidExpiry(expiry.expiresAt, by.at);
      if (invalid) return invalid;
      const operator = await operators.updateOperator(toSafeNumber(id), { ...role, ...expiry }, by);
      return operator instanceof Rejection ? operator : applied(operator);
    },

    /** Rotates a token. Operators who rotate their own token keep the session in which they do it. */
    async rotateOperator({ id: identifier, body: { overlapSeconds = 0 } }, { by, principal }) {
      const id = toSafeNumber(identifier);
      if (principal && principal.id !== id && !mayCall(principal.role, "admin"))
        return forbiddenRole(principal, "admin");
      if (principal?.role === "metrics" && !rotations.take())
        return tooManyAttempts(SECONDS_PER_ROTATION, "tokens were rotated");
      const token = generateToken();
      const own = principal?.id === id ? { keeps: principal.session, replaces: principal.tokenHash } : {};
      const overlapEndsAt = overlapSeconds === 0 ? undefined : by.at + overlapSeconds * 1_000;
      const rotation = { ...toNewToken(token), ...own, overlapEndsAt };
      const operator = await operators.rotateOperator(id, rotation, by);
      return operator instanceof Rejection ? operator : { operator: applied(operator), token };
    },

    async revokeOperator({ id: identifier, body }, { by, principal }) {
      const id = toSafeNumber(identifier);
      if (principal?.id === id || (await isPerson(id, principal?.subject))) return OWN_OPERATOR;
      const operator = await operators.revokeOperator(id, { ...by, ...body });
      return operator instanceof Rejection ? operator : applied(operator);
    },
  } satisfies Partial<AdminHandlers>;

  /** Whether an operator is a person of the provider, by whatever address. */
  async function isPerson(id: number, subject: string | undefined): Promise<boolean> {
    if (subject === undefined) return false;
    return (await operators.listOperators()).some((each) => each.id === id && each.subject === subject);
  }

  function applied(operator: Operator) {
    applyOperatorChanges();
    return viewOf(operator);
  }

  function viewOf(operator: Operator) {
    const { id, name, role, hint, overlapEndsAt = 0 } = operator;
    const now = clock.now();
    return {
      id,
      name,
      role,
      state: operatorState(operator, now),
      hint,
      createdAt: formatTime(operator.createdAt),
      tokenCreatedAt: formatTime(operator.issuedAt),
      expiresAt: formatOptionalTime(operator.expiresAt),
      overlapEndsAt: now < overlapEndsAt ? formatTime(overlapEndsAt) : null,
      lastUsedAt: formatOptionalTime(operator.lastUsedAt),
      revokedAt: formatOptionalTime(operator.revokedAt),
      ...(operator.subject !== undefined && { subject: operator.subject }),
    };
  }
}
