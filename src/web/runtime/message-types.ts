/** Public types of svc-communicate and svc-notifications; served with public-types.ts as svc.d.ts. Only types. */

/** The immediate response to the sender of a message: it is stored, and waits to be sent unless its status is `kept`. */
export interface MessageReceipt {
  id: number;
  /** kept: the app has no server for it; the message is in the outbox. */
  status: "kept" | "queued";
}

export interface EmailOptions {
  to: { email: string; name?: string; type?: "to" | "cc" | "bcc" }[];
  /** `{{name}}` in it, and in html and text, is replaced from `data`. */
  subject?: string;
  /** The sender's name; the address is configured in the app. */
  from_name?: string;
  html?: string;
  text?: string;
  headers?: Record<string, string>;
  attachments?: { name: string; content: string; type?: string; encoding?: "base64" | "utf8" }[];
}

export interface BatchedEmail {
  options: EmailOptions;
  data?: object;
}

interface SmsText {
  to: string;
  body: string;
  from?: string;
}

export type SmsOptions = SmsText | { data: SmsText; provider?: "twilio" | "webhook" };

export interface SharedPage {
  url?: string;
  title?: string;
  text?: string;
}

/** `Svc.Communicate`, of the package svc-communicate. */
export interface Communicate {
  init(): Omit<Communicate, "init">;
  sendEmail(options: EmailOptions, data?: object): Promise<MessageReceipt>;
  /** All of them are stored, or none. */
  batchSendEmail(messages: readonly BatchedEmail[]): Promise<MessageReceipt[]>;
  sendSMS(message: SmsOptions): Promise<MessageReceipt>;
  batchSendSMS(messages: readonly SmsOptions[]): Promise<MessageReceipt[]>;
  /** Publishes a notification, as `Svc.Notifications.insert`. */
  sendPushNotification(options: NotificationOptions): Promise<Notification>;
  /** In a page: opens the user's mail program. */
  composeEmail(message?: Partial<EmailOptions>): Promise<void>;
  /** In a page: shares a URL with the user's other programs, or copies it. */
  shareURL(page?: SharedPage): Promise<"shared" | "copied">;
}

export interface NotificationOptions {
  /** Default: draft. */
  status?: "draft" | "published" | "scheduled";
  data?: { title?: string; message?: string; navigate?: unknown; [name: string]: unknown };
  /** A `where` on the app's user, or a list of them; null: all users. */
  scope?: object | (object | number)[] | null;
  /** ISO 8601 or Unix milliseconds: when a scheduled one is published. */
  orderAt?: string | number | null;
  pushNotification?: {
    payload: { title?: string; body?: string; badge?: number; [name: string]: unknown };
    /** Unix milliseconds. */
    delayUntilTimestamp?: number | null;
  } | null;
}

export interface Notification {
  id: number;
  appId: number;
  status: "draft" | "published" | "scheduled";
  data: NonNullable<NotificationOptions["data"]>;
  scope: NotificationOptions["scope"];
  orderAt: string | null;
  pushNotification: NotificationOptions["pushNotification"];
  publishedAt: string | null;
  /** Its position among the app's published ones. */
  cursor: number | null;
  /** True if the caller has read it. */
  readStatus: boolean;
  createdAt: string;
  updatedAt: string;
}

/** `Svc.Notifications`, of the package svc-notifications. */
export interface Notifications {
  init(): Omit<Notifications, "init">;
  insert(options: NotificationOptions): Promise<Notification>;
  batchInsert(all: readonly NotificationOptions[]): Promise<Notification[]>;
  /** `extendData` is merged into `data`. */
  update(id: number, fields: NotificationOptions & { extendData?: object }): Promise<Notification>;
  remove(id: number): Promise<void>;
  get(options?: { limit?: number; offset?: number; status?: string }): Promise<{ entries: Notification[] }>;
  markNotificationsAsRead(ids: "all" | readonly number[]): Promise<{ count: number }>;
  unread: { count(): Promise<number> };
  /** Calls `callback` with each new notification for the page's user. Returns a function that ends this. */
  stream(callback: (notification: Notification) => void): () => void;
  /** Subscribes this browser to Web Push, in a page on your own origin. `worker` is the path of a script there that imports the service's push-worker.js. */
  subscribe(options?: { worker?: string }): Promise<{ id: number }>;
  unsubscribe(): Promise<boolean>;
}
