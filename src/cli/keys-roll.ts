import { storageOf } from "../config/config.ts";
import { ADDRESS_OPTIONS, KEY_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { quoted } from "../config/usage-error.ts";
import { generateSecret, hashSecret } from "../domain/api-keys.ts";
import { defineCommand } from "./command.ts";
import { keyId, rejectInactive, urlOf, withKey } from "./keys.ts";
import { formatSecret, formatTime, json } from "./output.ts";

export const keysRoll = defineCommand({
  name: "keys roll",
  summary: "Give an API key a new secret and print it",
  description:
    "Gives a key a new secret and prints it. The previous secrets stay valid for --overlap, so that clients can change to the new one without a failed request. The key keeps its plan, usage, strikes and ban.",
  positionals: { ID: keyId },
  options: { overlap: KEY_OPTIONS.overlap, ...STORAGE_OPTIONS, json: KEY_OPTIONS.json, ...ADDRESS_OPTIONS },
  savedOptions: ADDRESS_OPTIONS,
  examples: [
    "petstore keys roll 3",
    "petstore keys roll 3 --overlap 0   # the previous secrets stop working at once",
  ],
  async run(input, { clock, print }) {
    const { positionals, values } = input;
    const { ID: id } = positionals;
    return withKey({ storage: storageOf(values), id }, async (key, { keys, settings }) => {
      const now = clock.now();
      const inactive = rejectInactive(key, now, "rolled");
      if (inactive) return inactive;
      const secret = generateSecret(values.env);
      // 0 is in the past on every machine, also where the clock is behind.
      const overlapEndsAt = values.overlap === 0 ? 0 : now + values.overlap;
      await keys.addSecret(id, hashSecret(secret), overlapEndsAt);

      const previousSecretsValidUntil = formatTime(now + values.overlap);
      if (values.json) {
        await print(json({ id, key: secret, name: key.name, plan: key.plan, previousSecretsValidUntil }));
      } else {
        const previous =
          values.overlap === 0 ? "are no longer valid" : `stay valid until ${previousSecretsValidUntil}`;
        const summary = `Key ${id} ${quoted(key.name)} has a new secret. Its previous secrets ${previous}.`;
        await print(`${summary}\n${formatSecret(secret, urlOf(input, await settings.readSettings()))}`);
      }
      return undefined;
    });
  },
});
