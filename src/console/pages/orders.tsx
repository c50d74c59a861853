import { type AdminOrder, call } from "../admin-api.ts";
import { OrderBadge } from "../components/order-badge.tsx";
import { Filters, SelectFilter, TextFilter } from "../components/filters.tsx";
import { Empty, Loaded } from "../components/loading.tsx";
import { type Column, Pager, Table } from "../components/table.tsx";
import { LocalTime } from "../components/time.tsx";
import { usePolled } from "../polling.ts";
import { usePlace } from "../router.ts";

const STATUSES = ["placed", "completed", "cancelled"] as const;

export const ORDER_COLUMNS: readonly Column<AdminOrder>[] = [
  {
    heading: "Order",
    cell: ({ id }) => (
      <a class="row-link number" href={`/orders/${id}`}>
        {String(id)}
      </a>
    ),
  },
  { heading: "Status", cell: ({ status }) => <OrderBadge status={status} /> },
  {
    heading: "Pet",
    cell: ({ petId }) => (
      <a class="number above" href={`/pets/${petId}`}>
        {String(petId)}
      </a>
    ),
  },
  { heading: "Key", cell: ({ keyId }) => <OrderKey keyId={keyId} /> },
  { heading: "Placed", cell: ({ createdAt }) => <LocalTime at={createdAt} /> },
];

export function OrderKey({ keyId }: Pick<AdminOrder, "keyId">) {
  if (keyId === null) return <span class="muted">none (of an earlier release)</span>;
  return (
    <a class="number above" href={`/keys/${keyId}`}>
      {keyId}
    </a>
  );
}

export function Orders() {
  const { query } = usePlace();
  const orders = usePolled(`orders ${query}`, () => {
    const { status, keyId, petId, cursor } = Object.fromEntries(query);
    return call("listOrders", { query: { status, keyId, petId, cursor, limit: 50 } });
  });
  return (
    <section>
      <h1 tabIndex={-1}>Orders</h1>
      <Filters>
        <SelectFilter
          label="Status"
          name="status"
          options={STATUSES.map((status) => [status, status] as const)}
        />
        <TextFilter label="Key" name="keyId" placeholder="Identifier" maxLength={20} />
        <TextFilter label="Pet" name="petId" placeholder="Identifier" maxLength={20} />
      </Filters>
      <Loaded of={orders}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 ? (
              <NoOrders isFiltered={query.size > 0} />
            ) : (
              <Table
                caption="Orders"
                columns={ORDER_COLUMNS}
                rows={items}
                keyOf={({ id }) => `${id}`}
                hasLinks
              />
            )}
            <Pager nextCursor={nextCursor} />
          </>
        )}
      </Loaded>
    </section>
  );
}

function NoOrders({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No order matches">
      <p>
        <a href="/orders">Clear the filters</a> to see all orders.
      </p>
    </Empty>
  ) : (
    <Empty title="There are no orders yet">
      <p>
        A client places one with <code>POST /v1/store/orders</code>. It makes the pet pending until the order
        is completed or cancelled, by the client or here.
      </p>
    </Empty>
  );
}
