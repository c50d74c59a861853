import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS, keyId } from "../../config/key-options.ts";
import { ADDRESS_OPTIONS, STORAGE_OPTIONS } from "../../config/options.ts";
import { quoted } from "../../config/usage-error.ts";
import { formatTime } from "../../contract/formatting.ts";
import { isKeyFailure } from "../../domain/key-management.ts";
import { defineCommand } from "../command.ts";
import { failureOf, keyManagement, urlOf, withKey } from "./key-store.ts";
import { formatSecret, json } from "../output.ts";

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
  async run(input, context) {
    const { positionals, values } = input;
    const { ID: id } = positionals;
    return withKey({ storage: storageOf(values), id }, async (_key, stores) => {
      const rolled = await keyManagement(stores, values.env, context).roll(id, values.overlap);
      if (isKeyFailure(rolled)) return failureOf(rolled);
      const { key, secret } = rolled;
      const previousSecretsValidUntil = formatTime(rolled.overlapEndsAt);
      if (values.json) {
        const { name, plan } = key;
        await context.print(json({ id, key: secret, name, plan, previousSecretsValidUntil }));
      } else {
        const previous =
          values.overlap === 0 ? "are no longer valid" : `stay valid until ${previousSecretsValidUntil}`;
        const summary = `Key ${id} ${quoted(key.name)} has a new secret. Its previous secrets ${previous}.`;
        const url = urlOf(input, await stores.settings.readSettings());
        await context.print(`${summary}\n${formatSecret(secret, url)}`);
      }
      return undefined;
    });
  },
});
