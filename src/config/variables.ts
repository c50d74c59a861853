import { nearest } from "./nearest.ts";
import { OPTIONS } from "./options.ts";
import { type Flags, type Source, sourceOf, variableOf, type Variables } from "./parse-options.ts";
import { readTextFile } from "./text-file.ts";
import { quoted, quotedPath, UsageError } from "./usage-error.ts";

export interface CheckedVariables {
  /** Those of the process, and those of --env-file that the process does not have. */
  readonly variables: Variables;
  /** The names of those that are from the file. */
  readonly envFileVariables: ReadonlySet<string>;
  readonly warnings: readonly string[];
}

/** Adds the variables of --env-file, and rejects every PETSTORE_ variable that is not a setting. */
export function checkVariables(flags: Flags, variables: Variables): CheckedVariables | UsageError {
  const own = withoutServiceLinks(variables);
  const fileVariables = readEnvFile(sourceOf("env-file", flags, own));
  if (fileVariables instanceof UsageError) return fileVariables;
  const unknown = unknownVariable(own);
  if (unknown) return unknown;
  const isPortDropped = variables["PETSTORE_PORT"] && own["PETSTORE_PORT"] === undefined;
  return {
    variables: { ...fileVariables, ...own },
    envFileVariables: new Set(Object.keys(fileVariables).filter((name) => own[name] === undefined)),
    warnings: isPortDropped ? [PORT_WARNING] : [],
  };
}

const COMMENT_OR_BLANK = /^\s*(?:#.*)?$/;
const ASSIGNMENT =
  /^\s*(?:export\s+)?(?<name>[A-Za-z_]\w*)=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>.*?))\s*$/;

/**
 * The format of systemd's EnvironmentFile: `NAME=value` lines, and comments on lines of their own. Quotes around a
 * whole value are removed; nothing else in a value has a meaning, so a password can contain # and $.
 */
function readEnvFile(source: Source | undefined): Variables | UsageError {
  if (source === undefined) return {};
  const [path = "", ...others] = source.texts;
  if (others.length > 0) return new UsageError(`${source.name} is given more than once`);
  const text = readTextFile(source.name, path);
  if (text instanceof UsageError) return text;
  const variables: Record<string, string> = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (COMMENT_OR_BLANK.test(line)) continue;
    const { name, double, single, bare } = ASSIGNMENT.exec(line)?.groups ?? {};
    if (name === undefined)
      return new UsageError(`line ${index + 1} of ${quotedPath(path)} is not NAME=value`);
    variables[name] = double ?? single ?? bare ?? "";
  }
  return unknownVariable(variables, ` in ${quotedPath(path)}`) ?? variables;
}

/** What Kubernetes sets in every pod for a service whose name begins with "petstore". */
const SERVICE_LINK =
  /^PETSTORE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_LINK_PORT = /^PETSTORE_(?:\w+_)?PORT$/;
const SERVICE_LINK_URL = /^(?:tcp|udp|sctp):\/\//;

const PORT_WARNING =
  "PETSTORE_PORT is ignored: Kubernetes sets it for a service named petstore; set enableServiceLinks: false, or use --port";

/** Also drops empty variables, which count as not set. */
function withoutServiceLinks(variables: Variables): Variables {
  const entries = Object.entries(variables).filter(([name, value = ""]) => {
    if (value === "" || SERVICE_LINK.test(name)) return false;
    return !(SERVICE_LINK_PORT.test(name) && SERVICE_LINK_URL.test(value));
  });
  return Object.fromEntries(entries);
}

const FLAGS = Object.keys(OPTIONS);

/** PETSTORE_TEST_ variables are for the tests of this project. */
function unknownVariable(variables: Variables, place = ""): UsageError | undefined {
  const isUnknown = (name: string) =>
    /^PETSTORE_(?!TEST_)/.test(name) && !FLAGS.map(variableOf).includes(name);
  const unknown = Object.keys(variables).find(isUnknown);
  if (unknown === undefined) return undefined;
  const flag = nearest(unknown.replace("PETSTORE_", "").toLowerCase().replaceAll("_", "-"), FLAGS);
  const suggestion = flag ? `did you mean ${variableOf(flag)}?` : "see petstore --help";
  return new UsageError(`unknown variable ${quoted(unknown)}${place}; ${suggestion}`);
}
