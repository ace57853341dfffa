/** What an action is made of (specification, Resources): one definition for the server, Studio and the client library. Types alone. */

export type Environment = "server" | "client" | "any";

/** The draft, and what live apps run. */
export type Copy = "master" | "production";

export type TriggerType = "manual" | "schedule" | "log" | "analytics";

/** Filter of a `log` trigger. Without `dataSourceId` every data source matches. */
export interface LogWhere {
  type: string;
  dataSourceId?: number;
}

export type AnalyticsEventType = "analytics.pageView" | "analytics.event";

/** Filter of an `analytics` trigger. Without `data` every event of the type matches. */
export interface AnalyticsWhere {
  type: AnalyticsEventType;
  data?: Record<string, unknown>;
}

/** What starts an action: known properties alone. */
export type Trigger =
  | { trigger: "manual" | "schedule" }
  | { trigger: "log"; where: LogWhere }
  | { trigger: "analytics"; where: AnalyticsWhere };

/** What a dependency loads. */
export interface Asset {
  name: string;
  url: string;
  path: string;
}

/** As a row keeps it: without `url` where this service serves it, whose address may change. Rows of before hold one there too. */
export type StoredAsset = Omit<Asset, "url"> & { url?: string };
