import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS, keyId } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { formatOptionalTime } from "../../contract/formatting.ts";
import { isKeyFailure } from "../../domain/key-management.ts";
import { defineCommand, Failure } from "../command.ts";
import { unbanKey } from "./key-usage.ts";
import { failureOf, keyManagement, withKey } from "./key-store.ts";
import { json } from "../output.ts";

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
  async run({ positionals: { ID: id }, values }, context) {
    const storage = storageOf(values);
    return withKey({ storage, id }, async (_key, stores) => {
      const unbanned = await keyManagement(stores, values.env, context).unban(id);
      if (isKeyFailure(unbanned)) return failureOf(unbanned);
      const unavailable = await unbanKey(storage, id, context.clock);
      if (unavailable) return new Failure(`${unavailable.reason}; ${WITHOUT_VALKEY}`);
      const line = `Key ${id} is not banned and has no strikes.`;
      const unbannedAt = formatOptionalTime(unbanned.unbannedAt);
      await context.print(values.json ? json({ id, unbannedAt }) : `${line}\n`);
      return undefined;
    });
  },
});
