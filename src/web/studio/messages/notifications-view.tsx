/** Page of the app's notifications: lists drafts, scheduled and published notifications, and edits the open one. */
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { CreateNotification, DeleteNotification, ListNotifications, UpdateNotification } from "../documents.js";
import { type ApiClient, ApiError, asApiError, handleRejectedChange } from "../shared/api.js";
import { formatExactTime, formatTime } from "../shared/format.js";
import type { Notification, NotificationInput } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { parseId } from "../shell/studio-route.js";
import { NotificationEditor } from "./notification-editor.js";

const PAGE_SIZE = 50;
const REFRESH_INTERVAL_MS = 3_000;

function useNotifications(api: ApiClient, appId: number) {
  const [limit, setLimit] = useState(PAGE_SIZE);
  const { value, fault, reload } = useResource({
    ...createQueryOptions(ListNotifications, { appId, limit }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  const entries = value?.list.entries ?? null;

  /**
   * Throws an error with a message for the person in place of the service's error. If another person has changed the notification, first
   * reads the list again.
   */
  const throwReadableError = async (error: unknown): Promise<never> => {
    throw new ApiError(asApiError(error).status, await handleRejectedChange(error, reload));
  };
  const saveNotification = async (
    existingNotification: Notification | null,
    notification: NotificationInput,
  ): Promise<Notification> => {
    const { saved } = existingNotification
      ? await api
          .request(UpdateNotification, {
            appId,
            id: existingNotification.id,
            notification,
            ifUpdatedAt: existingNotification.updatedAt,
          })
          .catch(throwReadableError)
      : await api.request(CreateNotification, { appId, notification });
    await reload();
    return saved;
  };
  const removeNotification = async ({ id, updatedAt: ifUpdatedAt }: Notification) => {
    await api.request(DeleteNotification, { appId, id, ifUpdatedAt }).catch(throwReadableError);
    await reload();
  };
  return {
    entries,
    fault,
    more: entries?.length === limit,
    loadMore: () => setLimit(limit + PAGE_SIZE),
    saveNotification,
    removeNotification,
  };
}

function NotificationLine({
  notification,
  isSelected,
  openNotification,
}: {
  notification: Notification;
  isSelected: boolean;
  openNotification: () => void;
}) {
  const { title, message } = notification.data as { title?: unknown; message?: unknown };
  const shownTime = notification.publishedAt ?? notification.orderAt ?? notification.updatedAt;
  return (
    <li>
      <button
        type="button"
        className="message-line"
        aria-current={isSelected ? "true" : undefined}
        onClick={openNotification}
      >
        <b>{String(title || "(no title)")}</b>
        <time dateTime={shownTime} title={formatExactTime(shownTime)}>
          {formatTime(shownTime)}
        </time>
        <span className="gist">{String(message ?? "")}</span>
        <span className={`chip ${notification.status}`}>{notification.status}</span>
      </button>
    </li>
  );
}

export function NotificationsView({ api, appId, confirm, route, go, setDirty }: PageProps) {
  const { entries, fault, more, loadMore, saveNotification, removeNotification } = useNotifications(api, appId);
  const openId = route.item === "new" ? "new" : parseId(route.item);
  const showItem = (item: number | "new" | null) => go({ item: item === null ? null : String(item) });
  /**
   * Opens a notification after a save, or the list after a deletion, without a question about unsaved changes. Does
   * nothing if the person has opened another page since the request.
   */
  const openItem = (item: number | null) =>
    go({ item: item === null ? null : String(item) }, { skipsQuestion: true, startRoute: route });
  // The notification that was last open. If another person deletes it, the editor still shows it with the unsaved changes.
  const [lastShownNotification, setLastShownNotification] = useState<Notification | null>(null);
  const lastOpenNotification = lastShownNotification?.id === openId ? lastShownNotification : null;
  const listedNotification = entries?.find(({ id }) => id === openId);
  const notification = listedNotification ?? lastOpenNotification;
  if (listedNotification && listedNotification !== lastShownNotification) setLastShownNotification(listedNotification);
  const isThere = openId === "new" || notification !== null;
  return (
    <div className={openId ? "mailbox opened" : "mailbox"}>
      <section className="mailbox-list" aria-label="Notifications">
        <div className="row list-head">
          <h2 className="grow">Notifications</h2>
          <button type="button" className="primary" onClick={() => showItem("new")}>
            New
          </button>
        </div>
        <p className="fault" role="alert">
          {fault}
        </p>
        <ul>
          {entries?.map((entry) => (
            <NotificationLine
              key={entry.id}
              notification={entry}
              isSelected={entry.id === notification?.id}
              openNotification={() => showItem(entry.id)}
            />
          ))}
        </ul>
        {entries?.length === 0 && <p className="hint empty">No notifications yet.</p>}
        {more && (
          <button type="button" className="link" onClick={loadMore}>
            Load older notifications
          </button>
        )}
      </section>
      {isThere ? (
        <NotificationEditor
          key={notification?.id ?? "new"}
          notification={notification}
          isDeleted={notification !== null && entries !== null && !more && !listedNotification}
          confirm={confirm}
          saveNotification={async (input) => openItem((await saveNotification(notification, input)).id)}
          removeNotification={async () => {
            if (notification) await removeNotification(notification);
            openItem(null);
          }}
          goBack={() => showItem(null)}
          setDirty={setDirty}
        />
      ) : (
        <div className="welcome">
          <h2>{entries?.length === 0 ? "No notifications yet" : "Choose a notification"}</h2>
          <p>
            Users receive a notification in open pages at once, and by Web Push on subscribed devices if you choose so.
          </p>
          <button type="button" onClick={() => showItem("new")}>
            New notification
          </button>
        </div>
      )}
    </div>
  );
}
