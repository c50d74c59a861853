import { type PlanName, PLANS } from "../domain/plans.ts";
import type { Attribution } from "../domain/audit.ts";
import {
  applyPolicyChange,
  DEFAULT_POLICY,
  LIMITED_PLANS,
  type LimitedPlan,
  type Policy,
  type PolicyChange,
  policyEntries,
} from "../domain/policy.ts";
import type { PolicyStore } from "../domain/ports/policy.ts";
import type { BanRules } from "../domain/ban-rules.ts";
import type { Limits } from "../domain/rate-limit.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { nextRevision } from "./api-keys.ts";
import { addAudit } from "./audit.ts";
import { objectsOf, requireRow, rowsOf, type SqlDatabase, type Steps } from "./sql/steps.ts";

const SELECT_PLANS = `SELECT name, per_minute AS "perMinute", per_day AS "perDay" FROM plans`;
const SELECT_BAN_RULES = `SELECT strikes, grace_ms AS "graceMs", length_ms AS "lengthMs",
  max_length_ms AS "maxLengthMs" FROM ban_rules`;
const PUT_PLANS = `INSERT INTO plans (name, per_minute, per_day) VALUES ${LIMITED_PLANS.map(() => "(?, ?, ?)").join(", ")}
  ON CONFLICT (name) DO UPDATE SET per_minute = excluded.per_minute, per_day = excluded.per_day`;
const PUT_BAN_RULES = `INSERT INTO ban_rules (sole, strikes, grace_ms, length_ms, max_length_ms)
  VALUES (1, ?, ?, ?, ?) ON CONFLICT (sole) DO UPDATE SET strikes = excluded.strikes,
  grace_ms = excluded.grace_ms, length_ms = excluded.length_ms, max_length_ms = excluded.max_length_ms`;
/** SQLite would sort the keys to group them. */
const COUNT_KEYS = `SELECT ${PLANS.map((plan) => `count(*) FILTER (WHERE plan = '${plan}') AS ${plan}`).join(", ")}
  FROM api_keys WHERE revoked_at IS NULL`;

export class SqlPolicyStore implements PolicyStore {
  constructor(private readonly database: SqlDatabase) {}

  readPolicy(): Awaitable<Policy> {
    return this.database.read(readStoredPolicy);
  }

  async updatePolicy(change: PolicyChange, by: Attribution): Promise<Policy> {
    const current = await this.database.read(readStoredPolicy);
    if (Bun.deepEquals(applyPolicyChange(current, change), current)) return current;
    return this.database.write(function* () {
      yield* nextRevision();
      const before = yield* readStoredPolicy();
      const policy = applyPolicyChange(before, change);
      const { plans, ban } = policy;
      const rows = LIMITED_PLANS.map((name) => [name, plans[name].perMinute, plans[name].perDay]);
      yield* rowsOf(PUT_PLANS, ...rows.flat());
      yield* rowsOf(PUT_BAN_RULES, ban.strikes, ban.graceMs, ban.lengthMs, ban.maxLengthMs);
      for (const entry of policyEntries(before, policy, by)) yield* addAudit(entry);
      return policy;
    });
  }

  countKeys(): Awaitable<Readonly<Record<PlanName, number>>> {
    return this.database.read(function* () {
      const [row] = yield* objectsOf<Record<PlanName, number>>(COUNT_KEYS);
      return requireRow(row);
    });
  }
}

/** Tables have the rows since they were made. What a backup of tables of release 1.3 lacks has its default. */
export function* readStoredPolicy(): Steps<Policy> {
  const rows = yield* objectsOf<Limits & { name: LimitedPlan }>(SELECT_PLANS);
  const plans = Object.fromEntries(rows.map(({ name, ...limits }) => [name, limits]));
  const [ban] = yield* objectsOf<BanRules>(SELECT_BAN_RULES);
  return { plans: { ...DEFAULT_POLICY.plans, ...plans }, ban: ban ?? DEFAULT_POLICY.ban };
}
