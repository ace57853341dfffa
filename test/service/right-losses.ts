/** Lists the subscriptions of the schema, the ways to lose the right to each, and the outcome that the subscriber must see. */

export type SubscriptionName =
  | "actionChanged"
  | "actionLogAdded"
  | "clientTriggers"
  | "dataSourceChanged"
  | "notificationAdded"
  | "runConsoleAdded"
  | "runConsoleLinesAdded";
/** Kinds of callers of a subscription. */
export type CallerKind = "api" | "editor" | "live" | "visitor" | "user";
/** A code: an error with this status. `reset`: a message with `reset`. `goes on`: events continue without a message. */
type Outcome =
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "DATA_SOURCE_ACCESS_DENIED"
  | "DATA_SOURCE_NOT_FOUND"
  | "RUN_NOT_FOUND"
  | "reset"
  | "goes on";

interface Subject {
  query: string;
  callers: readonly CallerKind[];
}

export const SUBJECTS: Record<SubscriptionName, Subject> = {
  actionChanged: { query: "actionChanged(appId: $app) { reset id }", callers: ["editor"] },
  actionLogAdded: { query: "actionLogAdded(appId: $app) { id }", callers: ["api", "editor"] },
  clientTriggers: {
    query: "clientTriggers(appId: $app) { reset actions { id } }",
    callers: ["live", "visitor", "editor"],
  },
  dataSourceChanged: {
    query: "dataSourceChanged(appId: $app, dataSourceId: $source) { reset inserted { id } }",
    callers: ["api", "editor", "user"],
  },
  notificationAdded: { query: "notificationAdded(appId: $app) { id }", callers: ["api", "live", "visitor", "editor"] },
  runConsoleAdded: { query: "runConsoleAdded(appId: $app, runId: $run) { seq }", callers: ["api", "editor"] },
  runConsoleLinesAdded: { query: "runConsoleLinesAdded(appId: $app, runId: $run) { seq }", callers: ["api", "editor"] },
};

const RIGHT_LOSSES = [
  "token revoked",
  "token expired",
  "role changed",
  "rule removed",
  "rule changed",
  "signed out",
  "target deleted",
  "app unpublished",
] as const;
export type RightLoss = (typeof RIGHT_LOSSES)[number];

function outcomeOf(name: SubscriptionName, callerKind: CallerKind, rightLoss: RightLoss): Outcome {
  const isRun = name.startsWith("runConsole");
  switch (rightLoss) {
    case "token revoked":
    case "token expired":
      return "UNAUTHORIZED";
    case "role changed":
      return callerKind === "editor" ? "FORBIDDEN" : callerKind === "user" ? "reset" : "goes on";
    case "rule removed":
    case "signed out":
      return callerKind === "user" ? "DATA_SOURCE_ACCESS_DENIED" : "goes on";
    case "rule changed":
      return callerKind === "user" ? "reset" : "goes on";
    case "target deleted":
      return isRun ? "RUN_NOT_FOUND" : name === "dataSourceChanged" ? "DATA_SOURCE_NOT_FOUND" : "goes on";
    case "app unpublished":
      if (callerKind === "visitor") return "UNAUTHORIZED";
      return name === "clientTriggers" && callerKind === "live" ? "reset" : "goes on";
  }
}

export const subscriptionCases = (Object.keys(SUBJECTS) as SubscriptionName[]).flatMap((name) =>
  SUBJECTS[name].callers.flatMap((callerKind) =>
    RIGHT_LOSSES.map((rightLoss) => ({
      name,
      callerKind,
      rightLoss,
      outcome: outcomeOf(name, callerKind, rightLoss),
    })),
  ),
);
