/* What every part of a server is made of. */

import type { Adapters } from "../adapters/open-adapters.ts";
import type { ReportingRegister } from "../background/server-register.ts";
import type { Environment } from "../domain/environments.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Log } from "../observe/log.ts";

export interface ServerContext {
  readonly adapters: Adapters;
  readonly environment: Environment;
  readonly clock: Clock;
  readonly log: Log;
  /** All servers on the database, and which of them this server is. */
  readonly servers: ReportingRegister;
}

export interface Closable {
  close(): void | Promise<void>;
}
