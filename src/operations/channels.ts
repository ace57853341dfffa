/** Lists the PostgreSQL notification channels (LISTEN and NOTIFY) over which the processes of the service inform each other. */
import { CREDENTIAL_CHANNEL } from "./access/credentials.js";
import { ACTION_EDITED_CHANNEL } from "./actions/action-feed.js";
import { QUEUED_ALERT_CHANNEL } from "./alerts/alert-rows.js";
import { CLIENT_ACTION_CHANNEL } from "./client/client-feed.js";
import { QUEUED_MESSAGE_CHANNEL } from "./communicate/outbox.js";
import { DATA_SOURCE_CHANNEL } from "./data-sources/data-source-rows.js";
import { ENTRY_CHANNEL } from "./data-sources/entry-changes.js";
import { NOTIFICATION_CHANNEL } from "./notifications/notification-rows.js";
import { PAGE_USER_CHANGE_CHANNEL } from "./notifications/reader.js";
import { LOG_CHANNEL } from "./records/execution-logs.js";
import { QUEUED_RUN_CHANNEL } from "./records/queue-limits.js";
import { CONCURRENCY_LIMITS_CHANNEL } from "./runs/run-admission.js";
import { AWAITED_RUN_CHANNEL, CANCEL_RUN_CHANNEL } from "./runs/run-types.js";
import { SCHEDULE_CHANNEL } from "./triggers/trigger-index.js";

/** PostgreSQL channels to which every process subscribes while it runs. */
export const ALWAYS_SUBSCRIBED_CHANNELS = [
  CREDENTIAL_CHANNEL,
  CANCEL_RUN_CHANNEL,
  AWAITED_RUN_CHANNEL,
  CONCURRENCY_LIMITS_CHANNEL,
  QUEUED_RUN_CHANNEL,
  SCHEDULE_CHANNEL,
  CLIENT_ACTION_CHANNEL,
  ACTION_EDITED_CHANNEL,
  DATA_SOURCE_CHANNEL,
  ENTRY_CHANNEL,
  QUEUED_MESSAGE_CHANNEL,
  NOTIFICATION_CHANNEL,
  PAGE_USER_CHANGE_CHANNEL,
  QUEUED_ALERT_CHANNEL,
];

/** Channel with many notifications a second. A process is subscribed to it only while a caller waits for its notifications. */
export const ON_DEMAND_CHANNELS = [LOG_CHANNEL];
