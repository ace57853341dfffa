/** Schema of the manifest. The service validates manifests with it, and publishes it as `/schemas/manifest.json`. */
import { z } from "zod";
import type { PathFault } from "../errors.js";
import {
  ALERT_RULES_PER_APP,
  DATA_SOURCES_PER_APP,
  SECRET_BINDINGS_MAX,
  SETTING_KEY_MAX_CHARACTERS,
} from "../limits.js";
import type { ActionInput } from "./action-input.js";
import type { AlertInput } from "./alert-input.js";
import { ALERT_CHANNELS, ALERT_CONDITIONS } from "./alert-input.js";
import { isObject, kindOf } from "./described.js";
import type { DataSourceFields } from "./entries/data-source-input.js";
import { HTTP_WHERE_FIELDS } from "./http/where.js";
import { BINDING_PLACES, type SecretBinding } from "./secret-bindings.js";
import { ADDED_TRIGGER_TYPES, TRIGGER_TYPES } from "./trigger-input.js";
import { flatShape, nearestName, type Shape } from "./unknown-fields.js";

/** Version of the manifest format; an incompatible format gets a higher number. */
export const MANIFEST_VERSION = 1;
export const ACTIONS_PER_MANIFEST = 10_000;
export const SETTINGS_PER_MANIFEST = 10_000;
/** Maximum number of faults that a response reports. */
export const FAULTS_MAX = 1_000;

/** Kinds of things that a manifest contains, and that a deployment plan lists. */
export const MANIFEST_KINDS = ["app", "setting", "secretBinding", "dataSource", "action", "alert"] as const;
export type ManifestKind = (typeof MANIFEST_KINDS)[number];

/** Schema that accepts any JSON value. */
const json = z.unknown();
const openObject = z.looseObject({});

const triggerWhere = z
  .strictObject({
    ...Object.fromEntries(
      Object.keys(HTTP_WHERE_FIELDS).map((name) => [name, json.describe(`Field \`${name}\` of an HTTP trigger.`)]),
    ),
    type: z.string().describe("Type of the event, for log and analytics triggers."),
    dataSource: z.string().nullable().describe("Name of the data source, for a log trigger."),
    dataSourceId: z.int().nullable().describe("ID of a data source that no longer exists."),
    data: openObject.nullable().describe("Values that the data of an analytics event must have."),
  })
  .partial();

const triggerSchema = z
  .strictObject({
    trigger: z
      .enum(TRIGGER_TYPES as [string, ...string[]])
      .describe(
        `Kind of trigger. ${ADDED_TRIGGER_TYPES.join(", ")} is an addition of this service to the specification.`,
      ),
    where: triggerWhere.nullable(),
  })
  .partial({ where: true });

/** Descriptions of the fields of an action. The compiler requires one for each new field of `ActionInput`. */
const actionFields = {
  name: z.string().describe("Name, unique in the app: letters, numbers, dashes and underscores."),
  code: z.string().describe("JavaScript that defines the async function execute."),
  description: z.string().nullable().describe("Description for other editors."),
  active: z.boolean().describe("False if the action cannot be run."),
  environment: z.enum(["server", "client", "any"]).describe("Environment in which the action runs."),
  triggers: z.array(triggerSchema).describe("Triggers that start the action."),
  dependencies: z.array(z.string()).describe("Packages and https URLs that the code uses."),
  access: z
    .union([z.enum(["everyone", "signedIn", "editors"]), z.strictObject({ user: openObject })])
    .describe("Visitors who may run the action on demand: a word, or a condition on the signed-in user."),
  integrationOrigins: z.array(z.string()).describe("Origins that the action may send requests to."),
  frequency: z.string().nullable().describe("Cron expression of five fields, for a schedule trigger."),
  timezone: z.string().nullable().describe("IANA time zone of the frequency."),
  source: z
    .strictObject({ language: z.enum(["typescript", "javascript"]), files: z.record(z.string(), z.string()) })
    .nullable()
    .describe("Files from which the service builds the code. If set, `code` is ignored."),
  concurrency: z
    .strictObject({ policy: z.enum(["skip", "queue", "cancel"]), limit: z.int(), key: z.string().nullable() })
    .partial({ limit: true, key: true })
    .nullable()
    .describe("Limit of concurrent runs: policy, limit and key."),
  debounce: z
    .strictObject({ delayMs: z.int(), maxWaitMs: z.int(), manual: z.boolean() })
    .partial({ maxWaitMs: true, manual: true })
    .nullable()
    .describe("Combines starts in quick succession into one run: delayMs, maxWaitMs and manual."),
  timeoutMs: z.int().nullable().describe("Maximum duration of a run in milliseconds."),
  jitterSeconds: z.int().nullable().describe("Seconds over which scheduled runs are spread, for a schedule trigger."),
} satisfies Record<keyof ActionInput, z.ZodType>;

