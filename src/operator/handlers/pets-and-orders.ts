import { cursorAfter, encodeCursor } from "../../domain/cursor.ts";
import { Rejection } from "../../api/errors.ts";
import { parseIdentifier } from "../../api/json.ts";
import type { PetQuery } from "../../domain/ports/pets-and-orders.ts";
import { type OperatorOrder, orderNotFound, type Pet, petNotFound } from "../../domain/pets-and-orders.ts";
import { PET_SEARCH } from "../../domain/size-limits.ts";
import { yieldToEventLoop } from "../../runtime/scheduler.ts";
import { ADMIN_PAGE_LIMIT } from "../operations.ts";
import type { AdminHandlers } from "./context.ts";
import { keyNamesOf } from "./key-names.ts";
import type { Services } from "../services.ts";

export function petAndOrderHandlers({ operatorPetStore, keys }: Pick<Services, "operatorPetStore" | "keys">) {
  return {
    async listPets({ query: { search, cursor: after, limit = ADMIN_PAGE_LIMIT.default, ...filters } }) {
      if (search !== undefined) return findPets(search, { ...filters, after, limit });
      const page = await operatorPetStore.listPets({ ...filters, after, limit });
      return { items: page.items, nextCursor: cursorAfter("pets", page) };
    },

    createPet: ({ body }, { by }) => operatorPetStore.createPet(body, by),

    async getPet({ id }) {
      return (await operatorPetStore.getPet(BigInt(id))) ?? petNotFound(id);
    },

    updatePet: ({ id, body }, { by }) => operatorPetStore.updatePet(BigInt(id), body, by),

    async deletePet({ id }, { by }) {
      const deleted = await operatorPetStore.deletePet(BigInt(id), by);
      return deleted instanceof Rejection ? deleted : undefined;
    },

    async listOrders({ query: { keyId, cursor: before, limit = ADMIN_PAGE_LIMIT.default, ...filters } }) {
      const key = keyId === undefined ? undefined : Number(keyId);
      const page = await operatorPetStore.listOrders({ ...filters, keyId: key, before, limit });
      return { items: await withNames(page.items), nextCursor: cursorAfter("orders", page) };
    },

    async getOrder({ id }) {
      const order = await operatorPetStore.getOrder(BigInt(id));
      return order === undefined ? orderNotFound(id) : withName(order);
    },

    async updateOrder({ id, body }, { by }) {
      const order = await operatorPetStore.updateOrder(BigInt(id), body.status, by);
      return order instanceof Rejection ? order : withName(order);
    },
  } satisfies Partial<AdminHandlers>;

  /**
   * Searches for pets. The pet with the identifier comes first, on the first page only. Names have no index, so the
   * search reads the pets in turn, and yields to the event loop in between.
   */
  async function findPets(search: string, { limit, ...query }: PetQuery) {
    const text = search.toLowerCase();
    const identifier = parseIdentifier(text.trim());
    const id = identifier === undefined ? undefined : BigInt(identifier);
    const items: Pet[] = [];
    if (id !== undefined && query.after === undefined)
      items.push(...(await operatorPetStore.listPets({ ...query, ids: [id], limit: 1 })).items);
    if (items.length === limit) return { items, nextCursor: encodeCursor("pets", 0n) };
    for (let { after } = query, steps = 1; ; steps++) {
      const page = await operatorPetStore.searchPets(text, { ...query, after, limit: limit - items.length });
      items.push(...page.items.filter((pet) => pet.id !== id));
      const nextCursor = cursorAfter("pets", page);
      if (nextCursor === null || items.length === limit || steps === PET_SEARCH.maxSteps)
        return { items, nextCursor };
      after = page.readTo ?? page.items.at(-1)?.id;
      await yieldToEventLoop();
    }
  }

  async function withNames(orders: readonly OperatorOrder[]) {
    const ids = [...new Set(orders.map(({ petId }) => petId))].toSorted((a, b) => (a < b ? -1 : 1));
    const pets = ids.length === 0 ? [] : (await operatorPetStore.listPets({ ids, limit: ids.length })).items;
    const petNames = new Map(pets.map(({ id, name }) => [id, name]));
    const keyIds = orders.map(({ keyId }) => keyId);
    const keyNames = await keyNamesOf(keys, keyIds);
    return orders.map((order) => ({
      ...order,
      petName: petNames.get(order.petId) ?? null,
      keyName: keyNames.get(order.keyId) ?? null,
    }));
  }

  async function withName(order: OperatorOrder) {
    return (await withNames([order]))[0] ?? { ...order, petName: null, keyName: null };
  }
}
