import { encodeCursor } from "../../api/cursor.ts";
import { isRejection } from "../../api/errors.ts";
import type { Actor, Attribution } from "../../domain/audit.ts";
import type { Clock, OperatorStore, Store } from "../../domain/ports.ts";
import { orderNotFound, petNotFound } from "../../domain/rejections.ts";
import type { HandlersOf } from "../admin-api.ts";
import { nothingToChange } from "../errors.ts";
import { ADMIN_PAGE_LIMIT } from "../operations.ts";

export interface StoreHandlerOptions {
  readonly store: Pick<Store, "listPets" | "getPet">;
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
}

type StoreOperation =
  "listPets" | "getPet" | "updatePet" | "deletePet" | "listOrders" | "getOrder" | "updateOrder";

export function petAndOrderHandlers({
  store,
  operators,
  clock,
}: StoreHandlerOptions): HandlersOf<StoreOperation> {
  const by = (actor: Actor): Attribution => ({ actor, at: clock.now() });

  return {
    async listPets({ query: { status, cursor, limit = ADMIN_PAGE_LIMIT.default } }) {
      const { items, hasMore } = await store.listPets({
        ...(status !== undefined && { status }),
        ...(cursor !== undefined && { after: cursor }),
        limit,
      });
      const last = items.at(-1);
      return { items, nextCursor: hasMore && last ? encodeCursor("pets", last.id) : null };
    },

    async getPet({ id }) {
      return (await store.getPet(BigInt(id))) ?? petNotFound(id);
    },

    updatePet({ id, body }, { actor }) {
      if (Object.keys(body).length === 0) return nothingToChange(["name", "categoryId", "status"]);
      return operators.updatePet(BigInt(id), body, by(actor));
    },

    async deletePet({ id }, { actor }) {
      const deleted = await operators.deletePet(BigInt(id), by(actor));
      return isRejection(deleted) ? deleted : undefined;
    },

    async listOrders({ query: { status, keyId, petId, cursor, limit = ADMIN_PAGE_LIMIT.default } }) {
      const { items, hasMore } = await operators.listOrders({
        ...(status !== undefined && { status }),
        ...(keyId !== undefined && { keyId: Number(keyId) }),
        ...(petId !== undefined && { petId }),
        ...(cursor !== undefined && { before: cursor }),
        limit,
      });
      const last = items.at(-1);
      return { items, nextCursor: hasMore && last ? encodeCursor("orders", last.id) : null };
    },

    async getOrder({ id }) {
      return (await operators.getOrder(BigInt(id))) ?? orderNotFound(id);
    },

    updateOrder: ({ id, body }, { actor }) => operators.updateOrder(BigInt(id), body.status, by(actor)),
  };
}
