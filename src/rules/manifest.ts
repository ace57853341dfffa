/**
 * Schema of the manifest (the JSON document with all definitions of an app). The service validates manifests with this schema, and serves
 * it at `/schemas/manifest.json`.
 */
import { z } from "zod";
import type { ManifestPathFault } from "../errors.js";
import {
  ALERT_RULES_PER_APP,
  DATA_SOURCES_PER_APP,
  SECRET_BINDINGS_PER_APP_MAX,
  SETTING_KEY_MAX_CHARACTERS,
} from "../limits.js";
import type { ActionInput } from "./action-input.js";
import type { AlertRuleFields } from "./alert-input.js";
import { ALERT_CHANNELS, ALERT_CONDITIONS } from "./alert-input.js";
import { describeType, isObject } from "./describe-value.js";
import type { DataSourceFields } from "./entries/data-source-input.js";
import { HTTP_WHERE_FIELDS } from "./http/where.js";
import { SECRET_BINDING_TARGETS, type SecretBinding } from "./secret-bindings.js";
import { TRIGGER_TYPES, TRIGGER_TYPES_NOT_IN_SPECIFICATION } from "./trigger-input.js";
import { createFlatShape, findNearestName, type Shape } from "./unknown-fields.js";

/** Version of the manifest format. An incompatible change of the format must increase it. */
export const MANIFEST_VERSION = 1;
export const ACTIONS_PER_MANIFEST_MAX = 10_000;
export const SETTINGS_PER_MANIFEST_MAX = 10_000;
export const REPORTED_FAULTS_MAX = 1_000;

/** Kinds of items in a manifest. The list of changes that a manifest would make also names these kinds. */
export const MANIFEST_ITEM_KINDS = ["app", "setting", "secretBinding", "dataSource", "action", "alert"] as const;
export type ManifestItemKind = (typeof MANIFEST_ITEM_KINDS)[number];

const anyJsonSchema = z.unknown();
const objectSchema = z.looseObject({});

const triggerWhereSchema = z
  .strictObject({
    ...Object.fromEntries(
      Object.keys(HTTP_WHERE_FIELDS).map((name) => [
        name,
        anyJsonSchema.describe(`Field \`${name}\` of an HTTP trigger.`),
      ]),
    ),
    type: z.string().describe("Type of the event, for log and analytics triggers."),
    dataSource: z.string().nullable().describe("Name of the data source, for a log trigger."),
    dataSourceId: z.int().nullable().describe("ID of a data source that no longer exists."),
    data: objectSchema.nullable().describe("Values that the data of an analytics event must have."),
  })
  .partial();

const triggerSchema = z
  .strictObject({
    trigger: z
      .enum(TRIGGER_TYPES as [string, ...string[]])
      .describe(
        `Kind of trigger. ${TRIGGER_TYPES_NOT_IN_SPECIFICATION.join(", ")} is an addition of this service to the specification.`,
      ),
    where: triggerWhereSchema
      .nullable()
      .describe("Condition of the trigger: which events or requests start the action."),
  })
  .partial({ where: true });

