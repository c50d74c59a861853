import { storageOf } from "../config/config.ts";
import { KEY_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { defineCommand, Failure } from "./command.ts";
import { unbanKey } from "./key-usage.ts";
import { keyId, rejectInactive, withKey } from "./keys.ts";
import { formatTime, json } from "./output.ts";

const WITHOUT_VALKEY =
  "running servers unban the key themselves and update Valkey when it is available again; if no server is running, run this command again then";

export const keysUnban = defineCommand({
  name: "keys unban",
  summary: "End the ban of an API key",
  description:
    "Ends the ban of a key and resets its strikes; its next ban is a first one again. Running servers apply it within a second. Usage still counts, so the key may have reached its limit. It does not prevent a later ban.",
  positionals: { ID: keyId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore keys unban 3"],
  async run({ positionals: { ID: id }, values }, { clock, print }) {
    const storage = storageOf(values);
    return withKey({ storage, id }, async (key, { keys }) => {
      const now = clock.now();
      const inactive = rejectInactive(key, now, "unbanned");
      if (inactive) return inactive;
      await keys.updateKey(id, { unbannedAt: now });
      const unavailable = await unbanKey(storage, id, clock);
      if (unavailable) return new Failure(`${unavailable.reason}; ${WITHOUT_VALKEY}`);
      const line = `Key ${id} is not banned and has no strikes.`;
      await print(values.json ? json({ id, unbannedAt: formatTime(now) }) : `${line}\n`);
      return undefined;
    });
  },
});
