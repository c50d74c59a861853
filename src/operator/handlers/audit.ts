import { cursorAfter } from "../../domain/cursor.ts";
import { parseOptionalTime } from "../../text/formatting.ts";
import { auditView } from "../../domain/audit.ts";
import { ADMIN_PAGE_LIMIT, type ResponseOf } from "../operations.ts";
import type { AdminHandlers } from "./context.ts";
import { keyNamesOf } from "./key-names.ts";
import type { Services } from "../services.ts";

type AuditItems = ResponseOf<"listAudit">["items"];

export function auditHandlers({ audit, keys }: Pick<Services, "audit" | "keys">) {
  return {
    async listAudit({ query: { cursor, after, limit = ADMIN_PAGE_LIMIT.default, ...conditions } }) {
      const since = parseOptionalTime(conditions.since);
      const until = parseOptionalTime(conditions.until);
      const start = after === undefined ? { before: cursor } : { after: cursor ?? BigInt(after) };
      const page = await audit.listAudit({ ...conditions, since, until, ...start, limit });
      const items = await withKeyNames(page.items.map(auditView));
      return { items, nextCursor: cursorAfter("audit", page) };
    },
  } satisfies Partial<AdminHandlers>;

  async function withKeyNames(items: AuditItems): Promise<AuditItems> {
    const ids = items.map(({ target }) => (target?.kind === "key" ? Number(target.id) : null));
    const names = await keyNamesOf(keys, ids);
    return items.map((item) => {
      const name = item.target?.kind === "key" ? names.get(Number(item.target.id)) : undefined;
      return item.target && name !== undefined ? { ...item, target: { ...item.target, name } } : item;
    });
  }
}
