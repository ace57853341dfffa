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
  /** Returns the same functions, for code that expects an initialized object. */
  init(): Omit<Communicate, "init">;
  /** Stores an e-mail, which the service sends. `{{name}}` in `subject`, `html` and `text` is replaced from `data`. */
  sendEmail(options: EmailOptions, data?: object): Promise<MessageReceipt>;
  /** All of them are stored, or none. */
  batchSendEmail(messages: readonly BatchedEmail[]): Promise<MessageReceipt[]>;
  /** Stores a text message, which the service sends by the provider of the app's settings. */
  sendSMS(message: SmsOptions): Promise<MessageReceipt>;
  /** Sends several text messages. All of them are stored, or none. */
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
  /** Returns the same functions, for code that expects an initialized object. */
  init(): Omit<Notifications, "init">;
  /** Creates a notification: a draft, unless `status` is published or scheduled. */
  insert(options: NotificationOptions): Promise<Notification>;
  /** Creates several notifications, all or none. */
  batchInsert(all: readonly NotificationOptions[]): Promise<Notification[]>;
  /** `extendData` is merged into `data`; with `true`, `data` is merged into the stored data. */
  update(id: number, fields: NotificationOptions & { extendData?: object | boolean }): Promise<Notification>;
  /** Deletes a notification. Pages no longer show it. */
  remove(id: number): Promise<void>;
  /** Lists notifications, newest first: in a page, those for its user. */
  get(options?: { limit?: number; offset?: number; status?: string }): Promise<{ entries: Notification[] }>;
  /** Marks notifications as read by the page's user. Returns how many were unread before. */
  markNotificationsAsRead(ids: "all" | readonly number[]): Promise<{ count: number }>;
  /** Returns the number of unread notifications of the page's user. */
  unread: { count(): Promise<number> };
  /** Calls `callback` with each new notification for the page's user. Returns a function that ends this. */
  stream(callback: (notification: Notification) => void): () => void;
  /** Subscribes this browser to Web Push, in a page on your own origin. `worker` is the path of a script there that imports the service's push-worker.js. */
  subscribe(options?: { worker?: string }): Promise<{ id: number }>;
  /** Ends this browser's subscription to Web Push. Returns false if there was none. */
  unsubscribe(): Promise<boolean>;
}
