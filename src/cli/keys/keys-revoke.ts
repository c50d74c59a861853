import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS, keyId } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { formatOptionalTime } from "../../contract/formatting.ts";
import { isKeyFailure } from "../../domain/key-management.ts";
import { defineCommand } from "../command.ts";
import { failureOf, keyManagement, withKey } from "./key-store.ts";
import { json } from "../output.ts";

export const keysRevoke = defineCommand({
  name: "keys revoke",
  summary: "Revoke an API key permanently",
  description:
    "Revokes a key: running servers reject it within a second. This cannot be undone. Revoking a key twice has no further effect.",
  positionals: { ID: keyId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore keys revoke 3"],
  async run({ positionals: { ID: id }, values }, context) {
    return withKey({ storage: storageOf(values), id }, async (_key, stores) => {
      const revoked = await keyManagement(stores, values.env, context).revoke(id);
      if (isKeyFailure(revoked)) return failureOf(revoked);
      const revokedAt = formatOptionalTime(revoked.key.revokedAt);
      const line = revoked.wasRevoked
        ? `Key ${id} was already revoked at ${revokedAt}.`
        : `Key ${id} is revoked.`;
      await context.print(values.json ? json({ id, revokedAt }) : `${line}\n`);
      return undefined;
    });
  },
});
