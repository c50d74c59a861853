import { api } from "./openapi-fetch-client.ts";
import { report, unwrap } from "./report.ts";

const body = { name: "Mia", categoryId: 9007199254740993n };
const pet = unwrap(await api.POST("/pets", { body }));
const other = unwrap(await api.POST("/pets", { body }));
const pets = unwrap(await api.GET("/pets", { params: { query: { id: [pet.id, other.id] } } }));
const order = unwrap(await api.POST("/store/orders", { body: { petId: pet.id } }));
const completed = unwrap(
  await api.PATCH("/store/orders/{orderId}", {
    params: { path: { orderId: order.id } },
    body: { status: "completed" },
  }),
);
const { error } = await api.GET("/store/orders/{orderId}", { params: { path: { orderId: 9000000n } } });

report({ pet, pets, completed, errorCode: error?.code });
