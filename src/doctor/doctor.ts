import type { PlainTextConnection } from "../config/plain-text.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { PLAIN_TEXT_WARNINGS } from "../observe/log-events.ts";
import { checkClock } from "./clock.ts";
import { checkAccessLog, checkDataDirectory, checkOpenFiles } from "./files.ts";
import { check, type Finding, problemsOr } from "./finding.ts";
import { checkPorts, checkTls, type Listeners } from "./listeners.ts";
import { checkDestinations, type Destinations } from "./outgoing.ts";
import { checkSettingsFiles, type FileSetting } from "./settings-files.ts";
import { checkQuotaStore, checkSqlite } from "./sqlite.ts";

interface DoctorOptions {
  readonly destinations: Destinations;
  readonly listeners: Listeners;
  /** The connections that are unencrypted over a network. */
  readonly plainText: readonly PlainTextConnection[];
  /** The path of the access log; undefined if there is none. */
  readonly accessLog: string | undefined;
  readonly maxConnections: number | undefined;
  /** Returns the path that a setting names. */
  readonly pathOf: (setting: FileSetting) => string | undefined;
  readonly clock: Clock;
  /** Returns the status of the response to a GET. Rejects if no response arrives. */
  readonly statusOf: (url: string) => Promise<number | undefined>;
}

/** Checks everything that a server needs. It changes nothing, and servers may be running. */
export async function diagnose(options: DoctorOptions): Promise<Finding[]> {
  const { destinations, listeners, clock } = options;
  const { postgres, directory } = destinations.data;
  const now = () => clock.now();
  const sqlite = postgres === undefined ? checkSqlite(directory, now()) : { findings: [] };
  const { findings, clocks: comparisons = [] } = await checkDestinations(destinations, now);
  return [
    ...checkConfiguration(options),
    ...checkDataDirectory(directory),
    ...(await checkPorts(listeners, options.statusOf)),
    ...sqlite.findings,
    ...checkQuotaStore(directory),
    ...findings,
    ...checkClock({ now: now(), newestTime: sqlite.newestTime, comparisons }),
    checkOpenFiles(options.maxConnections),
    ...checkAccessLog(options.accessLog),
    ...checkTls(listeners, now()),
    ...checkSettingsFiles(options.pathOf),
  ];
}

const configuration = check("configuration");

/** Hosts that are reserved for documentation (RFC 2606). */
const PLACEHOLDER_HOST = /(?:^|\.)example(?:\.(?:com|net|org))?$/;

/** Checks combinations of settings that are valid individually. */
function checkConfiguration({ destinations, listeners, plainText }: DoctorOptions): Finding[] {
  const { publicUrl, host } = listeners;
  return problemsOr(configuration.ok(`${destinations.data.environment}: the settings go together`), [
    ...plainText.map((each) => configuration.warning(...PLAIN_TEXT_WARNINGS[each])),
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
