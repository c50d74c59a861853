import type { Config } from "../config/config.ts";
import type { Variables } from "../config/parse-options.ts";
import type { Clock } from "../domain/ports.ts";
import { checkConfiguration } from "./configuration.ts";
import { checkDataDirectory } from "./data-directory.ts";
import type { Finding } from "./finding.ts";
import { checkClock, type ClockComparison, checkOpenFiles } from "./machine.ts";
import { checkSqlite, checkUsageStore } from "./sqlite.ts";
import { checkTls } from "./tls.ts";

export interface DoctorOptions {
  readonly config: Config;
  readonly variables: Variables;
  readonly clock: Clock;
}

/** Checks everything that a server with this configuration needs. Changes nothing. Servers may be running. */
export async function diagnose({ config, variables, clock }: DoctorOptions): Promise<Finding[]> {
  const now = () => clock.now();
  const findings = [...checkConfiguration(config, variables), ...checkDataDirectory(config)];
  const clocks: ClockComparison[] = [];
  let newestTime: number | undefined;
  if (config.databaseUrl === undefined) {
    const sqlite = checkSqlite(config);
    findings.push(...sqlite.findings);
    newestTime = sqlite.newestTime;
  } else {
    const { checkPostgres } = await import("./postgres.ts");
    const postgres = await checkPostgres(config, now);
    findings.push(...postgres.findings);
    clocks.push(...postgres.clocks);
  }
  findings.push(...checkUsageStore(config));
  if (config.limitsUrls !== undefined) {
    const { checkValkey } = await import("./valkey.ts");
    const valkey = await checkValkey(config, now);
    findings.push(...valkey.findings);
    clocks.push(...valkey.clocks);
  }
  findings.push(...checkClock({ now: now(), newestTime, comparisons: clocks }));
  findings.push(checkOpenFiles(config), ...checkTls(config, now()));
  return findings;
}
