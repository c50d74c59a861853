import { useState } from "preact/hooks";
import { type OrderUpdate, ORDER_STATUSES } from "../../domain/resources.ts";
import { type AdminOrder, call } from "../admin-api.ts";
import { ActionDialog } from "../components/dialogs.tsx";
import { SelectFilter, TextFilter } from "../components/filters.tsx";
import { Empty, Loaded, PageHead, type PageProps } from "../components/page.tsx";
import { type Column, Latest, ListPage } from "../components/tables.tsx";
import { Badge, Facts, LocalTime } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { usePolled } from "../polling.ts";
import { AuditSection } from "./audit.tsx";

const COLUMNS: readonly Column<AdminOrder>[] = [
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

function OrderBadge({ status }: Pick<AdminOrder, "status">) {
  return <Badge meaning={status === "placed" ? "ok" : "muted"} text={status} />;
}

function OrderKey({ keyId }: Pick<AdminOrder, "keyId">) {
  if (keyId === null) return <span class="muted">none (of an earlier release)</span>;
  return (
    <a class="number above" href={`/keys/${keyId}`}>
      {keyId}
    </a>
  );
}

export function OrderListPage() {
  return (
    <ListPage
      title="Orders"
      noun="order"
      caption="Orders"
      columns={COLUMNS}
      load={(query) => call("listOrders", { query })}
      empty={
        <Empty title="There are no orders yet">
          A client places one with <code>POST /v1/store/orders</code>. It makes the pet pending until the
          order is completed or cancelled, by the client or here.
        </Empty>
      }
    >
      <SelectFilter label="Status" name="status" options={ORDER_STATUSES} />
      <TextFilter label="Key" name="keyId" placeholder="Identifier" maxLength={20} />
      <TextFilter label="Pet" name="petId" placeholder="Identifier" maxLength={20} />
    </ListPage>
  );
}

/** The latest orders of one pet. */
export function OrdersOfPet({ id }: { readonly id: string }) {
  const orders = usePolled(`orders of pet ${id}`, () =>
    call("listOrders", { query: { petId: id, limit: 10 } }),
  );
  return (
    <Latest
      of={orders}
      title="Orders"
      caption="Orders of this pet"
      columns={COLUMNS.filter(({ heading }) => heading !== "Pet")}
      none="Nobody has ordered it."
      allUrl={`/orders?petId=${id}`}
      allText="All orders of this pet"
    />
  );
}

type FinalStatus = OrderUpdate["status"];

export function OrderDetailsPage({ id }: PageProps) {
  const order = usePolled(`order ${id}`, () => call("getOrder", { id }));
  const [chosen, setChosen] = useState<FinalStatus>();
  return (
    <Loaded of={order}>
      {(data) => (
        <div class="sections">
          <PageHead
            crumb={<a href="/orders">Orders</a>}
            title={`Order ${id}`}
            badge={<OrderBadge status={data.status} />}
            actions={
              data.status === "placed" && (
                <>
                  <button type="button" onClick={() => setChosen("completed")}>
                    Complete
                  </button>
                  <button type="button" class="danger" onClick={() => setChosen("cancelled")}>
                    Cancel order
                  </button>
                </>
              )
            }
          />
          <Facts
            facts={{
              Pet: <a href={`/pets/${data.petId}`}>{String(data.petId)}</a>,
              Key: <OrderKey keyId={data.keyId} />,
              Placed: <LocalTime at={data.createdAt} />,
            }}
          />
          <AuditSection target={`order:${id}`} />
          {chosen && <CloseDialog order={data} status={chosen} onClose={() => setChosen(undefined)} />}
        </div>
      )}
    </Loaded>
  );
}

interface CloseDialogProps {
  readonly order: AdminOrder;
  readonly status: FinalStatus;
  readonly onClose: () => void;
}

function CloseDialog({ order: { id, petId }, status, onClose }: CloseDialogProps) {
  const isCompleted = status === "completed";
  return (
    <ActionDialog
      action={isCompleted ? "Complete" : "Cancel"}
      name={`order ${id}`}
      shortName={`order ${id}`}
      isFinal
      run={() => call("updateOrder", { id, body: { status } })}
      done={capitalized(status)}
      onClose={onClose}
    >
      Pet {String(petId)} becomes {isCompleted ? "sold" : "available again"} at once. An order that is
      completed or cancelled stays so.
    </ActionDialog>
  );
}