const actionSchema = z
  .strictObject({
    ...actionFields,
    assets: z
      .array(z.strictObject({ name: z.string(), version: z.string().optional(), integrity: z.string() }))
      .describe("Exact scripts of the dependencies, written by the service."),
  })
  .partial()
  .required({ name: true });

const dataSourceFields = {
  name: z.string().describe("Name, unique in the app."),
  columns: z.array(z.string()).describe("Names of the columns, in order."),
  accessRules: z
    .array(openObject)
    .describe("Rules that decide which users of the app's pages can read and write the entries."),
  hooks: z.array(openObject).describe("Hooks that change values or send messages when entries are written."),
  indexes: z.array(json).describe("Columns, lists of columns, or {columns, unique}."),
  isUsers: z.boolean().describe("True if the entries are the users who can sign in to the app's pages."),
} satisfies Record<keyof DataSourceFields<unknown>, z.ZodType>;

const dataSource = z.strictObject(dataSourceFields).partial().required({ name: true });

const { actionId: _, ...alertFields } = {
  name: z.string().describe("Name, unique in the app."),
  condition: z.enum(ALERT_CONDITIONS).describe("Condition under which the alert fires."),
  actionId: z.never(),
  failures: z.int().describe("Number of failed runs among the last `of` runs."),
  of: z.int().describe("Number of runs that are considered."),
  minutes: z.int().describe("Minutes without a successful run (silent), or age of the oldest queued run (queued)."),
  channel: z.enum(ALERT_CHANNELS).describe("Channel through which the alert is sent."),
  to: z.array(z.string()).describe("Recipients of e-mails."),
  setting: z.string().nullable().describe("Key of the protected setting with the URL of the webhook."),
  enabled: z.boolean().describe("False if the alert never fires."),
} satisfies Record<keyof AlertInput, z.ZodType>;

const alertSchema = z
  .strictObject({
    ...alertFields,
    action: z.string().nullable().describe("Name of the action; null for the whole app."),
  })
  .partial()
  .required({ name: true, condition: true, channel: true });

const settingSchema = z
  .strictObject({
    key: z.string().min(1).max(SETTING_KEY_MAX_CHARACTERS).describe("Top-level key of the setting."),
    tier: z
      .enum(["public", "private", "protected"])
      .describe("Tier of the setting, as the underscores at the start of the key determine it."),
    value: json.describe("Value of a public setting; other tiers never have one."),
    secret: z.boolean().describe("False if results and logs of runs may contain the value of a private setting."),
  })
  .partial()
  .required({ key: true });

