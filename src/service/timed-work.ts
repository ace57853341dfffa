/** Periodic work of a process: schedules, messages, notifications, alerts, cleanup. It ends when the service stops. */
import { runInBackground } from "../background.js";
import type { DatabaseNotifications } from "../engine/notifications.js";
import { createTicker, type Ticker } from "../engine/ticker.js";
import { QUEUED_ALERT_CHANNEL } from "../operations/alerts/alert-rows.js";
import { QUEUED_MESSAGE_CHANNEL } from "../operations/communicate/outbox.js";
import { NOTIFICATION_CHANNEL } from "../operations/notifications/notification-rows.js";
import type { Operations } from "../operations/operations.js";
import { SCHEDULE_CHANNEL } from "../operations/triggers/trigger-index.js";
import type { ServiceStartContext } from "./plan.js";

/** Milliseconds between two checks of alert rules in each process. */
const ALERTS_INTERVAL_MS = 5_000;
/** Milliseconds after which each API process looks again for git webhooks that another process has accepted but not handled. */
const GIT_WEBHOOKS_INTERVAL_MS = 5_000;

const CLEANER_SLEEP_MAX_MS = 3_600_000;

const stopTickers = (tickers: readonly Ticker[]) => Promise.all(tickers.map((ticker) => ticker.stop()));

/** Starts tickers one after the other, so that they need few database connections at the same time. */
async function startOneByOne(tickers: readonly Ticker[]): Promise<void> {
  for (const ticker of tickers) await ticker.start();
}

export async function startScheduler(
  startContext: ServiceStartContext,
  notifications: DatabaseNotifications,
  { triggers: { scheduler } }: Operations,
): Promise<void> {
  const { config, clock, log, releases, readinessChecks } = startContext;
  if (!config.roles.has("scheduler")) return;
  const ticker = createTicker({ work: () => scheduler.claimDueSchedules(), msUntil: clock.msUntil, log });
  notifications.listen(SCHEDULE_CHANNEL, ticker.wake);
  notifications.onGap(ticker.wake);
  await ticker.start();
  releases.add("ticker", () => ticker.stop());
  readinessChecks["scheduler"] = ticker.isHealthy;
}

/**
 * Starts to send queued messages. Usually only processes with the role "scheduler" send them. If none is running, other processes do, so
 * that the alert about the missing scheduler is sent.
 */
export async function startSendingMessages(
  startContext: ServiceStartContext,
  notifications: DatabaseNotifications,
  { messagingModules, vitals }: Operations,
): Promise<void> {
  const { config, clock, log, releases, gracePeriodEnded } = startContext;
  releases.add("mail", () => messagingModules.stop());
  const { sender } = messagingModules;
  const isScheduler = config.roles.has("scheduler");
  const sendDueMessages = async () =>
    !isScheduler && (await vitals.isRoleRunning("scheduler")) ? null : sender.sendDueMessages();
  const tickerOptions = isScheduler ? {} : { sleepMaxMs: ALERTS_INTERVAL_MS };
  const ticker = createTicker({ work: sendDueMessages, msUntil: clock.msUntil, ...tickerOptions, log });
  sender.onDeliveryEnd(ticker.wake);
  notifications.listen(QUEUED_MESSAGE_CHANNEL, ticker.wake);
  notifications.onGap(ticker.wake);
  await ticker.start();
  releases.add("messages", () => ticker.stop().then(() => sender.drain(gracePeriodEnded)));
}

/** Starts to check alert rules and to send alerts. Every process does this, so that alerts work even if other processes fail. */
export async function startAlerts(
  startContext: ServiceStartContext,
  notifications: DatabaseNotifications,
  { alerts: { watch, delivery } }: Operations,
): Promise<void> {
  const { clock, log, releases, gracePeriodEnded } = startContext;
  const tickerOptions = { msUntil: clock.msUntil, sleepMaxMs: ALERTS_INTERVAL_MS, log };
  const tickers = [() => watch.checkRules(), () => delivery.sendDueAlerts()].map((work) =>
    createTicker({ work, ...tickerOptions }),
  );
  const [, deliveryTicker] = tickers;
  delivery.onDeliveryEnd(() => deliveryTicker!.wake());
  for (const ticker of tickers) {
    notifications.listen(QUEUED_ALERT_CHANNEL, ticker.wake);
    await ticker.start();
  }
  releases.add("alerts", () => stopTickers(tickers).then(() => delivery.drain(gracePeriodEnded)));
}

export async function startNotifications(
  startContext: ServiceStartContext,
  notifications: DatabaseNotifications,
  { notificationModules }: Operations,
): Promise<void> {
  const { config, clock, log, releases, gracePeriodEnded } = startContext;
  if (!config.roles.has("scheduler")) return;
  const { service, push } = notificationModules;
  const tickers = [() => service.publishDueNotifications(), () => push.sendDuePushes()].map((work) =>
    createTicker({ work, msUntil: clock.msUntil, log }),
  );
  const [, pushTicker] = tickers;
  push.onDeliveryEnd(() => pushTicker!.wake());
  const wake = () => tickers.map((ticker) => ticker.wake());
  notifications.listen(NOTIFICATION_CHANNEL, wake);
  notifications.onGap(wake);
  await startOneByOne(tickers);
  releases.add("notifications", () => stopTickers(tickers).then(() => push.drain(gracePeriodEnded)));
}

/** Starts to pull git repositories after webhooks, including webhooks that another process accepted before it failed. */
export async function startGitPulls(
  { config, clock, log, releases, gracePeriodEnded }: ServiceStartContext,
  { git }: Operations,
) {
  if (!config.roles.has("api")) return;
  const { webhooks } = git;
  const ticker = createTicker({
    work: () => webhooks.startDuePulls(),
    msUntil: clock.msUntil,
    sleepMaxMs: GIT_WEBHOOKS_INTERVAL_MS,
    log,
  });
  webhooks.onPullsWaiting(ticker.wake);
  await ticker.start();
  releases.add("git pulls", () => ticker.stop().then(() => webhooks.drain(gracePeriodEnded)));
}

export function startCleaner(
  startContext: ServiceStartContext,
  { retention, runSearch, trimming, store, media, packages, tokens, stages }: Operations,
): void {
  const { config, log, releases } = startContext;
  if (!config.roles.has("scheduler")) return;
  const tickerOptions = { msUntil: (time: number) => time - Date.now(), sleepMaxMs: CLEANER_SLEEP_MAX_MS, log };
  const periodicWork = [
    () => retention.clean(),
    () => retention.createPartitionsAhead(),
    () => runSearch.indexEndedRuns(),
    () => trimming.trim(),
    () => store.upkeep.clean(),
    () => tokens.warnOfExpiry(),
    () => stages.expire(),
    () => packages.sweep(),
    () => media.sweep.sweep(),
  ];
  const tickers = periodicWork.map((work) => createTicker({ work, ...tickerOptions }));
  // The tickers start at the same time, so that slow work of one does not delay the others.
  for (const ticker of tickers) runInBackground(ticker.start());
  store.start();
  releases.add("cleaner", () => {
    retention.stop();
    runSearch.stop();
    trimming.stop();
    store.upkeep.stop();
    stages.stop();
    media.sweep.stop();
    return stopTickers(tickers);
  });
}