/** Schemas of an action's fields. The compiler reports an error if a field of `ActionInput` has none. */
const actionFields = {
  name: z.string().describe("Name, unique in the app: letters, numbers, dashes and underscores."),
  code: z.string().describe("JavaScript that defines the async function execute."),
  description: z.string().nullable().describe("Description for other editors."),
  active: z.boolean().describe("False if the action cannot be run."),
  environment: z.enum(["server", "client", "any"]).describe("Environment in which the action runs."),
  triggers: z.array(triggerSchema).describe("Triggers that start the action."),
  dependencies: z.array(z.string()).describe("Packages and https URLs that the code uses."),
  access: z
    .union([
      z.enum(["everyone", "signedIn", "editors"]),
      z.strictObject({ user: objectSchema.describe("Tests that the signed-in app user's columns must meet.") }),
    ])
    .describe("Visitors who may run the action on demand: a word, or a condition on the signed-in user."),
  integrationOrigins: z.array(z.string()).describe("Origins that the action may send requests to."),
  frequency: z.string().nullable().describe("Cron expression of five fields, for a schedule trigger."),
  timezone: z.string().nullable().describe("IANA time zone in which `frequency` applies."),
  source: z
    .strictObject({
      language: z.enum(["typescript", "javascript"]).describe("Language of the files."),
      files: z.record(z.string(), z.string()).describe("Text of each file, by path."),
    })
    .nullable()
    .describe("Files from which the service builds the code. If set, `code` is ignored."),
  concurrency: z
    .strictObject({
      policy: z.enum(["skip", "queue", "cancel"]).describe("What happens to a new run above the limit."),
      limit: z.int().describe("Maximum number of runs at the same time."),
      key: z
        .string()
        .nullable()
        .describe("Path of a property of the payload; the limit applies to each of its values."),
    })
    .partial({ limit: true, key: true })
    .nullable()
    .describe("Limit of the runs of the action at the same time."),
  debounce: z
    .strictObject({
      delayMs: z.int().describe("Milliseconds without a further request after which the run starts."),
      maxWaitMs: z.int().describe("Longest time in milliseconds by which requests can delay the run."),
      manual: z
        .boolean()
        .describe("True to also merge calls of `run` and `runWithResult`, separately for each caller."),
    })
    .partial({ maxWaitMs: true, manual: true })
    .nullable()
    .describe("Merges requests to start the action that shortly follow each other into one run."),
  timeoutMs: z.int().nullable().describe("Maximum duration of a run in milliseconds."),
  jitterSeconds: z
    .int()
    .nullable()
    .describe("Maximum delay of a scheduled run in seconds; each action has a fixed delay."),
} satisfies Record<keyof ActionInput, z.ZodType>;

const actionSchema = z
  .strictObject({
    ...actionFields,
    assets: z
      .array(
        z.strictObject({
          name: z.string().describe("Dependency as the action lists it."),
          version: z.string().optional().describe("Exact version of a package from npm."),
          integrity: z.string().describe("Subresource integrity of the script."),
        }),
      )
      .describe("Exact scripts of the dependencies, written by the service."),
  })
  .partial()
  .required({ name: true });

const dataSourceFields = {
  name: z.string().describe("Name, unique in the app."),
  columns: z.array(z.string()).describe("Names of the columns, in order."),
  accessRules: z
    .array(objectSchema)
    .describe("Rules that decide which users of the app's pages can read and write the entries."),
  hooks: z.array(objectSchema).describe("Hooks that change values or send messages when an entry is written."),
  indexes: z.array(anyJsonSchema).describe("Indexes: each is a column, a list of columns, or {columns, unique}."),
  isUsers: z.boolean().describe("True if the entries are the users who can sign in to the app's pages."),
} satisfies Record<keyof DataSourceFields<unknown>, z.ZodType>;

const dataSourceSchema = z.strictObject(dataSourceFields).partial().required({ name: true });

const { actionId: _, ...alertFields } = {
  name: z.string().describe("Name, unique in the app."),
  condition: z.enum(ALERT_CONDITIONS).describe("Condition under which the alert fires."),
  actionId: z.never(),
  failures: z.int().describe("Number of failed runs among the last `of` runs at which the alert fires."),
  of: z.int().describe("Number of newest runs among which the alert counts `failures`."),
  minutes: z.int().describe("Minutes without a successful run (silent), or age of the oldest queued run (queued)."),
  channel: z.enum(ALERT_CHANNELS).describe("Channel through which the alert is sent."),
  to: z.array(z.string()).describe("E-mail addresses to which the alert is sent."),
  setting: z.string().nullable().describe("Key of the protected setting with the URL of the webhook."),
  enabled: z.boolean().describe("False if the alert never fires."),
} satisfies Record<keyof AlertRuleFields, z.ZodType>;

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
    value: anyJsonSchema.describe("Value of a public setting; other tiers never have one."),
    secret: z.boolean().describe("False if results and logs of runs may contain the value of a private setting."),
  })
  .partial()
  .required({ key: true });

const secretBindingFields = {
  key: z.string().describe("Key of a private or protected setting. Its value is never in a manifest."),
  origin: z.string().describe("Origin to which requests with the value are sent."),
  in: z.enum(SECRET_BINDING_TARGETS).describe("Way in which requests contain the value."),
  name: z.string().nullable().describe("Header or parameter; the user for basic; service and region for aws-sigv4."),
  format: z.string().nullable().describe("Text that is sent, which contains {value} once."),
  sealed: z.boolean().describe("True if code cannot read the setting."),
  tokenUrl: z.string().nullable().describe("URL at which tokens are requested, for oauth2."),
  clientId: z.string().nullable().describe("ID of the client, for oauth2."),
  scopes: z.array(z.string()).describe("Scopes of the token, for oauth2."),
  grant: z.enum(["client_credentials", "refresh_token"]).nullable().describe("Grant, for oauth2."),
} satisfies Record<keyof SecretBinding, z.ZodType>;

