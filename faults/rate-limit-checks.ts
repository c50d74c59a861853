import { rateLimitStatus } from "../harness/api-client.ts";
import { sendBurst } from "../harness/burst.ts";
import type { Fleet } from "../harness/fleet.ts";
import { outageLines } from "./figures.ts";
import type { Findings } from "./scenario.ts";

/** Of the Free plan. */
const PER_MINUTE = 60;

/** Without Valkey, each server allows an unused key its whole limit, and a key over its limit nothing. */
export async function limitsWithoutValkey(fleet: Fleet): Promise<() => Promise<Findings>> {
  const { key: exceededKey } = await fleet.createKey("free");
  const { key: unusedKey } = await fleet.createKey("free");
  for (const url of fleet.urls) while ((await rateLimitStatus(url, exceededKey)).status === 200);
  return async () => {
    const [exceeded, unused] = [await countAllowed(fleet, exceededKey), await countAllowed(fleet, unusedKey)];
    const servers = fleet.urls.length;
    const expected = PER_MINUTE * servers;
    const note = `a Free key over its limit was allowed ${exceeded} more requests, an unused one ${unused}`;
    return {
      notes: [`${note} on ${servers} servers`],
      problems: exceeded === 0 && unused === expected ? [] : [`${note} instead of ${expected}`],
    };
  };
}

/** Of a few more requests than the limit, on every server. */
async function countAllowed(fleet: Fleet, key: string): Promise<number> {
  let allowed = 0;
  for (const url of fleet.urls) {
    for (let sent = 0; sent < PER_MINUTE + 5; sent++) {
      if ((await rateLimitStatus(url, key)).status === 200) allowed++;
    }
  }
  return allowed;
}

/**
 * All servers together allow 60 requests of each burst. A server that logs that Valkey is unavailable, as may happen
 * on a machine that a burst saturates, allows up to 60 on its own.
 */
export async function checkBursts(fleet: Fleet): Promise<Findings> {
  const countOutages = () => outageLines(fleet.logs.flat(), "Valkey").length;
  const allowed: number[] = [];
  const problems: string[] = [];
  for (let burst = 0; burst < 5; burst++) {
    const { key } = await fleet.createKey("free");
    const outagesBefore = countOutages();
    const responses = await sendBurst(fleet.ports, key, 2_000);
    const count = responses.filter(({ status }) => status === 200).length;
    const most = PER_MINUTE * (1 + countOutages() - outagesBefore);
    if (count < PER_MINUTE || count > most)
      problems.push(`${count} requests were allowed instead of ${most}`);
    allowed.push(count);
  }
  const note = `of 2,000 concurrent requests on a Free key, allowed: ${allowed.join(", ")}`;
  return { notes: [`${note}; Valkey was logged as unavailable ${countOutages()} ×`], problems };
}

/** Without PostgreSQL, a verified key is still recognised: the response is 503, with the key's own limit. */
export async function checkVerifiedKey(fleet: Fleet, key: string, limit: number): Promise<Findings> {
  const statuses = await Promise.all(fleet.urls.map((url) => rateLimitStatus(url, key)));
  const isRecognised = statuses.every((each) => each.code === "unavailable" && each.limit === limit);
  return isRecognised
    ? { notes: ["a verified key gets 503, with its own limit"], problems: [] }
    : { notes: [], problems: [`a verified key gets ${JSON.stringify(statuses)}`] };
}
