import { type OrderUpdate, ORDER_STATUSES, STATUS_AFTER } from "../../domain/pets-and-orders.ts";
import { type AdminOrder, call } from "../admin-api.ts";
import { may } from "../session.ts";
import { ActionButton } from "../components/action-dialog.tsx";
import { Details, DocsButton, Empty, PageHead, type PageProps, PageSection } from "../components/page.tsx";
import type { Column } from "../components/tables.tsx";
import { ListPage, useList } from "../components/lists.tsx";
import { Facts, LocalTime, NO_VALUE, OtherLink, StatusBadge, TimeAgo } from "../components/values.tsx";
import { Copyable } from "../components/copying.tsx";
import { capitalized } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { AuditSection } from "./audit.tsx";

const COLUMNS: readonly Column<AdminOrder>[] = [
  {
    heading: "Order",
    position: "lead",
    isShort: true,
    isRowLink: true,
    cell: ({ id }) => (
      <Copyable text={String(id)}>
        <a class="row-link number" href={`/orders/${id}`}>
          <span class="narrow-only">Order </span>
          {String(id)}
        </a>
      </Copyable>
    ),
  },
  { heading: "Pet", cell: PetOfOrder },
  { heading: "Key", cell: KeyOfOrder },
  {
    heading: "Status",
    position: "at-end",
    cell: ({ status, closedAt }) => (
      <>
        <StatusBadge status={status} />
        {closedAt && (
          <span class="muted small wide-only">
            {" "}
            <TimeAgo at={closedAt} />
          </span>
        )}
      </>
    ),
  },
  { heading: "Placed", position: "below-end", cell: ({ createdAt }) => <TimeAgo at={createdAt} /> },
];

function PetOfOrder({ petId, petName }: Pick<AdminOrder, "petId" | "petName">) {
  return <OtherLink url={`/pets/${petId}`} name={petName ?? `pet ${petId}`} />;
}

function KeyOfOrder({ keyId, keyName }: Pick<AdminOrder, "keyId" | "keyName">) {
  if (keyId === null) return <span class="muted">unknown (of an earlier release)</span>;
  return <OtherLink url={`/keys/${keyId}`} name={keyName ?? `key ${keyId}`} />;
}

const FILTERS = {
  status: { options: ORDER_STATUSES },
  keyId: { label: "Key", placeholder: "Identifier", maxLength: 20 },
  petId: { label: "Pet", placeholder: "Identifier", maxLength: 20 },
};

export function OrderListPage() {
  return (
    <ListPage
      title="Orders"
      noun="order"
      of={useList((query) => call("listOrders", { query }))}
      filters={FILTERS}
      columns={COLUMNS}
      empty={
        <Empty
          title="There are no orders yet"
          action={<DocsButton page="/reference/placeOrder">How to place one</DocsButton>}
        >
          A client places one with <code>POST /v1/store/orders</code>. You complete or cancel it here.
        </Empty>
      }
    />
  );
}

/** An earlier release did not record when an order was closed. */
const UNKNOWN = "at an unknown time";

export const ORDER_COLUMNS_OF_PET = COLUMNS.filter(({ heading }) => heading !== "Pet");

export function OrderDetailsPage({ id }: PageProps) {
  const order = useCall("getOrder", { id });
  return (
    <Details of={order} kind="order" id={id}>
      {(data) => (
        <div class="sections">
          <PageHead title={`Order ${id}`} badge={<StatusBadge status={data.status} />}>
            {data.status === "placed" && may("updateOrder") && (
              <>
                <CloseButton {...data} status="completed" />
                <CloseButton {...data} status="cancelled" />
              </>
            )}
          </PageHead>
          <p class="sentence">
            {capitalized(data.status)}{" "}
            <TimeAgo at={data.status === "placed" ? data.createdAt : data.closedAt} none={UNKNOWN} />: the pet{" "}
            {data.status === "placed"
              ? "is pending until this order is completed or cancelled."
              : `became ${STATUS_AFTER[data.status]}.`}
          </p>
          <div class="with-aside">
            <Facts
              isCard
              facts={{
                Pet: <PetOfOrder {...data} />,
                Key: <KeyOfOrder {...data} />,
                Placed: <LocalTime at={data.createdAt} />,
                ...(data.status !== "placed" && {
                  [capitalized(data.status)]: <LocalTime at={data.closedAt} none={UNKNOWN} />,
                }),
              }}
            />
            <aside>
              <PageSection title="Identifiers">
                <Facts
                  facts={{
                    Order: <Copyable text={id} />,
                    Pet: <Copyable text={`${data.petId}`} />,
                    Key: data.keyId === null ? NO_VALUE : <Copyable text={`${data.keyId}`} />,
                  }}
                />
              </PageSection>
            </aside>
            <AuditSection target={`order:${id}`} />
          </div>
        </div>
      )}
    </Details>
  );
}

type CloseButtonProps = Pick<AdminOrder, "id" | "petId" | "petName"> & OrderUpdate;

function CloseButton({ id, petId, petName, status }: CloseButtonProps) {
  const isCompleted = status === "completed";
  return (
    <ActionButton
      class={isCompleted ? "primary" : "danger"}
      label={isCompleted ? "Complete" : "Cancel order"}
      title={isCompleted ? "Complete" : "Cancel"}
      name={`order ${id}`}
      isFinal={!isCompleted}
      cancelText={isCompleted ? undefined : "Keep order"}
      run={() => call("updateOrder", { id, body: { status } })}
      done={capitalized(status)}
      text={
        <>
          <bdi>{petName ?? `Pet ${petId}`}</bdi> becomes {STATUS_AFTER[status]} at once. An order that is
          completed or cancelled stays so.
        </>
      }
    />
  );
}
