import { typedDuration } from "../../text/durations.ts";
import { grouped } from "../../text/formatting.ts";
import { duration } from "../../config/value-types.ts";
import { BAN_BOUNDS } from "../../domain/ban-rules.ts";
import type { BanRulesView } from "../../operator/operations.ts";
import type { Command } from "../command.ts";
import { listCommand } from "../list-command.ts";
import { operationCommand } from "../operation-command.ts";
import { convertedFlag } from "../operation-flags.ts";
import { columns, formatLimits } from "../output.ts";

const WITHIN_A_SECOND = "Running servers apply it within a second.";

function rulesTable({ strikes, graceMs, lengthMs, maxLengthMs }: BanRulesView): string {
  return columns([
    ["Strikes", `${strikes}`],
    ["Grace period", typedDuration(graceMs)],
    ["First ban", typedDuration(lengthMs)],
    ["Longest ban", typedDuration(maxLengthMs)],
  ]);
}

const lengthFlag = (flag: string, bounds: (typeof BAN_BOUNDS)[keyof typeof BAN_BOUNDS], help: string) => ({
  flag,
  option: { type: convertedFlag(duration(bounds), (ms) => ms), help },
});

export const PLAN_COMMANDS: readonly Command[] = [
  listCommand({
    name: "plans list",
    operation: "listPlans",
    description:
      "Lists the limits of the plans, which all servers apply, and those of clients without a valid key (anonymous). KEYS counts the keys of a plan that are not revoked. Each Enterprise key has its own limits.",
    examples: ["petstore plans list", "petstore plans list --json"],
    noun: "plans",
    columns: [
      ["PLAN", ({ plan }) => plan],
      ["PER MINUTE", ({ perMinute }) => grouped(perMinute), "number"],
      ["PER DAY", ({ perDay }) => grouped(perDay), "number"],
      ["KEYS", ({ keys }) => (keys === null ? "-" : grouped(keys)), "number"],
    ],
  }),
  operationCommand({
    name: "plans update",
    operation: "updatePlan",
    description:
      "Changes the limits of a plan, or of clients without a valid key (anonymous), on every server within a second. What keys have used in open windows stays.",
    positionals: ["plan"],
    examples: [
      "petstore plans update free --per-minute 60 --per-day 1000",
      "petstore plans update anonymous --per-minute 100 --json",
    ],
    text: (plan) => `Plan ${plan.plan}: ${formatLimits(plan)}. ${WITHIN_A_SECOND}\n`,
  }),
  operationCommand({
    name: "ban-rules show",
    operation: "getBanRules",
    examples: ["petstore ban-rules show", "petstore ban-rules show --json"],
    text: rulesTable,
  }),
  operationCommand({
    name: "ban-rules update",
    operation: "updateBanRules",
    description:
      "Changes the ban rules, on every server within a second. A ban keeps its length, or ends when it has lasted as long as the longest ban may. A first ban above --max-length raises that too.",
    fields: {
      graceMs: lengthFlag(
        "grace",
        BAN_BOUNDS.graceMs,
        "Grace period after the first 429 and after each strike",
      ),
      lengthMs: lengthFlag("length", BAN_BOUNDS.lengthMs, "Duration of a first ban"),
      maxLengthMs: lengthFlag("max-length", BAN_BOUNDS.maxLengthMs, "Maximum duration of a ban"),
    },
    examples: [
      "petstore ban-rules update --strikes 20 --length 10m",
      "petstore ban-rules update --grace 2s --json",
    ],
    text: (rules) => `${rulesTable(rules)}${WITHIN_A_SECOND}\n`,
  }),
];
