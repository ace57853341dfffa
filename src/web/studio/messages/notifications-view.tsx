/** The app's notifications: what is drafted, scheduled and published, and one of them opened to be written. */
import { useCallback, useState } from "react";
import { CreateNotification, DeleteNotification, ListNotifications, UpdateNotification } from "../documents.js";
import { type Api, ApiError, asApiError, refusalText } from "../shared/api.js";
import type { Ask } from "../shared/confirm.js";
import { exact, moment } from "../shared/format.js";
import type { Notification, NotificationInput } from "../shared/model.js";
import { useLoaded } from "../shared/use-loaded.js";
import { NotificationEditor } from "./notification-editor.js";

const PAGE = 50;
const REFRESH_MS = 3_000;

interface ViewProps {
  api: Api;
  appId: number;
  ask: Ask;
}

function useNotifications(api: Api, appId: number) {
  const [limit, setLimit] = useState(PAGE);
  const read = useCallback(
    async () => (await api.ask(ListNotifications, { appId, limit })).list.entries,
    [api, appId, limit],
  );
  const { value: entries, fault, reload: load } = useLoaded<Notification[]>(api, read, REFRESH_MS);

  /** Says what to do, and shows the list as it is now. */
  const refused = async (error: unknown): Promise<never> => {
    throw new ApiError(asApiError(error).status, await refusalText(error, load));
  };
  const save = async (one: Notification | null, notification: NotificationInput): Promise<Notification> => {
    const { saved } = one
      ? await api
          .ask(UpdateNotification, { appId, id: one.id, notification, ifUpdatedAt: one.updatedAt })
          .catch(refused)
      : await api.ask(CreateNotification, { appId, notification });
    await load();
    return saved;
  };
  const remove = async ({ id, updatedAt: ifUpdatedAt }: Notification) => {
    await api.ask(DeleteNotification, { appId, id, ifUpdatedAt }).catch(refused);
    await load();
  };
  return { entries, fault, more: entries?.length === limit, loadMore: () => setLimit(limit + PAGE), save, remove };
}

function Line({ one, selected, open }: { one: Notification; selected: boolean; open: () => void }) {
  const { title, message } = one.data as { title?: unknown; message?: unknown };
  const at = one.publishedAt ?? one.orderAt ?? one.updatedAt;
  return (
    <li>
      <button type="button" className="message-line" aria-current={selected ? "true" : undefined} onClick={open}>
        <b>{String(title ?? "(no title)")}</b>
        <time dateTime={at} title={exact(at)}>
          {moment(at)}
        </time>
        <span className="gist">{String(message ?? "")}</span>
        <span className={`chip ${one.status}`}>{one.status}</span>
      </button>
    </li>
  );
}

export function NotificationsView({ api, appId, ask }: ViewProps) {
  const { entries, fault, more, loadMore, save, remove } = useNotifications(api, appId);
  const [open, setOpen] = useState<Notification | "new" | null>(null);
  const opened = open === "new" ? null : open;
  const listed = entries?.find(({ id }) => id === opened?.id);
  const one = listed ?? opened;
  return (
    <div className={open ? "mailbox opened" : "mailbox"}>
      <section className="mailbox-list" aria-label="Notifications">
        <div className="row list-head">
          <span className="grow" />
          <button type="button" className="primary" onClick={() => setOpen("new")}>
            New
          </button>
        </div>
        <p className="fault" role="alert">
          {fault}
        </p>
        <ul>
          {entries?.map((entry) => (
            <Line key={entry.id} one={entry} selected={entry.id === one?.id} open={() => setOpen(entry)} />
          ))}
        </ul>
        {entries?.length === 0 && <p className="hint empty">No notification yet.</p>}
        {more && (
          <button type="button" className="link" onClick={loadMore}>
            Load older ones
          </button>
        )}
      </section>
      {open ? (
        <NotificationEditor
          key={one?.id ?? "new"}
          one={one}
          isDeleted={one !== null && entries !== null && !more && !listed}
          ask={ask}
          save={async (input) => setOpen(await save(one, input))}
          remove={async () => {
            if (one) await remove(one);
            setOpen(null);
          }}
          back={() => setOpen(null)}
        />
      ) : (
        <div className="welcome">
          <h2>Choose a notification</h2>
          <p>Or write a new one: it reaches the app's users in its pages at once, and on devices that asked for it.</p>
        </div>
      )}
    </div>
  );
}
