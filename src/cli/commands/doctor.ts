import { plural } from "../../text/formatting.ts";
import { configOf } from "../../config/config.ts";
import { plainTextConnections } from "../../config/plain-text.ts";
import { JSON_OPTION, SETTINGS } from "../../config/options.ts";
import type { Finding, Level } from "../../doctor/finding.ts";
import { defineCommand, Failure } from "../command.ts";
import { statusOf } from "./health.ts";
import { columns, definitions, json, type Screen } from "../output.ts";
import { rejectIncompleteSettings } from "./serve.ts";

export const doctor = defineCommand({
  name: "doctor",
  summary: "Check everything that a server needs, and say what to do",
  description:
    "Checks the settings and their files, the data directory, the ports, the databases with their integrity, migrations, replication and last backup, everything that a server connects to, the clock, the limit of open files, the access log and TLS. Give it the same settings as petstore serve. It changes nothing, and servers may be running. The exit status is 1 if there is an error; warnings alone are 0.",
  data: "inspects",
  options: { ...SETTINGS, ...JSON_OPTION },
  examples: ["petstore doctor", "petstore doctor --env-file staging.env", "petstore doctor --json"],
  async run({ values }, { clock, variables, print, screen }) {
    rejectIncompleteSettings(values);
    const { diagnose } = await import("../../doctor/doctor.ts");
    const config = configOf(values);
    const { data, webhook, tracing, admin, accessLog, maxConnections } = config;
    const findings = await diagnose({
      destinations: { data, provider: admin?.provider, webhook, tracing },
      listeners: config,
      plainText: plainTextConnections(config, variables),
      accessLog,
      maxConnections,
      pathOf: (setting) => values[setting],
      clock,
      statusOf,
    });
    await print(values.json ? json(findings) : report(findings, screen));
    const errors = countAt(findings, "error");
    if (errors > 0) throw new Failure(`${plural(errors, "error")} found`);
    return undefined;
  },
});

const LEVEL_COLORS = { ok: "green", warning: "yellow", error: "red" } as const;

function report(findings: readonly Finding[], screen: Screen): string {
  const terms = columns(
    findings.map(({ level, check }) => [screen.coloredCell(LEVEL_COLORS[level], level), check]),
  );
  const lines = terms.trimEnd().split("\n");
  const rows = findings.map(({ message, remedy }, index) => {
    const text = remedy === undefined ? message : `${message}\n→ ${remedy}`;
    return [lines[index] ?? "", text] as const;
  });
  const warnings = countAt(findings, "warning");
  return `${definitions(rows, screen.columns ?? Infinity)}\n${plural(findings.length, "check")}: ${plural(countAt(findings, "error"), "error")}, ${plural(warnings, "warning")}.\n`;
}

function countAt(findings: readonly Finding[], level: Level): number {
  return findings.filter((finding) => finding.level === level).length;
}
