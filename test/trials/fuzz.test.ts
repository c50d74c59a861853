import { expect, test } from "bun:test";
import { runFuzz } from "../../trials/attacks/fuzz-run.ts";
import { NO_LIMITS, startService } from "../service.ts";

test("2,000 bad requests get declared statuses, and good requests among them get 200", async () => {
  const service = await startService({ policy: { plans: { anonymous: NO_LIMITS } } });
  const { problem, sent, statuses } = await runFuzz({
    url: service.url,
    key: service.key,
    seed: 20_261_115,
    count: 2_000,
    seconds: 600,
  });
  await service.stop();
  expect(problem).toBeUndefined();
  expect(sent).toBe(2_000);
  expect([...statuses.keys()]).toContainValues([200, 201, 400, 401, 404, 405, 415, 431, 505]);
}, 60_000);
