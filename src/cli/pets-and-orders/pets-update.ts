import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { PET_UPDATE_OPTIONS } from "../../config/pet-options.ts";
import { petId } from "../../config/pet-types.ts";
import { UsageError } from "../../config/usage-error.ts";
import type { Pet } from "../../contract/resources.ts";
import type { PetChange } from "../../domain/corrections.ts";
import { defineCommand } from "../command.ts";
import { by, withTarget } from "./stores.ts";
import { exactJson, petTable, petView } from "./views.ts";

export const petsUpdate = defineCommand({
  name: "pets update",
  summary: "Correct the name, category or status of a pet",
  description:
    "Changes the given fields of a pet. Running servers show the change within a second. A pet with a placed order keeps its status: complete or cancel the order first. The change is in the audit trail.",
  positionals: { ID: petId },
  options: { ...PET_UPDATE_OPTIONS, ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: [
    "petstore pets update 7 --name Rex",
    "petstore pets update 7 --category 12 --status available",
    "petstore pets update 7 --status none",
  ],
  async run({ positionals: { ID: id }, values }, { clock, user, print }) {
    const { name, category, status } = values;
    const change: PetChange = {
      ...(name !== undefined && { name }),
      ...(category !== undefined && { categoryId: category }),
      ...(status !== undefined && { status: status === "none" ? null : status }),
    };
    if (Object.keys(change).length === 0) {
      return new UsageError("pets update needs --name, --category or --status");
    }
    return withTarget<Pet>(
      { storage: storageOf(values), kind: "pet", id },
      ({ operators }) => operators.updatePet(id, change, by({ clock, user })),
      (pet) => print(values.json ? exactJson(petView(pet)) : petTable([pet])),
    );
  },
});
