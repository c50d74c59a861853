import { useState } from "preact/hooks";
import { type AdminOrder, call } from "../admin-api.ts";
import { AuditSection } from "../components/audit-section.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Facts } from "../components/facts.tsx";
import { Loaded } from "../components/loading.tsx";
import { OrderBadge } from "../components/order-badge.tsx";
import { LocalTime } from "../components/time.tsx";
import { announce } from "../notices.ts";
import { refresh, usePolled } from "../polling.ts";
import { OrderKey } from "./orders.tsx";
import type { PageProps } from "./page.ts";

type FinalStatus = "completed" | "cancelled";

export function OrderPage({ id }: PageProps) {
  const order = usePolled(`order ${id}`, () => call("getOrder", { id }));
  const [chosen, setChosen] = useState<FinalStatus>();
  return (
    <Loaded of={order}>
      {(data) => (
        <div class="sections">
          <div class="page-head">
            <span class="crumb">
              <a href="/orders">Orders</a>
            </span>
            <h1 tabIndex={-1}>Order {id}</h1>
            <OrderBadge status={data.status} />
            {data.status === "placed" && (
              <div class="actions">
                <button type="button" onClick={() => setChosen("completed")}>
                  Complete
                </button>
                <button type="button" class="danger" onClick={() => setChosen("cancelled")}>
                  Cancel order
                </button>
              </div>
            )}
          </div>
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
  const name = `order ${id}`;
  async function close() {
    await call("updateOrder", { id, body: { status } });
    onClose();
    announce(`${status === "completed" ? "Completed" : "Cancelled"} ${name}.`);
    await refresh();
  }
  return (
    <ConfirmDialog
      action={status === "completed" ? "Complete" : "Cancel"}
      name={name}
      shortName={name}
      onConfirm={close}
      onClose={onClose}
    >
      <p>
        Pet {String(petId)} becomes {status === "completed" ? "sold" : "available again"} at once. An order
        that is completed or cancelled stays so.
      </p>
    </ConfirmDialog>
  );
}
