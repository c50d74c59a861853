import { writeJson } from "./exact-json.ts";
import { options } from "./orval-client.ts";
import { createPet, getOrder, listPets, placeOrder, updateOrder } from "./orval/petstore.ts";
import { report } from "./report.ts";

const newPet = { name: "Mia", categoryId: 9007199254740993n };
const created = await createPet(newPet, options);
const second = await createPet(newPet, options);
if (created.status !== 201 || second.status !== 201) throw new Error(writeJson(created));
const listed = await listPets({ id: [created.data.id, second.data.id] }, options);
if (listed.status !== 200) throw new Error(writeJson(listed));
const placed = await placeOrder({ petId: created.data.id }, options);
if (placed.status !== 201) throw new Error(writeJson(placed));
const completed = await updateOrder(placed.data.id, { status: "completed" }, options);
if (completed.status !== 200) throw new Error(writeJson(completed));
const missing = await getOrder(9000000n, options);

report({
  pet: created.data,
  pets: listed.data,
  completed: completed.data,
  errorCode: missing.status === 404 ? missing.data.code : undefined,
});
