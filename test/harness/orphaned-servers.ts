import { startPostgres } from "../../harness/postgres.ts";
import { startValkey } from "../../harness/valkey.ts";

/** Starts servers, prints their process identifiers, and waits to be killed. */
const servers = [await startPostgres(), await startValkey(), await startValkey()];
servers.at(-1)?.freeze();
console.log(JSON.stringify(servers.map(({ pid }) => pid)));
setInterval(() => {}, 1_000);
