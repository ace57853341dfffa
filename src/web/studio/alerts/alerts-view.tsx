/** Page of the app's alerts: the list of alerts with their states, and the editor of the open alert. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { CreateAlert, DeleteAlert, ListAlerts, ReadAlertDeliveries, TestAlert, UpdateAlert } from "../documents.js";
import { type ApiClient, ApiError, asApiError, handleRejectedChange } from "../shared/api.js";
import type { Alert, AlertInput } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { parseId } from "../shell/studio-route.js";
import { describeAlertCondition } from "./alert-draft.js";
import { AlertEditor } from "./alert-editor.js";

const REFRESH_INTERVAL_MS = 10_000;

function useAlerts(api: ApiClient, appId: number) {
  const client = useQueryClient();
  const query = { ...createQueryOptions(ListAlerts, { appId }), refetchInterval: REFRESH_INTERVAL_MS };
  const { value, fault, reload } = useResource(query);

  /**
   * Throws an error with a message for the person in place of the service's error. If another person has changed the alert, first reads
   * the list again.
   */
  const throwReadableError = async (error: unknown): Promise<never> => {
    throw new ApiError(asApiError(error).status, await handleRejectedChange(error, reload));
  };
  const saveAlert = async (alert: Alert | null, rule: AlertInput): Promise<number> => {
    const { saved } = alert
      ? await api
          .request(UpdateAlert, { appId, id: alert.id, rule, ifUpdatedAt: alert.updatedAt })
          .catch(throwReadableError)
      : await api.request(CreateAlert, { appId, rule });
    await reload();
    return saved.id;
  };
  const removeAlert = async ({ id, updatedAt: ifUpdatedAt }: Alert) => {
    await api.request(DeleteAlert, { appId, id, ifUpdatedAt }).catch(throwReadableError);
    await reload();
  };
  const sendTestMessage = async (id: number) => {
    await api.request(TestAlert, { appId, id });
    await client.invalidateQueries({ queryKey: [ReadAlertDeliveries] });
  };
  return { alerts: value?.alerts ?? null, fault, saveAlert, removeAlert, sendTestMessage };
}

const STATE_CLASSES = { firing: "chip failed", on: "chip live", off: "chip" };

function AlertLine({ alert, selected, open }: { alert: Alert; selected: boolean; open: () => void }) {
  const state = alert.firing.length > 0 ? "firing" : alert.enabled ? "on" : "off";
  return (
    <li>
      <button type="button" className="message-line" aria-current={selected ? "true" : undefined} onClick={open}>
        <b>{alert.name}</b>
        <span className="gist">{describeAlertCondition(alert)}</span>
        <span className={STATE_CLASSES[state]}>{state}</span>
      </button>
    </li>
  );
}

export function AlertsView({ api, appId, confirm, route, go, setDirty, actions: { actionList } }: PageProps) {
  const actions = actionList?.actions ?? [];
  const { alerts, fault, saveAlert, removeAlert, sendTestMessage } = useAlerts(api, appId);
  const openId = route.item === "new" ? "new" : parseId(route.item);
  const showItem = (item: number | "new" | null) => go({ item: item === null ? null : String(item) });
  /**
   * Opens an alert after a save, or the list after a deletion, without a question about unsaved changes. Does nothing
   * if the person has opened another page since the request.
   */
  const openItem = (item: number | null) =>
    go({ item: item === null ? null : String(item) }, { skipsQuestion: true, startRoute: route });
  // The alert that was last open. If another person deletes this alert, the editor still shows it with the unsaved changes.
  const [lastShownAlert, setLastShownAlert] = useState<Alert | null>(null);
  const listedAlert = alerts?.find(({ id }) => id === openId);
  const openedAlert = listedAlert ?? (lastShownAlert?.id === openId ? lastShownAlert : null);
  if (listedAlert && listedAlert !== lastShownAlert) setLastShownAlert(listedAlert);
  return (
    <div className={openId ? "mailbox opened" : "mailbox"}>
      <section className="mailbox-list" aria-label="Alerts">
        <div className="row list-head">
          <h2 className="grow">Alerts</h2>
          <button type="button" className="primary" onClick={() => showItem("new")}>
            New
          </button>
        </div>
        <p className="fault" role="alert">
          {fault}
        </p>
        <ul>
          {alerts?.map((alert) => (
            <AlertLine key={alert.id} alert={alert} selected={alert.id === openId} open={() => showItem(alert.id)} />
          ))}
        </ul>
        {alerts?.length === 0 && <p className="hint empty">No alerts yet. Failures send no messages.</p>}
      </section>
      {openId === "new" || openedAlert ? (
        <AlertEditor
          key={openId}
          appId={appId}
          alert={openedAlert}
          isDeleted={openedAlert !== null && !listedAlert}
          actions={actions}
          confirm={confirm}
          saveAlert={async (input) => openItem(await saveAlert(openedAlert, input))}
          sendTestMessage={() => sendTestMessage(openedAlert!.id)}
          removeAlert={async () => {
            if (openedAlert) await removeAlert(openedAlert);
            openItem(null);
          }}
          goBack={() => showItem(null)}
          setDirty={setDirty}
        />
      ) : (
        <div className="welcome">
          <h2>{alerts?.length === 0 ? "No alerts yet" : "Choose an alert"}</h2>
          <p>An alert sends a message when its condition is met, and another when the problem is over.</p>
          <button type="button" onClick={() => showItem("new")}>
            New alert
          </button>
        </div>
      )}
    </div>
  );
}
