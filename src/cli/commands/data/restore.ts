import { OutcomeUnknown } from "../../../api/errors.ts";
import type { WorkProgress } from "../../../archive/progress.ts";
import type { RestorePlan } from "../../../archive/restore.ts";
import { formatOptionalTime } from "../../../text/formatting.ts";
import { dataLocationOf } from "../../../config/storage.ts";
import { DATABASE_OPTIONS, JSON_OPTION } from "../../../config/options.ts";
import { switchOption, directory } from "../../../config/value-types.ts";
import { typedDuration } from "../../../text/durations.ts";
import type { BanRules } from "../../../domain/ban-rules.ts";
import type { RestrictedKey, Restriction } from "../../../store/sqlite/key-differences.ts";
import { errorMessage } from "../../error-message.ts";
import { describeRows } from "./backup.ts";
import { columns, json } from "../../output.ts";
import { attributionOf, defineCommand, Failure } from "../../command.ts";
import { Progress } from "./progress.ts";

const backupPath = {
  ...directory,
  expected: "the path of a backup, or of a directory of backups, whose newest complete one is meant",
};

export const restore = defineCommand({
  name: "restore",
  summary: "Restore a backup",
  description:
    "Verifies a backup that petstore backup made, shows what it will do, and restores it to SQLite in --data or to PostgreSQL, wherever it was made. So a backup and a restore move data to another database. Of a directory of backups it takes the one with the latest time in its name. All servers must be stopped. It overwrites nothing: present data is a failure, or gets another name with --replace. The restored data is there in one step: if the command is interrupted, nothing has changed.",
  data: "replaces",
  positionals: { BACKUP: backupPath },
  options: {
    replace: switchOption(
      "Give the present database another name in --data, or the present schema another one in PostgreSQL; without it, a restore overwrites nothing",
    ),
    "allow-older": switchOption(
      "Restore the newest complete backup of a directory although a newer one is incomplete or damaged",
    ),
    "dry-run": switchOption("Show what would be done, and change nothing"),
    ...DATABASE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: [
    "petstore restore /var/backups/petstore --dry-run",
    "petstore restore /var/backups/petstore --replace",
    "petstore restore /var/backups/petstore/production-2026-11-15T12-00-00Z.db --data ./restored",
  ],
  async run({ positionals, values }, context) {
    const { print, warn, errorStream } = context;
    const location = dataLocationOf(values);
    const { replace, "allow-older": allowOlder, "dry-run": isDryRun } = values;
    const progress = new Progress({ stream: errorStream, isJson: values.json });
    const request = {
      location,
      from: positionals.BACKUP,
      replace,
      allowOlder,
      by: attributionOf(context),
      onProgress: (reached: WorkProgress) => progress.update(reached),
    };
    const show = async (plan: RestorePlan) => {
      progress.end();
      // A closed pipe must not end the command with status 0 before anything is restored.
      await print(values.json ? json(planView(plan, isDryRun)) : planTable(plan)).catch(() => {});
      for (const line of warningsOf(plan, request.by.at)) warn(line);
    };
    const { planRestore, restoreBackup } = await import("../../../archive/restore.ts");
    const { RestoreRejection } = await import("../../../archive/restore-target.ts");
    try {
      if (isDryRun) await show(await planRestore(request));
      else await restoreBackup(request, show);
    } catch (error) {
      if (error instanceof RestoreRejection) throw new Failure(error.message);
      if (error instanceof OutcomeUnknown)
        throw new Failure(
          `${errorMessage(error)}; it is not known whether the backup was restored; see petstore audit`,
        );
      throw error;
    } finally {
      progress.end();
    }
    return isDryRun || values.json ? undefined : "Restored. Start the server with petstore serve.\n";
  },
});

function planView(
  { path, skipped, description, facts, replaced, obstacle, comparison }: RestorePlan,
  isDryRun: boolean,
) {
  const { later, keys } = comparison ?? {};
  return {
    backup: path,
    skipped,
    createdAt: description.createdAt,
    version: description.version,
    schemaVersion: facts.schemaVersion,
    rows: facts.rows,
    replaced: replaced ?? null,
    needsReplace: obstacle !== undefined,
    comparedWith: later ?? null,
    keysRevokedSince: idsOf(keys?.restricted.revoked_at),
    keysWithLowerLimitsSince: idsOf(keys?.restricted.plan),
    keysMadeReadOnlySince: idsOf(keys?.restricted.access),
    keysDisabledSince: idsOf(keys?.restricted.disabled_at),
    keysExpiringEarlierSince:
      keys?.restricted.expires_at.map(({ id, expiresAt }) => ({
        id,
        expiresAt: formatOptionalTime(expiresAt),
      })) ?? null,
    keysRotatedSince: keys?.rotated ?? null,
    keysCreatedSince: keys?.created ?? null,
    plansLoweredSince: keys?.plans ?? null,
    stricterBanRulesSince: keys?.ban ?? null,
    operatorsChangedSince: keys?.operators ?? null,
    isDryRun,
  };
}

function planTable(plan: RestorePlan): string {
  const { to, path, description, facts, replaced, obstacle, needsMigration } = plan;
  const { createdAt, version } = description;
  const rows = [
    ["  Backup", path],
    ["  Made", `${createdAt} by petstore ${version}; its checksum is right`],
    ["  Contents", describeRows(facts.rows)],
    ["  To", to],
    [
      "  Present data",
      replaced === undefined
        ? "none"
        : `gets the name ${replaced}${obstacle ? ", which needs --replace" : ""}`,
    ],
    ["  Migration", needsMigration ? "the server migrates the database when it starts" : "none is needed"],
  ];
  return `Restores a backup:\n\n${columns(rows)}\n`;
}

function idsOf(keys: readonly RestrictedKey[] | undefined): readonly number[] | null {
  return keys?.map(({ id }) => id) ?? null;
}

/** What a restore undoes, and the command that does it again at a time. */
const RESTRICTED: Readonly<
  Record<Restriction, readonly [undone: string, command: (key: RestrictedKey, now: number) => string]>
> = {
  revoked_at: ["keys revoked since the backup are valid again", ({ id }) => `revoke ${id}`],
  plan: [
    "keys whose limits were lowered since have the earlier ones again",
    ({ id, plan, limits }) =>
      `update ${id} --plan ${plan}${limits ? ` --per-minute ${limits.perMinute} --per-day ${limits.perDay}` : ""}`,
  ],
  access: ["keys made read-only since can write again", ({ id }) => `update ${id} --access read`],
  disabled_at: ["keys disabled since are valid again", ({ id }) => `disable ${id}`],
  expires_at: [
    "keys whose expiry was moved to an earlier time since are valid for longer again",
    ({ id, expiresAt }, now) => `update ${id} --expires ${secondsUntil(expiresAt ?? Infinity, now)}s`,
  ],
};

/** The least time that `--expires` accepts, if it is over. */
function secondsUntil(time: number, now: number): number {
  return Math.max(1, Math.floor((time - now) / 1_000));
}

function warningsOf({ skipped, description, comparison }: RestorePlan, now: number): string[] {
  if (comparison === undefined) {
    return [
      ...skipped,
      `which keys and operators were revoked, restricted or rotated after ${description.createdAt} is not known here; they are valid again: see petstore keys list, petstore operators list and docs/backup.md`,
    ];
  }
  const { restricted, rotated, created, plans, ban, operators } = comparison.keys;
  const again = (column: Restriction) => {
    const [undone, command] = RESTRICTED[column];
    const commands = listed(restricted[column], (key) => `petstore keys ${command(key, now)}`);
    return [restricted[column], `${undone}: run ${commands}`] as const;
  };
  const updatePlan = listed(
    plans,
    ({ name, perMinute, perDay }) =>
      `petstore plans update ${name} --per-minute ${perMinute} --per-day ${perDay}`,
  );
  const rotate = listed(rotated, (id) => `petstore keys rotate ${id} --overlap 0`);
  // The commands work in this order: a key that has expired can only be revoked.
  const changes: readonly (readonly [changed: readonly unknown[], warning: string])[] = [
    again("revoked_at"),
    [rotated, `secrets replaced since are valid again, and the new ones are not: run ${rotate}`],
    again("plan"),
    again("access"),
    again("disabled_at"),
    again("expires_at"),
    [plans, `plans whose limits were lowered since have the earlier ones again: run ${updatePlan}`],
    [
      ban ? [ban] : [],
      `ban rules that were made stricter since are the earlier ones again: run ${ban && updateBanRules(ban)}`,
    ],
    [created, `keys created since are lost: ${listed(created, String)}`],
    [
      operators,
      `operators who were revoked or rotated, or got another role or an earlier expiry since, have their earlier token, role and expiry: ${listed(operators, String)}`,
    ],
  ];
  return [...skipped, ...changes.flatMap(([changed, warning]) => (changed.length > 0 ? warning : []))];
}

function updateBanRules({ strikes, graceMs, lengthMs, maxLengthMs }: BanRules): string {
  const [grace, length, maxLength] = [graceMs, lengthMs, maxLengthMs].map(typedDuration);
  return `petstore ban-rules update --strikes ${strikes} --grace ${grace} --length ${length} --max-length ${maxLength}`;
}

const MAX_LISTED = 20;

function listed<T>(all: readonly T[], format: (each: T) => string): string {
  const more = all.length > MAX_LISTED ? ` and ${all.length - MAX_LISTED} more, which --json lists` : "";
  return all.slice(0, MAX_LISTED).map(format).join("; ") + more;
}
