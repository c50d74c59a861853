/* The environment variables of settings: those of the process, and those of --env-file. */

import { SETTINGS } from "./options.ts";
import { REMOVED_SETTINGS } from "./removed-settings.ts";
import { type Flags, type Source, sourceOf, variableOf, type Variables } from "./parse-options.ts";
import { UsageError } from "./usage-error.ts";
import { didYouMean, nearest } from "../text/nearest.ts";
import { readTextFile } from "./read-file.ts";
import { quoted, quotedPath } from "./quoted.ts";

interface CheckedVariables {
  /** The variables of the process, and those of --env-file that the process does not have. */
  readonly variables: Variables;
  /** The names of the variables from the file. */
  readonly envFileVariables: ReadonlySet<string>;
  readonly warnings: readonly string[];
}

/** Returns the variables of the process. Only this function reads them. */
export function processVariables(): Variables {
  return process.env;
}

/**
 * Adds the variables of --env-file, and rejects every PETSTORE_ variable that is no setting of a server: one that stays
 * in a file must not affect other commands. `commandFlags` are the flags of all commands.
 */
export function checkVariables(
  commandFlags: readonly string[],
  flags: Flags,
  variables: Variables,
): CheckedVariables {
  const own = withoutServiceLinks(variables);
  const source = sourceOf("env-file", flags, own);
  const fileVariables = source === undefined ? {} : readEnvFile(source);
  rejectUnknownVariable(commandFlags, fileVariables, ` in ${quotedPath(source?.texts[0] ?? "")}`);
  rejectUnknownVariable(commandFlags, own);
  const isPortDropped = variables["PETSTORE_PORT"] && own["PETSTORE_PORT"] === undefined;
  return {
    variables: { ...fileVariables, ...own },
    envFileVariables: new Set(Object.keys(fileVariables).filter((name) => own[name] === undefined)),
    warnings: isPortDropped ? [PORT_WARNING] : [],
  };
}

const COMMENT_OR_BLANK = /^\s*(?:[#;].*)?$/;
/** Matches a line that the next one continues: it ends in an odd number of backslashes. */
const CONTINUED = /(?<!\\)(?:\\\\)*\\$/;
const ASSIGNMENT =
  /^\s*(?:export\s+)?(?<name>[A-Za-z_]\w*)=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>.*?))\s*$/;

/**
 * Reads a file in the format of systemd's EnvironmentFile: `NAME=value` lines, comments on lines of their own, and a
 * backslash at the end of a line that the next one continues. Quotes around a whole value are removed. Nothing else in
 * a value is special, so a password can contain # and $.
 */
function readEnvFile({ name: option, texts: [path = ""] }: Source): Variables {
  const variables: Record<string, string> = {};
  const lines = readTextFile(option, path).split(/\r?\n/);
  for (let index = 0; index < lines.length; index++) {
    const first = index + 1;
    let line = lines[index] ?? "";
    if (COMMENT_OR_BLANK.test(line)) continue;
    while (CONTINUED.test(line) && index + 1 < lines.length) line = line.slice(0, -1) + lines[++index];
    const { name, double, single, bare } = ASSIGNMENT.exec(line)?.groups ?? {};
    if (name === undefined) throw new UsageError(`line ${first} of ${quotedPath(path)} is not NAME=value`);
    variables[name] = double ?? single ?? bare ?? "";
  }
  return variables;
}

/** Matches the variables that Kubernetes sets in every pod for a service whose name begins with "petstore". */
const SERVICE_LINK =
  /^PETSTORE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_LINK_PORT = /^PETSTORE_(?:\w+_)?PORT$/;
const SERVICE_LINK_URL = /^(?:tcp|udp|sctp):\/\//;

const PORT_WARNING =
  "PETSTORE_PORT is ignored: Kubernetes sets it for a service named petstore; set enableServiceLinks: false, or use --port";

/** Removes those variables, and empty ones, which count as not set. */
function withoutServiceLinks(variables: Variables): Variables {
  const entries = Object.entries(variables).filter(([name, value = ""]) => {
    if (value === "" || SERVICE_LINK.test(name)) return false;
    return !(SERVICE_LINK_PORT.test(name) && SERVICE_LINK_URL.test(value));
  });
  return Object.fromEntries(entries);
}

/** The variables by which scripts select a remote server, and the one that has the API key of a client. */
const ELSEWHERE_VARIABLES = ["PETSTORE_SERVER", "PETSTORE_TOKEN", "PETSTORE_PLAIN_HTTP", "PETSTORE_KEY"];

/** Rejects unknown variables. PETSTORE_TEST_ variables are for the tests of this project. */
function rejectUnknownVariable(commandFlags: readonly string[], variables: Variables, location = ""): void {
  const settings = Object.keys(SETTINGS);
  const known = new Set([...settings.map(variableOf), ...ELSEWHERE_VARIABLES]);
  const unknown = Object.keys(variables).find((name) => /^PETSTORE_(?!TEST_)/.test(name) && !known.has(name));
  if (unknown === undefined) return;
  const flag = unknown.replace("PETSTORE_", "").toLowerCase().replaceAll("_", "-");
  const removed = REMOVED_SETTINGS.get(flag);
  if (removed !== undefined) throw new UsageError(`${unknown}${location} ${removed}`);
  if (commandFlags.includes(flag))
    throw new UsageError(`${unknown}${location} is not a setting of a server; use --${flag}`);
  const near = nearest(flag, settings);
  const suggestion = didYouMean(near && variableOf(near)) ?? "see petstore serve --help";
  throw new UsageError(`unknown variable ${quoted(unknown)}${location}; ${suggestion}`);
}
