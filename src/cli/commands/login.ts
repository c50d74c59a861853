import { printable } from "../../text/formatting.ts";
import { dataLocationOf } from "../../config/storage.ts";
import { NoDatabase } from "../../data-location.ts";
import { serverOrigin } from "../../config/address-types.ts";
import { UsageError } from "../../config/usage-error.ts";
import { readTextFile } from "../../config/read-file.ts";
import { SECRET_PREFIX } from "../../domain/secrets.ts";
import { adminToken, file, optional } from "../../config/value-types.ts";
import { defineCommand, Failure } from "../command.ts";
import { loginFile, readLogins, saveLogins } from "../login-file.ts";
import { CALL_OPTIONS, PLAIN_HTTP_OPTION, RejectedCall } from "../calls/call.ts";
import { callServer, rejectPlainHttp, type RemoteServer } from "../calls/remote-server.ts";
import { columns, json } from "../output.ts";

/** What a server says of a token: who has it, and in which environment. */
async function identify(remote: RemoteServer) {
  const { signedIn, ...session } = await callServer(remote, "getSession");
  if (!signedIn) throw new Failure(await rejectionOf(remote));
  // A server of an earlier release does not name the operator.
  const { operator = null } = session;
  return { server: remote.server, ...session, operator };
}

/** Trades a code for the token of a session. */
async function tokenOf(server: string, code: string): Promise<string> {
  const remote = { server, token: code };
  const body = { code, credential: "token" } as const;
  const { token } = await callServer(remote, "createSession", { body });
  if (token === undefined) throw new Failure(`${server} does not take codes on the command line`);
  return token;
}

/** Every operation that needs a token says what is wrong with it. */
async function rejectionOf(remote: RemoteServer): Promise<string> {
  const rejected = `${remote.server} does not accept the token`;
  const reason = await callServer(remote, "getServer").catch((error: unknown) => error);
  return reason instanceof RejectedCall ? `${rejected}: ${reason.message}` : rejected;
}

export const login = defineCommand({
  name: "login",
  summary: "Work on a remote server from now on",
  description:
    "Asks for your token without showing it, or reads it from standard input, and checks it on the server. From then on, commands about keys, usage, pets, orders, operators and servers work there; those about a machine, such as backup, still work here, as do all with --data or --database-url. You can be logged in to several servers: commands work on the last one, and --server names another. Those who sign in to the console with the company's sign-in have no token: the console makes a code on its page of settings, which logs in until their sign-in ends, at most 12 hours. The token is kept in petstore/login.json in XDG_CONFIG_HOME or ~/.config, readable by you only. In scripts, set PETSTORE_SERVER and PETSTORE_TOKEN instead.",
  data: "nothing",
  positionals: { URL: serverOrigin },
  options: {
    "token-file": { type: file, help: "File that contains the token" },
    ...PLAIN_HTTP_OPTION,
  },
  examples: [
    "petstore login https://admin.example.com",
    "petstore login https://admin.example.com --token-file token.txt",
  ],
  async run({ positionals: { URL: server }, values }, context) {
    const { variables } = context;
    const path = loginFile(variables);
    if (path === undefined)
      throw new UsageError("there is nowhere to keep the login: set HOME or XDG_CONFIG_HOME");
    rejectPlainHttp(server, values);
    const given = values["token-file"];
    const text =
      given === undefined
        ? await context.readSecret(`Token for ${server}: `)
        : readTextFile("--token-file", given);
    const typed = adminToken.parse(text.trim());
    if (typed === undefined) throw new Failure(`that is not a token: it has ${adminToken.expected}`);
    const token = typed.startsWith(SECRET_PREFIX.code) ? await tokenOf(server, typed) : typed;
    const found = await identify({ server, token });
    saveLogins(path, { current: server, tokens: { ...readLogins(variables).tokens, [server]: token } });
    if (variables["PETSTORE_TOKEN"]) context.warn("PETSTORE_TOKEN is set, and overrides this login");
    const who = found.operator ? ` as ${found.operator.name}, ${found.operator.role}` : "";
    return `You are logged in to ${server} (${found.environment})${printable(who)}.\nCommands about the service work there until petstore logout.\n`;
  },
});

export const logout = defineCommand({
  name: "logout",
  summary: "Forget the token of a server, and work on the data here again",
  description:
    "Removes the token that petstore login has kept on this machine: that of URL, or of the server where commands work now. The token stays valid; petstore operators rotate replaces it. A login by a code ends on the server, too.",
  data: "nothing",
  positionals: { URL: optional(serverOrigin) },
  options: {},
  examples: ["petstore logout", "petstore logout https://admin.example.com"],
  async run({ positionals: { URL: url } }, { variables }) {
    const path = loginFile(variables);
    const { current, tokens } = readLogins(variables);
    const server = url ?? current ?? "";
    const { [server]: token, ...others } = tokens;
    if (path === undefined || token === undefined)
      throw new Failure(`you are not logged in${server && ` to ${server}`}`);
    saveLogins(path, { current: server === current ? undefined : current, tokens: others });
    if (!token.startsWith(SECRET_PREFIX.session))
      return `The token of ${server} is removed from this machine. It stays valid.\n`;
    const remote = { server, token };
    const failure = await callServer(remote, "deleteSession").catch((error: unknown) => error);
    return failure instanceof RejectedCall
      ? `The login is removed from this machine. ${server} did not end it (${failure.message}): it ends at most 12 hours after the sign-in.\n`
      : `The login to ${server} has ended.\n`;
  },
});

export const whoami = defineCommand({
  name: "whoami",
  summary: "Show where commands work, and as which operator",
  description:
    "Shows the server where commands about the service work, its environment, and the operator and the role that the token has there. The exit status is 1 if they work on the data here, or if the server does not accept the token.",
  data: "locates",
  options: CALL_OPTIONS,
  examples: ["petstore whoami", "petstore whoami --server https://admin.example.com --json"],
  async run({ values }) {
    const { server, "admin-token": token } = values;
    if (server === undefined) {
      const location = dataLocationOf(values);
      const here = location.mayHaveDatabase()
        ? `commands work on ${location.name}`
        : new NoDatabase(location).message;
      throw new Failure(`you are not logged in; ${here}`);
    }
    rejectPlainHttp(server, values);
    if (token === undefined) throw new Failure(`you are not logged in to ${server}`);
    const found = await identify({ server, token });
    const { environment = "-", version = "-", operator } = found;
    const rows = [
      ["Server", server],
      ["Environment", environment],
      ["Operator", operator?.name ?? "-"],
      ["Role", operator?.role ?? "-"],
      ["Version", version],
    ];
    return values.json ? json(found) : columns(rows);
  },
});
