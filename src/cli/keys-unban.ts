import { KEY_OPTIONS, PLACE, placeOf } from "../config.ts";
import { Failure } from "./command.ts";
import { define } from "./define.ts";
import { endOf, withKey } from "./key-access.ts";
import { unbanKey } from "./standings.ts";
import { keyId } from "./key-id.ts";
import { json, rfc3339 } from "./key-view.ts";

/** What becomes of a unban that Valkey could not be told of. */
const HANDED_OVER =
  "servers that run now lift the ban on their own and tell Valkey when it is back; if none does, run this again then";

export const keysUnban = define({
  name: "keys unban",
  summary: "Lift a key's ban",
  description:
    "Lifts the ban that a key has now and forgives its strikes; a running server follows within a second. What the key has used still counts, so it may find its limit exhausted. A later ban stands.",
  positionals: { ID: keyId },
  options: { ...PLACE, json: KEY_OPTIONS.json },
  required: [],
  asServed: {},
  examples: ["petstore keys unban 3"],
  async run({ positionals: { ID: id }, values }, { clock, print }) {
    const place = placeOf(values);
    return withKey({ place, id }, async (key, keys) => {
      const unbannedAt = clock.now();
      const ended = endOf(key, unbannedAt, "unbanned");
      if (ended) return ended;
      await keys.updateKey(id, { unbannedAt });
      const failure = await unbanKey(place, id, { at: unbannedAt, clock });
      if (failure) return new Failure(`${failure.unknown}; ${HANDED_OVER}`);
      const shown = { id, unbannedAt: rfc3339(unbannedAt) };
      await print(values.json ? json(shown) : `Key ${id}: bans and strikes up to now are lifted.\n`);
      return undefined;
    });
  },
});
