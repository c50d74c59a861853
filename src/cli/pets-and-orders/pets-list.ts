import { describeStorage, storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { PET_LIST_OPTIONS } from "../../config/pet-options.ts";
import { defineCommand } from "../command.ts";
import { withPetStores } from "./stores.ts";
import { exactJson, petTable, petView } from "./views.ts";

export const petsList = defineCommand({
  name: "pets list",
  summary: "List the pets",
  description:
    "Lists the pets of an environment in ascending order of their IDs. When more follow, the last line says how to continue.",
  options: { ...PET_LIST_OPTIONS, ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore pets list", "petstore pets list --status sold --after 50 --json"],
  async run({ values }, { print }) {
    const storage = storageOf(values);
    const { status, after, limit } = values;
    const query = { limit, ...(status !== undefined && { status }), ...(after !== undefined && { after }) };
    const page = await withPetStores(storage, async ({ store }) => store.listPets(query));
    const { items, hasMore } = page ?? { items: [], hasMore: false };
    if (values.json) await print(exactJson(items.map(petView)));
    else if (items.length > 0) {
      await print(petTable(items) + (hasMore ? `More pets follow: add --after ${items.at(-1)?.id}\n` : ""));
    } else {
      const isFiltered = status !== undefined || after !== undefined;
      const such = isFiltered ? "such pets" : "pets";
      await print(`There are no ${such} in ${values.env} (data: ${describeStorage(storage).data}).\n`);
    }
    return undefined;
  },
});
