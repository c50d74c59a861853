import type { Config } from "../config/config.ts";
import { plainTextConnections } from "../config/plain-text.ts";
import type { Variables } from "../config/parse-options.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { PLAIN_TEXT_WARNINGS } from "../observe/log-events.ts";
import { checkClock } from "./clock.ts";
import { checkAccessLog, checkDataDirectory, checkOpenFiles } from "./files.ts";
import { check, type Finding, problemsOr } from "./finding.ts";
import { checkPorts, checkTls } from "./listeners.ts";
import { checkDestinations } from "./outgoing.ts";
import { checkSettingsFiles, type FileSetting } from "./settings-files.ts";
import { checkQuotaStore, checkSqlite } from "./sqlite.ts";

interface DoctorOptions {
  readonly config: Config;
  /** Returns the path that a setting names. */
  readonly pathOf: (setting: FileSetting) => string | undefined;
  readonly variables: Variables;
  readonly clock: Clock;
  /** Returns the status of the response to a GET. Rejects if no response arrives. */
  readonly statusOf: (url: string) => Promise<number | undefined>;
}

/** Checks everything that a server with this configuration needs. It changes nothing, and servers may be running. */
export async function diagnose(options: DoctorOptions): Promise<Finding[]> {
  const { config, pathOf, variables, clock, statusOf } = options;
  const now = () => clock.now();
  const sqlite = config.databaseUrl === undefined ? checkSqlite(config.directory, now()) : { findings: [] };
  const { findings, clocks: comparisons = [] } = await checkDestinations(config, now);
  return [
    ...checkConfiguration(config, variables),
    ...checkDataDirectory(config.directory),
    ...(await checkPorts(config, statusOf)),
    ...sqlite.findings,
    ...checkQuotaStore(config),
    ...findings,
    ...checkClock({ now: now(), newestTime: sqlite.newestTime, comparisons }),
    checkOpenFiles(config),
    ...checkAccessLog(config),
    ...checkTls(config, now()),
    ...checkSettingsFiles(pathOf),
  ];
}

const configuration = check("configuration");

/** Hosts that are reserved for documentation (RFC 2606). */
const PLACEHOLDER_HOST = /(?:^|\.)example(?:\.(?:com|net|org))?$/;

/** Checks combinations of settings that are valid individually. */
function checkConfiguration(config: Config, variables: Variables): Finding[] {
  const { publicUrl, host } = config;
  return problemsOr(configuration.ok(`${config.environment}: the settings go together`), [
    ...plainTextConnections(config, variables).map((each) =>
      configuration.warning(...PLAIN_TEXT_WARNINGS[each]),
    ),
    publicUrl !== undefined &&
      PLACEHOLDER_HOST.test(new URL(publicUrl).hostname) &&
      configuration.warning(
        `--public-url is ${publicUrl}, an address of examples; responses and printed commands lead clients and their keys there`,
        "set it to the URL that clients use",
      ),
    publicUrl === undefined &&
      (host === "0.0.0.0" || host === "::") &&
      configuration.warning(
        "links in responses and in the OpenAPI document name the address that the server listens on",
        "set --public-url to the URL that clients use",
      ),
  ]);
}
