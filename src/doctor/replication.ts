import { type Replication, requiredStandbys } from "../store/postgres/replication.ts";
import { countOf, grouped } from "../text/formatting.ts";
import { check, type Finding } from "./finding.ts";

const replication = check("replication");
const TWO_STANDBYS =
  "run two standbys, and set synchronous_standby_names = 'ANY 1 (…)' with both names (docs/deployment.md)";

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
      `a commit needs ${needed === 1 ? "the one standby" : `all ${needed} standbys`} that it may wait for: without it, every write gets 503`,
      TWO_STANDBYS,
    );
  if (needed > 0) return replication.ok(`a commit waits for ${needed} of ${candidates} standbys`);
  return connectedStandbys.length > 0
    ? replication.ok(
        `no commit waits for a standby (connected: ${connected}): a promotion may lose the last writes`,
      )
    : replication.ok("there is no standby: backups are what protects against the loss of the machine");
}
