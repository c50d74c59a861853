import { storageOf } from "../config/config.ts";
import { KEY_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { defineCommand } from "./command.ts";
import { keyId, withKey } from "./keys.ts";
import { formatTime, json } from "./output.ts";

export const keysRevoke = defineCommand({
  name: "keys revoke",
  summary: "Revoke an API key permanently",
  description:
    "Revokes a key: running servers reject it within a second. This cannot be undone. Revoking a key twice has no further effect.",
  positionals: { ID: keyId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore keys revoke 3"],
  async run({ positionals: { ID: id }, values }, { clock, print }) {
    return withKey({ storage: storageOf(values), id }, async (key, { keys }) => {
      const revokedAt = key.revokedAt ?? clock.now();
      if (key.revokedAt === undefined) await keys.updateKey(id, { revokedAt });
      const line =
        key.revokedAt === undefined
          ? `Key ${id} is revoked.`
          : `Key ${id} was already revoked at ${formatTime(revokedAt)}.`;
      await print(values.json ? json({ id, revokedAt: formatTime(revokedAt) }) : `${line}\n`);
      return undefined;
    });
  },
});
