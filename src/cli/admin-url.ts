import { Rejection } from "../api/errors.ts";
import { storageOf } from "../config/config.ts";
import { DATABASE_OPTIONS } from "../config/options.ts";
import { OPERATOR_NAME } from "../domain/operators.ts";
import { defineCommand } from "./command.ts";
import { databaseExists } from "./operation-call.ts";
import { openQuotas } from "./quotas.ts";
import { findRunningServer } from "./running-server.ts";
import { RejectedCall } from "./server-call.ts";

export const adminUrl = defineCommand({
  name: "admin-url",
  summary: "Print a URL of the console that signs in whoever opens it first",
  description:
    "Prints the URL of the console with a code, which signs in once, within five minutes. Of several servers with this data directory, it is the one that started last; without any, it is one of those that share --limits-url. Before the URL is printed, that server has proven that it is one of this database. Treat the URL like a password.",
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
    const storage = storageOf(values);
    const { openEmptyStores, openStores } = await import("../adapters.ts");
    // Without a database, no server is running.
    const stores = await (databaseExists(storage) ? openStores(storage) : openEmptyStores());
    const servers = await openQuotas(storage, stores.keys, context);
    try {
      const { adminUrl: url } = await findRunningServer(storage, { ...stores, servers });
      const { createSignInUrl } = await import("../operator/token.ts");
      const { operators } = stores;
      const signInUrl = await createSignInUrl({
        url,
        operators,
        clock,
        operator: values.operator,
        madeBy: `admin-url (${user})`,
      });
      if (signInUrl instanceof Rejection) throw new RejectedCall(signInUrl);
      return `${signInUrl}\n`;
    } finally {
      await servers.close();
      await stores.close();
    }
  },
});
