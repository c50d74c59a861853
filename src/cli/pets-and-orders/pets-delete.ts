import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { petId } from "../../config/pet-types.ts";
import { printable } from "../../config/usage-error.ts";
import type { Pet } from "../../contract/resources.ts";
import { defineCommand } from "../command.ts";
import { by, withTarget } from "./stores.ts";
import { exactJson, petView } from "./views.ts";

export const petsDelete = defineCommand({
  name: "pets delete",
  summary: "Delete a pet that was never ordered",
  description:
    "Deletes a pet. It cannot be undone, and the ID is not used again. Running servers respond 404 within a second. A pet that has ever been ordered is kept, because its orders name it. The deletion is in the audit trail, with the pet as it was.",
  positionals: { ID: petId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore pets delete 7"],
  async run({ positionals: { ID: id }, values }, { clock, user, print }) {
    return withTarget<Pet>(
      { storage: storageOf(values), kind: "pet", id },
      ({ operators }) => operators.deletePet(id, by({ clock, user })),
      (pet) =>
        print(values.json ? exactJson(petView(pet)) : `Pet ${id} (${printable(pet.name)}) is deleted.\n`),
    );
  },
});
