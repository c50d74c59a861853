import type { Environment } from "../domain/api-keys.ts";
import { DAY_MS, LONGEST_BAN_MS } from "../domain/rate-limit.ts";
import { hostname, listenAddress } from "./address-types.ts";
import type { Options } from "./parse-options.ts";
import { durationOr } from "./time-types.ts";
import { adminToken, boolean, file, list } from "./value-types.ts";

export const DEFAULT_ADMIN_PORT: Readonly<Record<Environment, number>> = { production: 8090, staging: 8091 };

/** What operators sign in with. */
export const ADMIN_TOKEN_OPTIONS = {
  "admin-token-file": {
    type: file,
    help: "File that contains --admin-token; the server reads it again when it changes",
  },
  "admin-token": {
    type: adminToken,
    defaultText: "made at the first start, in --data",
    fileOption: "admin-token-file",
    help: "Token that operators sign in with; other users could read it in a list of processes",
  },
} as const satisfies Options;

/** The listener for operators. */
export const ADMIN_OPTIONS = {
  "admin-address": {
    type: listenAddress,
    defaultText: `127.0.0.1:${DEFAULT_ADMIN_PORT.production}, or ${DEFAULT_ADMIN_PORT.staging} in staging, or the next free port`,
    help: "Address of the listener for operators, with the console, the admin API, health checks and metrics; off for none",
  },
  "admin-hostname": {
    type: list(hostname),
    default: [],
    defaultText: "none",
    repeatable: true,
    help: "Names by which browsers may address that listener, besides IP addresses and localhost; can be repeated",
  },
  ...ADMIN_TOKEN_OPTIONS,
  "metrics-public": {
    type: boolean,
    default: false,
    help: "Respond to /metrics on that listener without the token",
  },
  "audit-retention": {
    type: durationOr("forever", { min: LONGEST_BAN_MS, max: 3_650 * DAY_MS }),
    default: 400 * DAY_MS,
    help: "Age at which entries of the audit trail are deleted",
  },
} as const satisfies Options;
