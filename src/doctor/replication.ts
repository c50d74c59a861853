import { type Replication, requiredStandbys } from "../store/postgres/replication.ts";
import { countOf, grouped } from "../text/formatting.ts";
import { check, type Finding } from "./finding.ts";

const replication = check("replication");
const ANOTHER_STANDBY =
  "connect another standby; with synchronous_standby_names = 'ANY 1 (…)' one of them is enough (docs/deployment.md)";

export function checkReplication(state: Replication): Finding {
  const { synchronousStandbyNames: setting, connectedStandbys, waitingCommits } = state;
  const { needed, candidates } = requiredStandbys(state);
  const connected = connectedStandbys.length === 0 ? "none" : connectedStandbys.join(", ");
  const restore = `start the standby, or set synchronous_standby_names to one that runs (it is '${setting}'; connected: ${connected})`;
  if (waitingCommits > 0)
    return replication.error(
      `${countOf(waitingCommits, "commit")} ${waitingCommits === 1 ? "waits" : "wait"} for a synchronous standby: every write gets 503`,
      restore,
    );
  if (candidates < needed)
    return replication.error(
      `a commit needs ${countOf(needed, "synchronous standby")}, and ${grouped(candidates)} of them ${candidates === 1 ? "is" : "are"} connected: every write gets 503`,
      restore,
    );
  if (needed > 0 && candidates === needed)
    return replication.warning(
      `a commit waits for ${needed === 1 ? "a standby, and only one is" : `${needed} standbys, and no more are`} connected: without ${needed === 1 ? "it" : "all of them"}, every write gets 503`,
      ANOTHER_STANDBY,
    );
  if (needed > 0) return replication.ok(`a commit waits for ${needed} of ${candidates} standbys`);
  return connectedStandbys.length > 0
    ? replication.ok(
        `no commit waits for a standby (connected: ${connected}): a promotion may lose the last writes`,
      )
    : replication.ok("there is no standby: backups are what protects against the loss of the machine");
}
