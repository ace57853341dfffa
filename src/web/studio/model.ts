/** What Studio shows of the service's resources, and the documents that ask for them. Knows no component. */

export interface App {
  id: number;
  name: string;
  isPublished: boolean;
}

export interface TriggerInput {
  trigger: string;
  where?: unknown;
}

/** An action without its code, as the list holds it. Times are ISO 8601. */
export interface ActionSummary {
  id: number;
  name: string;
  description: string | null;
  active: boolean;
  environment: string;
  triggers: { trigger: string; where?: Record<string, unknown> }[];
  frequency: string | null;
  lastRunAt: string | null;
  updatedAt: string;
}

export interface Action extends ActionSummary {
  code: string;
  timezone: string | null;
  dependencies: string[];
}

/** A production copy; `updatedAt` is when it was published last. */
export interface PublishedCopy {
  masterId: number;
  id: number;
  active: boolean;
  lastRunAt: string | null;
  updatedAt: string;
}

export interface ActionList {
  actions: ActionSummary[];
  published: PublishedCopy[];
  total: number;
}

export interface ScriptError {
  name: string;
  message: string;
  stack: string;
}

export interface LogEntry {
  id: number;
  type: string;
  createdAt: string;
  data: {
    mode: string;
    runOn: string;
    taskId: number;
    payload: unknown;
    duration: number;
    result?: { data?: unknown; success: boolean };
    error?: ScriptError;
  };
}

export interface ConsoleLine {
  seq: number;
  level: string;
  at: string;
  text: string;
}

export interface Version {
  id: number;
  createdAt: string;
  action: string;
  name: string;
  active: boolean;
  user: { firstName: string; lastName: string } | null;
}

export interface Diff {
  changes: { field: string; before: unknown; after: unknown }[];
  code: string | null;
}

const SUMMARY = "id name description active environment triggers frequency lastRunAt updatedAt";
const WHOLE = `${SUMMARY} code timezone dependencies`;
const ENTRY = "id type createdAt data";
const DIFF = "changes { field before after } code";

export const APPS = "{ apps { id name isPublished } }";

/** As many as one page may hold. */
export const LIST = `query ($appId: Int!) { actions(appId: $appId, limit: 1000) {
  actions { ${SUMMARY} } published { masterId id active lastRunAt updatedAt } pagination { total } } }`;

export const GET = `query ($appId: Int!, $id: Int!) { action(appId: $appId, id: $id) { ${WHOLE} } }`;
export const CREATE = `mutation ($appId: Int!, $data: JSON) { saved: createAction(appId: $appId, data: $data) { ${WHOLE} } }`;
export const UPDATE = `mutation ($appId: Int!, $id: Int!, $data: JSON) {
  saved: updateAction(appId: $appId, id: $id, data: $data) { ${WHOLE} } }`;
export const REMOVE = "mutation ($appId: Int!, $id: Int!) { removeAction(appId: $appId, id: $id) }";

export const RUN = `mutation ($appId: Int!, $id: ID!, $payload: JSON) {
  run: runAction(appId: $appId, nameOrId: $id, payload: $payload) { runId } }`;
export const RESULT = `mutation ($appId: Int!, $id: ID!, $payload: JSON) {
  run: runActionWithResult(appId: $appId, nameOrId: $id, payload: $payload) { result } }`;
export const CANCEL = "mutation ($appId: Int!, $runId: Int!) { cancelRun(appId: $appId, runId: $runId) }";
export const CONSOLE = `subscription ($appId: Int!, $runId: Int!) {
  line: runConsoleAdded(appId: $appId, runId: $runId) { seq level at text } }`;

export const TAIL = `subscription ($appId: Int!) { entry: actionLogAdded(appId: $appId) { ${ENTRY} } }`;
export const LOGS = `query ($appId: Int!, $options: JSON) {
  page: actionLogs(appId: $appId, options: $options) { count logs { ${ENTRY} } } }`;

export const PUBLISH = "mutation ($appId: Int!, $id: Int!) { publishAction(appId: $appId, id: $id) { action { id } } }";
export const UNPUBLISH = "mutation ($appId: Int!, $id: Int!) { unpublishAction(appId: $appId, id: $id) }";
export const PUBLISH_APP = "mutation ($appId: Int!) { publishApp(appId: $appId) { isPublished } }";
export const COPIES_DIFF = `query ($appId: Int!, $id: Int!) { diff: actionDiff(appId: $appId, actionId: $id) { ${DIFF} } }`;

export const VERSIONS = `query ($appId: Int!, $id: Int!, $offset: Int) { history: actionVersions(appId: $appId, actionId: $id, offset: $offset) {
  versions { id createdAt action name active user { firstName lastName } } pagination { hasMore } } }`;
export const VERSION_DIFF = `query ($appId: Int!, $id: Int!, $versionId: Int!) {
  diff: actionVersionDiff(appId: $appId, actionId: $id, versionId: $versionId) { ${DIFF} } }`;
export const RESTORE = `mutation ($appId: Int!, $id: Int!, $versionId: Int!) {
  restoreActionVersion(appId: $appId, actionId: $id, versionId: $versionId) { preRestoreVersionId } }`;

export const SETTINGS = `query ($appId: Int!) { settings(appId: $appId) settingsStatus(appId: $appId) { details } }`;
export const SET_SETTINGS =
  "mutation ($appId: Int!, $settings: JSON!) { setSettings(appId: $appId, settings: $settings) }";
export const DELETE_SETTINGS = "mutation ($appId: Int!, $keys: JSON!) { deleteSettings(appId: $appId, keys: $keys) }";
