import { afterAll, expect, test } from "bun:test";
import { startService } from "../service.ts";

const service = await startService();
afterAll(() => service.stop());

interface Pet {
  id: number;
  status?: string;
}
const pets = ({ json }: { json: unknown }) => json as Pet[];
const get = (path: string, headers: Record<string, string> = {}) => service.call({ path, headers });

test("listPets 200: `id=` of a pet is what getPet responds with, and its ETag follows the pet", async () => {
  const { id } = (await service.call({ method: "POST", path: "/pets", body: { name: "R", categoryId: 1 } }))
    .json as Pet;
  const path = `/pets?id=${id}`;
  const first = await get(path);
  expect(first.text).toBe(`[${(await get(`/pets/${id}`)).text}]`);
  const etag = first.headers.get("etag") ?? "";
  for (let i = 0; i < 3; i++) expect((await get(path, { "If-None-Match": etag })).status).toBe(304);
  await service.call({ method: "POST", path: "/store/orders", body: { petId: id } });
  const changed = await get(path, { "If-None-Match": etag });
  expect(changed.status).toBe(200);
  expect(pets(changed)[0]?.status).toBe("pending");
  const next = `/pets?id=${id + 1}`;
  for (let i = 0; i < 3; i++) expect((await get(next)).text).toBe("[]");
  await service.call({ method: "POST", path: "/pets", body: { name: "S", categoryId: 1 } });
  expect(pets(await get(next)).map((pet) => pet.id)).toEqual([id + 1]);
});