const secretBindingFields = {
  key: z.string().describe("Key of a private or protected setting. Its value is never in a manifest."),
  origin: z.string().describe("Origin to which requests with the value are sent."),
  in: z.enum(BINDING_PLACES).describe("Place in the request."),
  name: z.string().nullable().describe("Header or parameter; the user for basic; service and region for aws-sigv4."),
  format: z.string().nullable().describe("Text that is sent, which contains {value} once."),
  sealed: z.boolean().describe("True if code cannot read the setting."),
  tokenUrl: z.string().nullable().describe("URL at which tokens are requested, for oauth2."),
  clientId: z.string().nullable().describe("ID of the client, for oauth2."),
  scopes: z.array(z.string()).describe("Scopes of the token, for oauth2."),
  grant: z.enum(["client_credentials", "refresh_token"]).nullable().describe("Grant, for oauth2."),
} satisfies Record<keyof SecretBinding, z.ZodType>;

const secretBinding = z.strictObject(secretBindingFields).partial().required({ key: true, origin: true, in: true });

const app = z
  .strictObject({
    icon: z.string().nullable().describe("Icon of the app."),
    hooks: json.describe("Hooks of the app's pages."),
    dependencies: json.describe("Dependencies of the app's pages."),
    isTemplate: z.boolean().describe("True if the app is a template."),
  })
  .partial();

export const MANIFEST = z
  .strictObject({
    $schema: z.string().describe("URL of this schema, for text editors."),
    version: z.literal(MANIFEST_VERSION).describe("Version of the format."),
    app: app.describe("Properties of the app."),
    settings: z.array(settingSchema).max(SETTINGS_PER_MANIFEST).describe("Settings by key."),
    secretBindings: z
      .array(secretBinding)
      .max(SECRET_BINDINGS_MAX)
      .describe("Secret bindings: settings that the service adds to requests to certain origins."),
    dataSources: z.array(dataSource).max(DATA_SOURCES_PER_APP).describe("Data sources without their entries."),
    actions: z.array(actionSchema).max(ACTIONS_PER_MANIFEST).describe("Drafts of the actions."),
    alerts: z.array(alertSchema).max(ALERT_RULES_PER_APP).describe("Alerts."),
  })
  .partial()
  .required({ version: true });

/** Parts of the schema from which the GraphQL types are generated. */
export const MANIFEST_PARTS = {
  app,
  setting: settingSchema,
  secretBinding,
  dataSource,
  action: actionSchema,
  trigger: triggerSchema,
  triggerWhere,
  alert: alertSchema,
};

export type Manifest = z.infer<typeof MANIFEST>;
export type ManifestField = Exclude<keyof Manifest, "$schema" | "version">;

/** Returns the schema as a JSON Schema document. */
export function manifestJsonSchema(id: string): object {
  const { $schema, ...schema } = z.toJSONSchema(MANIFEST, { target: "draft-2020-12" });
  return { $schema, $id: id, title: "Manifest of a Svc app", ...schema };
}

const fieldsOf = (schema: z.ZodObject): readonly string[] => Object.keys(schema.shape);

/** Allowed fields of the items in a manifest. */
export const SETTING_SHAPE: Shape = flatShape(fieldsOf(settingSchema));
export const ALERT_FIELDS: readonly string[] = fieldsOf(alertSchema);
export const DATA_SOURCE_FIELDS: readonly string[] = fieldsOf(dataSource);
export const APP_SHAPE: Shape = flatShape(fieldsOf(app));

/** Returns a path as text: `["actions", 3, "name"]` becomes `actions[3].name`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    const name = String(part);
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[\w$]{1,60}$/.test(name)) text += text === "" ? name : `.${name}`;
    else text += `[${JSON.stringify(name.slice(0, 60)).toWellFormed()}]`;
  }
  return text;
}

/** True if the rest of the manifest cannot be read because of a fault at this path. */
export const isStructuralPath = (path: readonly PropertyKey[]): boolean =>
  path.length <= 2 || (path.length === 3 && path[2] === "key");

