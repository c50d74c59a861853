import { join } from "node:path";
import { parseJson, toJson } from "../api/json.ts";
import { serverOrigin } from "../config/address-types.ts";
import { type Flags, parseValue, sourceOf, type Variables } from "../config/parse-options.ts";
import { adminToken } from "../config/value-types.ts";
import { replaceFile } from "../runtime/own-files.ts";
import { DATA_FLAGS } from "./service-file.ts";
import { readIfPresent } from "./terminal.ts";

/** The servers that the user has logged in to. */
interface Logins {
  /** The server where commands work. */
  readonly current: string | undefined;
  readonly tokens: Readonly<Record<string, string>>;
}

/** Undefined for a user without a home directory. The standard of XDG_CONFIG_HOME ignores a relative path. */
export function loginFile({ XDG_CONFIG_HOME: config, HOME: home }: Variables): string | undefined {
  const directory = config?.startsWith("/") ? config : home && join(home, ".config");
  return directory && join(directory, "petstore", "login.json");
}

/** A file that is missing, is another user's or has something else in it has no logins. */
export function readLogins(variables: Variables): Logins {
  const file = loginFile(variables);
  const { current, tokens }: { current?: unknown; tokens?: unknown } = Object(
    file && parseJson(readIfPresent(file)),
  );
  const valid = Object.entries(Object(tokens)).filter(
    (each): each is [string, string] => typeof each[1] === "string" && adminToken.parse(each[1]) === each[1],
  );
  return {
    current: valid.map(([server]) => server).find((server) => server === current),
    tokens: Object.fromEntries(valid),
  };
}

export function saveLogins(file: string, logins: Logins): void {
  replaceFile(file, `${toJson(logins, 2)}\n`);
}

/**
 * The variables of a command that can work on a remote server. The login sets the server if nothing else says where
 * the command works, and the token of each server that the user has logged in to. A token goes to its server only.
 */
export function withLogin(
  flags: Flags,
  variables: Variables,
): { readonly variables: Variables; readonly loginServer?: string } {
  const [given] = sourceOf("server", flags, variables)?.texts ?? [];
  const isHere = given === undefined && DATA_FLAGS.some((flag) => sourceOf(flag, flags, variables));
  const { current, tokens } = readLogins(variables);
  const server = given === undefined ? current : serverOrigin.parse(given);
  if (isHere || server === undefined) return { variables };
  const { PETSTORE_TOKEN: token = tokens[server] } = variables;
  if (token !== undefined) parseValue("PETSTORE_TOKEN", token, adminToken);
  return {
    variables: {
      ...variables,
      PETSTORE_SERVER: server,
      ...(token !== undefined && { PETSTORE_ADMIN_TOKEN: token, PETSTORE_ADMIN_TOKEN_FILE: "" }),
      ...(server in tokens && { PETSTORE_PLAIN_HTTP: "true" }),
    },
    ...(given === undefined && { loginServer: server }),
  };
}
