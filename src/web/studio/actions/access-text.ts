/** Sentences that describe who can run an action by its name from a page of the app. */
import type { ActionAccess, TriggerType } from "../../../data/action-types.js";

type AccessLevel = "everyone" | "signedIn" | "editors" | "user";

export const ACCESS_LEVEL_LABELS: Record<AccessLevel, string> = {
  everyone: "Everyone",
  signedIn: "Signed-in app users",
  user: "App users who meet a rule",
  editors: "Editors, in the viewer",
};

const ACCESS_SENTENCES: Record<AccessLevel, string> = {
  everyone: "Every visitor of the live app can run it by its name.",
  signedIn: "Visitors who are signed in as app users can run it by its name.",
  user: "Signed-in app users who meet its rule can run it by its name.",
  editors: "No visitor of the live app can run it; editors can, in the viewer.",
};

const toAccessLevel = (access: ActionAccess | null): AccessLevel =>
  access === null ? "everyone" : typeof access === "string" ? access : "user";

export const describeAccess = (level: AccessLevel): string => ACCESS_SENTENCES[level];

interface PublishedFields {
  access: unknown;
  environment: string;
  triggers: readonly { trigger: TriggerType }[];
}

/** Describes who will be able to run the live version by its name after this draft is published. */
export function describePublishedAccess({ access, environment, triggers }: PublishedFields): string {
  if (environment === "client") return "It runs in the pages of visitors. The service never runs it.";
  if (!triggers.some(({ trigger }) => trigger === "manual"))
    return "No visitor can run it by its name, because it has no on-demand trigger.";
  return describeAccess(toAccessLevel(access as ActionAccess | null));
}

export const APP_ACCESS_SENTENCE =
  "Publishing the app opens its page to every visitor, who can run each published on-demand action whose access includes them.";
