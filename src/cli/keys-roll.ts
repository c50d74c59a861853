import { ADDRESS, expectedUrl, KEY_OPTIONS, PLACE, placeOf } from "../config.ts";
import { quoted } from "../config/problem.ts";
import { hashSecret, generateSecret } from "../domain/api-keys.ts";
import { define } from "./define.ts";
import { endOf, withKey } from "./key-access.ts";
import { keyId } from "./key-id.ts";
import { json, rfc3339 } from "./key-view.ts";
import { shownOnce } from "./secret.ts";

export const keysRoll = define({
  name: "keys roll",
  summary: "Give a key a new secret and print it, once",
  description:
    "Gives a key a new secret. The secrets before it go on working for a while, so that clients can change over without a failed request. Plan, counts, strikes and bans belong to the key and stay.",
  positionals: { ID: keyId },
  options: { overlap: KEY_OPTIONS.overlap, ...PLACE, json: KEY_OPTIONS.json, ...ADDRESS },
  required: [],
  asServed: ADDRESS,
  examples: ["petstore keys roll 3", "petstore keys roll 3 --overlap 0   # the old secret stops at once"],
  async run({ positionals: { ID: id }, values }, { clock, print }) {
    return withKey({ place: placeOf(values), id }, async (key, keys) => {
      const now = clock.now();
      const ended = endOf(key, now, "rolled");
      if (ended) return ended;
      const secret = generateSecret(values.env);
      // None at all ends before anybody's clock.
      const overlapEndsAt = values.overlap === 0 ? 0 : now + values.overlap;
      await keys.addSecret(id, hashSecret(secret), overlapEndsAt);

      const earlierWorkUntil = rfc3339(now + values.overlap);
      if (values.json)
        await print(json({ id, key: secret, name: key.name, plan: key.plan, earlierWorkUntil }));
      else {
        const earlier = values.overlap === 0 ? "stopped working" : `work until ${earlierWorkUntil}`;
        const about = `Key ${id} ${quoted(key.name)} has a new secret; earlier ones ${earlier}.`;
        await print(`${about}\n${shownOnce(secret, expectedUrl(values))}`);
      }
      return undefined;
    });
  },
});