function unknownField(path: readonly PropertyKey[], name: string): string {
  const knownSchema =
    path.length === 0 ? MANIFEST : path[0] === "app" ? app : path[0] === "settings" ? settingSchema : null;
  const nearestAdvice = knownSchema
    ? `; the nearest known field is ${JSON.stringify(nearestName(name, fieldsOf(knownSchema)))}`
    : "";
  return `is not a known field${nearestAdvice}`;
}

/** Describes the problem of a value. The text never contains the value, because it may be a secret. */
function reasonOf(issue: z.core.$ZodIssue, document: unknown): string {
  const received = issue.path.reduce<unknown>(
    (value, name) => (value as Record<PropertyKey, unknown> | null | undefined)?.[name],
    document,
  );
  if (received === undefined) return "is required (got nothing)";
  if (issue.code === "invalid_type") return `must be ${withArticle(issue.expected)} (got ${kindOf(received)})`;
  if (issue.code === "invalid_value") {
    const values = issue.values.map((value) => JSON.stringify(value));
    return `must be ${values.length > 1 ? "one of " : ""}${values.join(", ")} (got ${kindOf(received)})`;
  }
  return `is not valid: ${issue.message.slice(0, 200).toWellFormed()}`;
}

const withArticle = (type: string): string => `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`;

/** Checks a manifest with the schema. Returns the faults in the order of the document; messages never contain values. */
export function shapeFaults(document: unknown): { faults: PathFault[]; isReadable: boolean } {
  const { error } = MANIFEST.safeParse(document);
  const issues = error?.issues ?? [];
  const faults = issues.flatMap((issue): PathFault[] => {
    const { path } = issue;
    const keys = issue.code === "unrecognized_keys" ? issue.keys : [];
    const places = keys.length > 0 ? keys.slice(0, FAULTS_MAX).map((key) => [...path, key]) : [path];
    return places.map((place) => {
      const pathName = place.length === 0 ? "the manifest" : pathText(place);
      const reason = keys.length > 0 ? unknownField(path, String(place.at(-1))) : reasonOf(issue, document);
      return { path: pathText(place), status: "REQUEST_INVALID", error: `${pathName} ${reason}` };
    });
  });
  return {
    faults: faults.slice(0, FAULTS_MAX),
    isReadable: !issues.some(({ code, path }) => code !== "unrecognized_keys" && isStructuralPath(path)),
  };
}

const objectsOf = (list: unknown) => (Array.isArray(list) ? list.filter(isObject) : []);

/**
 * Removes fields that are null but must be absent, because GraphQL returns null for absent fields. Changes the document.
 * Keeps the value null of a public setting, which is valid.
 */
export function removeNullFields(document: unknown): void {
  if (!isObject(document)) return;
  for (const { path } of MANIFEST.safeParse(document).error?.issues ?? []) {
    const parent = path
      .slice(0, -1)
      .reduce<unknown>((value, name) => (value as Record<PropertyKey, unknown> | null | undefined)?.[name], document);
    const name = path.at(-1);
    if (isObject(parent) && typeof name === "string" && parent[name] === null) delete parent[name];
  }
  for (const setting of objectsOf(document["settings"]))
    if (setting["value"] === null && (setting["tier"] === "private" || setting["tier"] === "protected"))
      delete setting["value"];
  for (const { where } of objectsOf(document["actions"]).flatMap(({ triggers }) => objectsOf(triggers)))
    for (const [name, value] of Object.entries(isObject(where) ? where : {}))
      if (value === null) delete (where as Record<string, unknown>)[name];
}

/** Combines the faults of an item with the faults that the schema found at other paths. */
export function mergeFaults(faults: readonly PathFault[], shape: readonly PathFault[]): PathFault[] {
  const isWithin = (inner: string, outer: string) =>
    inner === outer || inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`);
  const furtherFaults = shape.filter(
    ({ path }) => !faults.some((fault) => isWithin(path, fault.path) || isWithin(fault.path, path)),
  );
  return [...faults, ...furtherFaults].slice(0, FAULTS_MAX);
}
