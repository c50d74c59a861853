import { cursorAfter } from "../../api/cursor.ts";
import { isRejection } from "../../api/errors.ts";
import type { Actor, Attribution } from "../../domain/audit.ts";
import { orderNotFound, petNotFound } from "../../domain/rejections.ts";
import type { AdminHandlers } from "../admin-app.ts";
import { nothingToChange } from "../errors.ts";
import { ADMIN_PAGE_LIMIT } from "../operations.ts";
import type { OperatorServices } from "./services.ts";

export function petAndOrderHandlers({ store, operators, clock }: OperatorServices) {
  const by = (actor: Actor): Attribution => ({ actor, at: clock.now() });

  return {
    async listPets({ query: { status, cursor, limit = ADMIN_PAGE_LIMIT.default } }) {
      const page = await store.listPets({
        ...(status !== undefined && { status }),
        ...(cursor !== undefined && { after: cursor }),
        limit,
      });
      return { items: page.items, nextCursor: cursorAfter("pets", page) };
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
      const page = await operators.listOrders({
        ...(status !== undefined && { status }),
        ...(keyId !== undefined && { keyId: Number(keyId) }),
        ...(petId !== undefined && { petId }),
        ...(cursor !== undefined && { before: cursor }),
        limit,
      });
      return { items: page.items, nextCursor: cursorAfter("orders", page) };
    },

    async getOrder({ id }) {
      return (await operators.getOrder(BigInt(id))) ?? orderNotFound(id);
    },

    updateOrder: ({ id, body }, { actor }) => operators.updateOrder(BigInt(id), body.status, by(actor)),
  } satisfies Partial<AdminHandlers>;
}
