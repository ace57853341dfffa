/** Public types of svc-communicate and svc-notifications. The build adds them to svc.d.ts. This file contains only types. */

/** Response to a call that sends a message. The service has stored the message. It sends the message later, unless `status` is `kept`. */
export interface MessageReceipt {
  id: number;
  /** queued: the service will send the message. kept: the service only stores it, because the app has no mail server or SMS provider. */
  status: "kept" | "queued";
}

export interface EmailOptions {
  to: { email: string; name?: string; type?: "to" | "cc" | "bcc" }[];
  /** `{{name}}` in `subject`, `html` and `text` is replaced by the value of `name` in `data`. */
  subject?: string;
  /** Name of the sender. The sender's address is set in the app's e-mail settings. */
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
  /** Returns the other functions of this namespace, for code that calls `init` first. */
  init(): Omit<Communicate, "init">;
  /** Queues an e-mail. `{{name}}` in `subject`, `html` and `text` is replaced by the value of `name` in `data`. */
  sendEmail(options: EmailOptions, data?: object): Promise<MessageReceipt>;
  /** Queues several e-mails: all of them, or none if one is invalid. */
  batchSendEmail(messages: readonly BatchedEmail[]): Promise<MessageReceipt[]>;
  /** Queues a text message. The service sends it by the SMS provider in the app's settings. */
  sendSMS(message: SmsOptions): Promise<MessageReceipt>;
  /** Queues several text messages: all of them, or none if one is invalid. */
  batchSendSMS(messages: readonly SmsOptions[]): Promise<MessageReceipt[]>;
  /**
   * Creates a notification like `Svc.Notifications.insert`, with the status published by default. Devices get it only if `options` contains
   * `pushNotification`.
   */
  sendPushNotification(options: NotificationOptions): Promise<Notification>;
  /** In a page: opens the user's mail program. */
  composeEmail(message?: Partial<EmailOptions>): Promise<void>;
  /** In a page: shares a URL with the user's other programs, or copies it. */
  shareURL(page?: SharedPage): Promise<"shared" | "copied">;
}

export interface NotificationOptions {
  /** Status of a new notification: `draft` by default. */
  status?: "draft" | "published" | "scheduled";
  data?: { title?: string; message?: string; navigate?: unknown; [name: string]: unknown };
  /** Recipients: conditions on the columns of app users, or a list of user IDs and conditions. null: all users. */
  scope?: object | (object | number)[] | null;
  /** Time at which a scheduled notification is published: ISO 8601 or Unix milliseconds. */
  orderAt?: string | number | null;
  pushNotification?: {
    payload: { title?: string; body?: string; badge?: number; [name: string]: unknown };
    /** Time at which the service sends the push message, as Unix time in milliseconds. */
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
  /** Position among the app's published notifications; null before the publication. */
  cursor: number | null;
  /** True if the caller has read the notification. */
  readStatus: boolean;
  createdAt: string;
  updatedAt: string;
}

/** `Svc.Notifications`, of the package svc-notifications. */
export interface Notifications {
  /** Returns the other functions of this namespace, for code that calls `init` first. */
  init(): Omit<Notifications, "init">;
  /** Creates a notification: a draft, unless `status` is published or scheduled. */
  insert(options: NotificationOptions): Promise<Notification>;
  /** Creates several notifications, all or none. */
  batchInsert(notifications: readonly NotificationOptions[]): Promise<Notification[]>;
  /** Changes the passed fields. `data` replaces the stored data, or with `extendData: true` is merged into it. An object in `extendData` is merged into the stored data. */
  update(id: number, fields: NotificationOptions & { extendData?: object | boolean }): Promise<Notification>;
  /** Deletes a notification. Pages no longer show it. */
  remove(id: number): Promise<void>;
  /** Lists notifications, newest first. In a page, lists the newest 1,000 for the page's user, or fewer if the search for them ends at a limit. */
  get(options?: { limit?: number; offset?: number; status?: string }): Promise<{ entries: Notification[] }>;
  /** Marks notifications as read by the page's user. Returns how many were unread before. */
  markNotificationsAsRead(ids: "all" | readonly number[]): Promise<{ count: number }>;
  /** `count` returns the number of unread notifications among those that `get` can list for the page's user. */
  unread: { count(): Promise<number> };
  /** Calls `callback` with each new notification for the page's user. Returns a function that ends the subscription. */
  stream(callback: (notification: Notification) => void): () => void;
  /** Subscribes this browser to Web Push, in a page on your own origin. `worker` is the path of a script there that imports the service's push-worker.js. */
  subscribe(options?: { worker?: string }): Promise<{ id: number }>;
  /** Ends this browser's subscription to Web Push of this app. Returns false if there was none. Subscriptions to other apps stay. */
  unsubscribe(): Promise<boolean>;
}
