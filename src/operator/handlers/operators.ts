import { TokenBucket } from "../../runtime/token-bucket.ts";
import { Rejection } from "../../api/errors.ts";
import { formatOptionalTime, formatTime } from "../../text/formatting.ts";
import { toSafeNumber } from "../../api/json.ts";
import { mayCall, type Operator } from "../../domain/operators.ts";
import { forbiddenRole, OWN_OPERATOR, tooManyAttempts } from "../errors.ts";
import { generateToken, toNewToken } from "../token.ts";
import type { AdminHandlers, OperatorServices } from "./services.ts";

/**
 * The limit for rotations by operators with the role metrics, whose replaced tokens and audit entries are kept: 20 at
 * once and 20 an hour.
 */
const METRICS_ROTATIONS = { max: 20, perSecond: 20 / 3_600 };

export function operatorHandlers(services: OperatorServices) {
  const { operators, clock, applyOperatorChanges } = services;
  const rotations = new TokenBucket({ ...METRICS_ROTATIONS, now: () => clock.steadyNow() });

  return {
    listOperators: async () => ({ items: (await operators.listOperators()).map(viewOf) }),

    async createOperator({ body }, { by }) {
      const token = generateToken();
      const operator = await operators.createOperator(body, toNewToken(token), by);
      return operator instanceof Rejection ? operator : { operator: applied(operator), token };
    },

    /** Rotates a token. Operators who rotate their own token keep the session in which they do it. */
    async rotateOperator({ id: identifier }, { by, principal }) {
      const id = toSafeNumber(identifier);
      if (principal && principal.id !== id && !mayCall(principal.role, "admin"))
        return forbiddenRole(principal, "admin");
      if (principal?.role === "metrics" && !rotations.take())
        return tooManyAttempts(180, "tokens were rotated");
      const token = generateToken();
      const own = principal?.id === id ? { keeps: principal.session, replaces: principal.tokenHash } : {};
      const operator = await operators.rotateOperator(id, { ...toNewToken(token), ...own }, by);
      return operator instanceof Rejection ? operator : { operator: applied(operator), token };
    },

    async revokeOperator({ id: identifier, body }, { by, principal }) {
      const id = toSafeNumber(identifier);
      if (principal?.id === id) return OWN_OPERATOR;
      const operator = await operators.revokeOperator(id, { ...by, ...body });
      return operator instanceof Rejection ? operator : applied(operator);
    },
  } satisfies Partial<AdminHandlers>;

  function applied(operator: Operator) {
    applyOperatorChanges();
    return viewOf(operator);
  }
}

function viewOf({ id, name, role, hint, createdAt, issuedAt, lastUsedAt, revokedAt }: Operator) {
  return {
    id,
    name,
    role,
    state: revokedAt === undefined ? ("active" as const) : ("revoked" as const),
    hint,
    createdAt: formatTime(createdAt),
    tokenCreatedAt: formatTime(issuedAt),
    lastUsedAt: formatOptionalTime(lastUsedAt),
    revokedAt: formatOptionalTime(revokedAt),
  };
}
