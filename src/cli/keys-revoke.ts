import { KEY_OPTIONS, PLACE, placeOf } from "../config.ts";
import { define } from "./define.ts";
import { withKey } from "./key-access.ts";
import { keyId } from "./key-id.ts";
import { json, rfc3339 } from "./key-view.ts";

export const keysRevoke = define({
  name: "keys revoke",
  summary: "End a key for good",
  description:
    "Revokes a key: within a second no running server accepts it any more, and nothing brings it back. Revoking it again changes nothing.",
  positionals: { ID: keyId },
  options: { ...PLACE, json: KEY_OPTIONS.json },
  required: [],
  asServed: {},
  examples: ["petstore keys revoke 3"],
  async run({ positionals: { ID: id }, values }, { clock, print }) {
    return withKey({ place: placeOf(values), id }, async (key, keys) => {
      const before = key.revokedAt;
      const revokedAt = before ?? clock.now();
      if (before === undefined) await keys.updateKey(id, { revokedAt });
      const line =
        before === undefined
          ? `Key ${id} is revoked.`
          : `Key ${id} was revoked already, at ${rfc3339(before)}.`;
      await print(values.json ? json({ id, revokedAt: rfc3339(revokedAt) }) : `${line}\n`);
      return undefined;
    });
  },
});