const secretBindingSchema = z
  .strictObject(secretBindingFields)
  .partial()
  .required({ key: true, origin: true, in: true });

const appSchema = z
  .strictObject({
    icon: z.string().nullable().describe("Icon of the app."),
    hooks: anyJsonSchema.describe("Hooks of the app's pages."),
    dependencies: anyJsonSchema.describe("Dependencies of the app's pages."),
    isTemplate: z.boolean().describe("True if the app is a template."),
  })
  .partial();

export const MANIFEST_SCHEMA = z
  .strictObject({
    $schema: z.string().describe("URL of this schema, for text editors."),
    version: z.literal(MANIFEST_VERSION).describe("Version of the format."),
    app: appSchema.describe("Properties of the app."),
    settings: z.array(settingSchema).max(SETTINGS_PER_MANIFEST_MAX).describe("Settings, each with a different key."),
    secretBindings: z
      .array(secretBindingSchema)
      .max(SECRET_BINDINGS_PER_APP_MAX)
      .describe("Secret bindings: settings that the service adds to requests to certain origins."),
    dataSources: z.array(dataSourceSchema).max(DATA_SOURCES_PER_APP).describe("Data sources without their entries."),
    actions: z.array(actionSchema).max(ACTIONS_PER_MANIFEST_MAX).describe("Drafts of the actions."),
    alerts: z.array(alertSchema).max(ALERT_RULES_PER_APP).describe("Alerts."),
  })
  .partial()
  .required({ version: true });

/** Parts of the manifest's schema, from which the GraphQL types of manifests are made. */
export const MANIFEST_PART_SCHEMAS = {
  app: appSchema,
  setting: settingSchema,
  secretBinding: secretBindingSchema,
  dataSource: dataSourceSchema,
  action: actionSchema,
  trigger: triggerSchema,
  triggerWhere: triggerWhereSchema,
  alert: alertSchema,
};

export type Manifest = z.infer<typeof MANIFEST_SCHEMA>;
export type ManifestField = Exclude<keyof Manifest, "$schema" | "version">;

export function createManifestJsonSchema(id: string): object {
  const { $schema, ...schema } = z.toJSONSchema(MANIFEST_SCHEMA, { target: "draft-2020-12" });
  return { $schema, $id: id, title: "Manifest of a Svc app", ...schema };
}

const getSchemaFields = (schema: z.ZodObject): readonly string[] => Object.keys(schema.shape);

/** Allowed fields of a setting in the manifest. */
export const SETTING_SHAPE: Shape = createFlatShape(getSchemaFields(settingSchema));
/** Allowed fields of an alert rule in the manifest. */
export const ALERT_FIELDS: readonly string[] = getSchemaFields(alertSchema);
/** Allowed fields of a data source in the manifest. */
export const DATA_SOURCE_FIELDS: readonly string[] = getSchemaFields(dataSourceSchema);
/** Allowed fields of the app in the manifest. */
export const APP_SHAPE: Shape = createFlatShape(getSchemaFields(appSchema));

/** Converts a path to text: `["actions", 3, "name"]` becomes `actions[3].name`. */
export function formatFieldPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    const name = String(part);
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[\w$]{1,60}$/.test(name)) text += text === "" ? name : `.${name}`;
    else text += `[${JSON.stringify(name.slice(0, 60)).toWellFormed()}]`;
  }
  return text;
}

/** True if a fault at this path prevents the check of the rest of the manifest. An unknown field never does. */
const isStructuralPath = (path: readonly PropertyKey[]): boolean =>
  path.length <= 2 || (path.length === 3 && path[2] === "key");

function createUnknownFieldMessage(path: readonly PropertyKey[], name: string): string {
  const knownSchema =
    path.length === 0 ? MANIFEST_SCHEMA : path[0] === "app" ? appSchema : path[0] === "settings" ? settingSchema : null;
  const nearestAdvice = knownSchema
    ? `; the nearest known field is ${JSON.stringify(findNearestName(name, getSchemaFields(knownSchema)))}`
    : "";
  return `is not a known field${nearestAdvice}`;
}

