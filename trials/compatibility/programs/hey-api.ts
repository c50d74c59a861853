import { createPet, getOrder, listPets, placeOrder, updateOrder } from "./hey-api-client.ts";
import { report, unwrap } from "./report.ts";

const body = { name: "Mia", categoryId: 9007199254740993n };
const pet = unwrap(await createPet({ body }));
const other = unwrap(await createPet({ body }));
const pets = unwrap(await listPets({ query: { id: [pet.id, other.id] } }));
const order = unwrap(await placeOrder({ body: { petId: pet.id } }));
const completed = unwrap(await updateOrder({ path: { orderId: order.id }, body: { status: "completed" } }));
const { error } = await getOrder({ path: { orderId: 9000000n } });

report({ pet, pets, completed, errorCode: error?.code });
