import { startPostgres } from "./postgres.ts";
import { startValkey } from "./valkey.ts";

/** Starts servers, says which, and waits to be killed. */
const servers = [await startPostgres(), await startValkey(), await startValkey()];
servers.at(-1)?.freeze();
console.log(JSON.stringify(servers.map(({ pid }) => pid)));
setInterval(() => {}, 1_000);
