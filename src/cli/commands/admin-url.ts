import { hostname } from "node:os";
import { Rejection } from "../../api/errors.ts";
import { dataLocationOf } from "../../config/storage.ts";
import { isLoopback } from "../../runtime/ip-network.ts";
import { DATABASE_OPTIONS } from "../../config/options.ts";
import { OPERATOR_NAME } from "../../domain/operators.ts";
import type { ServerState } from "../../domain/servers.ts";
import { openRegister } from "../../background/server-register.ts";
import { defineCommand, Failure } from "../command.ts";
import { noServer } from "../calls/running-server.ts";
import { RejectedCall } from "../calls/call.ts";

export const adminUrl = defineCommand({
  name: "admin-url",
  summary: "Print a URL of the console that signs in whoever opens it first",
  description:
    "Prints the URL of the console with a code, which signs in once, within five minutes. It is that of a running server of this machine, or else of one on another machine whose --admin-address is not a loopback address. Treat the URL like a password.",
  data: "changes",
  options: {
    operator: {
      type: {
        placeholder: "NAME",
        expected: "the name of an operator, as petstore operators list shows it",
        parse: (text) => (OPERATOR_NAME.test(text) ? text : undefined),
      },
      defaultText: "the first admin",
      help: "The operator to sign in",
    },
    ...DATABASE_OPTIONS,
  },
  examples: ["petstore admin-url", "petstore admin-url --operator ann --env staging"],
  async run({ values }, context) {
    const { clock, user = "unknown" } = context;
    const location = dataLocationOf(values);
    const { openStores } = await import("../../adapters/open-stores.ts");
    const stores = await openStores(location, { use: "existing" });
    try {
      const servers = await openRegister(stores.serverReports, clock).list();
      if (servers.length === 0) throw new Failure(noServer(location, false));
      const reachable = reachableFrom(hostname(), servers);
      if (reachable.length === 0)
        throw new Failure(
          `${describeListeners(servers)} in ${location.name}; run this command on the machine of a server, or set --admin-address there`,
        );
      const { askServers } = await import("../../operator/ask-servers.ts");
      const { createSignInUrl } = await import("../../operator/sign-in/code.ts");
      // Another program may have taken the port of a server that was killed, and must not get a code.
      const ids = reachable.map(({ id }) => id);
      const answers = await askServers(ids, "getServer", stores);
      const running = reachable.find((_, i) => typeof answers[i] === "object");
      if (!running) throw new Failure(noServer(location, true));
      const { operators } = stores;
      const signInUrl = await createSignInUrl({
        url: running.adminUrl,
        operators,
        clock,
        operator: values.operator,
        madeBy: `admin-url (${user})`,
      });
      if (signInUrl instanceof Rejection) throw new RejectedCall(signInUrl);
      return `${signInUrl}\n`;
    } finally {
      await stores.close();
    }
  },
});

/** The maximum of servers that are asked. */
const MAX_ASKED = 10;

/** Lists the servers whose listener can be reached from a machine: first those on it, then those that started last. */
function reachableFrom(machine: string, servers: readonly ServerState[]) {
  return servers
    .flatMap(({ id, name, startedAt, adminUrl }) =>
      adminUrl && (name === machine || !isLoopback(new URL(adminUrl).hostname))
        ? [{ id, startedAt, adminUrl, distance: name === machine ? 0 : 1 }]
        : [],
    )
    .toSorted((one, other) => one.distance - other.distance || other.startedAt - one.startedAt)
    .slice(0, MAX_ASKED);
}

/** Says why none of the servers can be reached. */
function describeListeners(servers: readonly ServerState[]): string {
  const urls = servers.flatMap(({ name, adminUrl }) => (adminUrl ? `${adminUrl} on ${name}` : []));
  return urls.length === 0
    ? "--admin-address is off on every server"
    : `the servers listen for operators on loopback addresses of other machines (${urls.slice(0, MAX_ASKED).join(", ")})`;
}