/** Returns the reason why the schema rejects a value, but never a text of the document, which may be a secret. */
function describeIssue(issue: z.core.$ZodIssue, document: unknown): string {
  const received = issue.path.reduce<unknown>(
    (value, name) => (value as Record<PropertyKey, unknown> | null | undefined)?.[name],
    document,
  );
  if (received === undefined) return "is required (got nothing)";
  if (issue.code === "invalid_type") return `must be ${addArticle(issue.expected)} (got ${describeType(received)})`;
  if (issue.code === "invalid_value") {
    const values = issue.values.map((value) => JSON.stringify(value));
    const receivedText = typeof received === "number" ? received : describeType(received);
    return `must be ${values.length > 1 ? "one of " : ""}${values.join(", ")} (got ${receivedText})`;
  }
  return `is not valid: ${issue.message.slice(0, 200).toWellFormed()}`;
}

const addArticle = (type: string): string => `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`;

/**
 * Validates a manifest with the schema. Returns up to REPORTED_FAULTS_MAX faults. They contain names of the document's fields, but no text
 * values, which may be secrets. `isReadable` is false if a fault prevents the check of the rest.
 */
export function findManifestSchemaFaults(document: unknown): { faults: ManifestPathFault[]; isReadable: boolean } {
  const { error } = MANIFEST_SCHEMA.safeParse(document);
  const issues = error?.issues ?? [];
  const faults = issues.flatMap((issue): ManifestPathFault[] => {
    const { path } = issue;
    const keys = issue.code === "unrecognized_keys" ? issue.keys : [];
    const faultPaths = keys.length > 0 ? keys.slice(0, REPORTED_FAULTS_MAX).map((key) => [...path, key]) : [path];
    return faultPaths.map((faultPath) => {
      const pathName = faultPath.length === 0 ? "the manifest" : formatFieldPath(faultPath);
      const reason =
        keys.length > 0 ? createUnknownFieldMessage(path, String(faultPath.at(-1))) : describeIssue(issue, document);
      return { path: formatFieldPath(faultPath), status: "REQUEST_INVALID", error: `${pathName} ${reason}` };
    });
  });
  return {
    faults: faults.slice(0, REPORTED_FAULTS_MAX),
    isReadable: !issues.some(({ code, path }) => code !== "unrecognized_keys" && isStructuralPath(path)),
  };
}

const filterObjects = (list: unknown) => (Array.isArray(list) ? list.filter(isObject) : []);

/**
 * GraphQL sends null for absent fields. Removes such a field from `document` if the schema rejects null there, if the field is in the
 * `where` of a trigger, or if it is the value of a private or protected setting. Leaves the value of a public setting, which may be null.
 */
export function removeNullFields(document: unknown): void {
  if (!isObject(document)) return;
  for (const { path } of MANIFEST_SCHEMA.safeParse(document).error?.issues ?? []) {
    const parent = path
      .slice(0, -1)
      .reduce<unknown>((value, name) => (value as Record<PropertyKey, unknown> | null | undefined)?.[name], document);
    const name = path.at(-1);
    if (isObject(parent) && typeof name === "string" && parent[name] === null) delete parent[name];
  }
  for (const setting of filterObjects(document["settings"]))
    if (setting["value"] === null && (setting["tier"] === "private" || setting["tier"] === "protected"))
      delete setting["value"];
  for (const { where } of filterObjects(document["actions"]).flatMap(({ triggers }) => filterObjects(triggers)))
    for (const [name, value] of Object.entries(isObject(where) ? where : {}))
      if (value === null) delete (where as Record<string, unknown>)[name];
}

/**
 * Adds the schema's faults to those of all other checks. Leaves out a schema fault if another check found a fault at the same path, inside
 * of it, or around it.
 */
export function mergeSchemaFaults(
  faults: readonly ManifestPathFault[],
  schemaFaults: readonly ManifestPathFault[],
): ManifestPathFault[] {
  const isWithin = (inner: string, outer: string) =>
    inner === outer || inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`);
  const furtherFaults = schemaFaults.filter(
    ({ path }) => !faults.some((fault) => isWithin(path, fault.path) || isWithin(fault.path, path)),
  );
  return [...faults, ...furtherFaults].slice(0, REPORTED_FAULTS_MAX);
}
