import { z } from "zod";
import { STATUSES } from "./peer-store.ts";

export const NewPet = z.object({
  name: z.string().min(1).max(1024),
  categoryId: z.int(),
  status: z.enum(STATUSES).optional(),
});

export const ListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  status: z.enum(STATUSES).optional(),
  cursor: z.coerce.number().int().min(0).optional(),
});

export const PetId = z.coerce.number().int();
