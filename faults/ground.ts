import { startPostgres } from "../test/engines/postgres.ts";
import type { Server } from "../test/engines/server.ts";
import { startValkey } from "../test/engines/valkey.ts";
import { Fleet } from "../test/instances/fleet.ts";
import type { Ground } from "./scenario.ts";

export interface TwoEngines extends Ground {
  readonly postgres: Server;
  readonly valkey: Server;
}

/** Servers on a PostgreSQL and a Valkey of their own, as they are in production: commits wait for the disk. */
export async function twoEngines({ servers }: { servers: number }): Promise<TwoEngines> {
  const [postgres, valkey] = await Promise.all([startPostgres({ durable: true }), startValkey()]);
  const fleet = await Fleet.start({
    size: servers,
    place: ["--database-url", postgres.url, "--limits-url", valkey.url],
  });
  return {
    fleet,
    postgres,
    valkey,
    async stop() {
      await fleet.stop();
      await Promise.all([postgres.stop(), valkey.stop()]);
    },
  };
}
