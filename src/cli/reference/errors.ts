/** Builds the reference page of errors: status, HTTP code, cause, advice, and whether a retry can succeed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { STATUS, type Status } from "../../errors.js";
import { parseMembers } from "./declarations.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

type RetryAdvice = "no" | "yes" | "after a new read";

const ADVICE_BY_STATUS: Record<Status, [advice: string, retry: RetryAdvice]> = {
  NAME_REQUIRED: ["Send `name`.", "no"],
  NAME_EMPTY: ["Send a `name` that is not empty.", "no"],
  NAME_TOO_LONG: ["Shorten the name.", "no"],
  NAME_INVALID_CHARS: ["Use only letters, digits, dashes and underscores in the name.", "no"],
  NAME_ALREADY_EXISTS: [
    "Choose another name, or change the existing action, data source, folder or stage that has this name.",
    "no",
  ],
  DESCRIPTION_INVALID: ["Send a string.", "no"],
  DESCRIPTION_TOO_LONG: ["Shorten the description.", "no"],
  CODE_REQUIRED: ["Send `code`.", "no"],
  CODE_EMPTY: ["Send a `code` that is not empty.", "no"],
  CODE_VALIDATION_FAILED: ["Correct the code of the action at the line that the error names.", "no"],
  ENVIRONMENT_INVALID: ["Send `server`, `client` or `any` as `environment`.", "no"],
  FREQUENCY_INVALID: ["Send a `frequency` of five cron fields, such as `0 9 * * 1-5`.", "no"],
  FREQUENCY_TOO_FREQUENT: ["Send a `frequency` that is not due every minute, such as `*/2 * * * *`.", "no"],
  TIMEZONE_INVALID: ["Send the IANA name of a time zone, such as `Europe/Berlin`.", "no"],
  TRIGGERS_INVALID: ["Send `triggers` as an array of [triggers](triggers.md).", "no"],
  TRIGGER_TYPE_INVALID: [
    "Use a kind of the [specification](api.md), which are `manual`, `schedule`, `log` and `analytics`, or the kind `http`.",
    "no",
  ],
  TRIGGER_NOT_ALLOWED: [
    "If you called the action, add a `manual` trigger to the action. If you saved the action, remove the trigger that the error names, or change the `environment` of the action.",
    "no",
  ],
  DEPENDENCIES_INVALID: ["Send a list of package names and https URLs as `dependencies`.", "no"],
  INTEGRATION_ORIGINS_INVALID: [
    "Send at most 20 origins, such as `https://api.example.com`, as `integrationOrigins`.",
    "no",
  ],
  DEPENDENCY_UNRESOLVED: [
    "Correct the name or the version of the dependency. If the HTTP code is 503, retry after the time in the header `Retry-After`. If the error names user namespaces, a retry does not help: [allow them](../operate/containers.md#the-image).",
    "no",
  ],
  ACCESS_INVALID: ["Send `everyone`, `signedIn`, `editors` or a [rule](actions.md#who-may-run-it) as `access`.", "no"],
  ACTION_NOT_V3: ["Create a new action: the service runs no V2 actions.", "no"],
  SETTINGS_INVALID: ["Correct the setting that the error names.", "no"],
  PAYLOAD_INVALID: ["Send a JSON object.", "no"],
  REQUEST_INVALID: [
    "Correct the field that the error names. If the HTTP code is 408, the request arrived too slowly: send it again.",
    "no",
  ],
  PASSPHRASE_TOO_WEAK: ["Choose a longer passphrase, or one that is not common: the error says which.", "no"],
  UNAUTHORIZED: ["Send a valid token, or sign in again. For app users: check the password or the code.", "no"],
  SIGN_IN_FAILED: ["Check the e-mail address and the passphrase, or the passkey.", "no"],
  SIGNATURE_INVALID: [
    "Sign the request with the secret that the receiver of the webhook checks: the setting of the HTTP trigger, or the secret of the git webhook.",
    "no",
  ],
  FORBIDDEN: ["Use a credential whose role or scopes permit the call.", "no"],
  CANNOT_UPDATE_PRODUCTION: ["Change the draft of the action, and publish the action.", "no"],
  CANNOT_DELETE_PRODUCTION: ["Unpublish the action by the ID of its draft.", "no"],
  CANNOT_RESTORE_PRODUCTION: ["Restore the draft of the action, and publish the action.", "no"],
  CROSS_SITE_REQUEST: ["Send the request from a page of the service, or with a token in a header.", "no"],
  DATA_SOURCE_ACCESS_DENIED: ["Change the access rules of the data source, or sign the user in to the page.", "no"],
  ACTION_ACCESS_DENIED: ["Change the field `access` of the action, or sign the user in to the page.", "no"],
  ACTION_NOT_FOUND: [
    "Check the ID or name of the action. Pages of the published app, and API tokens without `?copy=draft`, can only run published actions.",
    "no",
  ],
  VERSION_NOT_FOUND: [
    "List the versions, and use the ID of one of them. The service removes the oldest versions.",
    "no",
  ],
  APP_NOT_FOUND: ["Check the ID of the app, and whether your token belongs to this app.", "no"],
  FILE_NOT_FOUND: ["Check the ID of the file.", "no"],
  FOLDER_NOT_FOUND: ["Check the ID of the folder.", "no"],
  RUN_NOT_FOUND: ["Check the ID of the run: the service removes old runs.", "no"],
  DATA_SOURCE_NOT_FOUND: ["Check the ID or name of the data source.", "no"],
  ENTRY_NOT_FOUND: [
    "Check the ID of the entry, and whether the access rules of the data source let you read the entry.",
    "no",
  ],
  NOTIFICATION_NOT_FOUND: ["Check the ID of the notification.", "no"],
  NOT_FOUND: ["Check the URL.", "no"],
  METHOD_NOT_ALLOWED: ["Use the HTTP method that the list of [routes](rest-routes.md) gives for this path.", "no"],
  ACTION_INACTIVE: ["Set `active` of the action to true and publish the action.", "no"],
  CLIENT_ACTION_NOT_RUNNABLE: ["Run the action in a page, or set its `environment` to `any`.", "no"],
  APP_NOT_PUBLISHED: ["Publish the app.", "no"],
  TESTS_REQUIRED: [
    "Publish with `svc publish --tested`, restore a version that was live, or set `requiresTests` of the app to false.",
    "no",
  ],
  ACTION_NOT_PUBLISHED: ["Publish the action.", "no"],
  ACTION_CHANGED: [
    "Apply your change to the current `action`, which the error contains, and send the change again.",
    "after a new read",
  ],
  RUN_SKIPPED: [
    "Retry later: the action's `concurrency` limit was reached. To let further runs wait instead, set the `policy` of `concurrency` to `queue`.",
    "yes",
  ],
  RUN_NOT_CANCELLABLE: ["Do nothing: the run has already ended.", "no"],
  ENTRY_ALREADY_EXISTS: [
    "Change the values of the `columns` that the error names, or update the existing entry.",
    "no",
  ],
  MANIFEST_CHANGED: ["Read the manifest again, and make your change to the new manifest.", "after a new read"],
  GIT_PULL_FAILED: [
    "Correct the URL or the token of the connection, or the file that the error names. If the response has the header `Retry-After`, retry after that time.",
    "no",
  ],
  DATA_SOURCE_NOT_EMPTY: [
    "Remove the entries of the data source first, or [apply the manifest without `prune`](manifest.md#data-sources-with-entries).",
    "no",
  ],
  ENTRY_CHANGED: [
    "Apply your change to the current `entry`, which the error contains, and send the change again.",
    "after a new read",
  ],
  RESOURCE_CHANGED: [
    "Apply your change to the current `resource`, which the error contains, and send the change again.",
    "after a new read",
  ],
  LAST_OWNER: ["First make another person an owner of the organization.", "no"],
  LAST_ADMINISTRATOR: ["First add another administrator of the service.", "no"],
  EMAIL_IN_USE: ["Use another e-mail address.", "no"],
  MESSAGE_DECIDED: ["Do nothing: only a message with the status `unknown` needs a decision.", "no"],
  LINK_EXPIRED: ["Request a new link, or ask for one.", "no"],
  PAYLOAD_TOO_LARGE: ["Send a smaller request, or use an import or an upload of files.", "no"],
  RANGE_NOT_SATISFIABLE: ["Request a range of bytes within the size of the file.", "no"],
  RATE_LIMIT_EXCEEDED: [
    "Wait for the time in the header `Retry-After`. If the [limit](limits.md) has a variable, you can also raise it.",
    "yes",
  ],
  EXECUTION_FAILED: [
    "If the response has a `runId`, read the error and the console of this run. Otherwise, the error has the reason why no run started.",
    "no",
  ],
  PUBLISH_FAILED: ["Retry once. If the request fails again, read the log of the service.", "yes"],
  RESTORE_FAILED: ["Retry once. If the request fails again, read the log of the service.", "yes"],
  INTERNAL_ERROR: [
    "Retry with the same `Idempotency-Key`. If the request fails again, search the log of the service for its `X-Request-Id`.",
    "yes",
  ],
  OVERLOADED: [
    "Wait for the time in the header `Retry-After`, then retry with the same `Idempotency-Key`. If the error names user namespaces, a retry does not help: [allow them](../operate/containers.md#the-image).",
    "yes",
  ],
};

/** Codes with which the service, or the library graphql-ws that it uses, closes a websocket. */
const CLOSE_CODES = [
  ["1001", "The process stops.", "Connect again, to another process."],
  [
    "1013",
    "The service or its database is at its limit, or an event could not be sent.",
    "Connect again after a pause.",
  ],
  ["4400", "The client sent a message that the protocol does not define.", "Correct the client."],
  [
    "4401",
    "The client started an operation before the service had sent `connection_ack`.",
    "Wait for `connection_ack`.",
  ],
  [
    "4403",
    "The token is not valid or has ended, or the cookie comes from another origin.",
    "Sign in, or use a valid token.",
  ],
  ["4406", "The subprotocol is not `graphql-transport-ws`.", "Connect with the subprotocol `graphql-transport-ws`."],
  [
    "4408",
    "The client did not send `connection_init` within five seconds.",
    "Send `connection_init` when the socket opens.",
  ],
  [
    "4409",
    "The client started an operation with the ID of another operation that is still in progress.",
    "Give each operation a different ID.",
  ],
  ["4429", "The client sent `connection_init` twice.", "Send `connection_init` only once."],
  [
    "4500",
    "The service had an unexpected error.",
    "Connect again. If the code appears again, read the log of the service.",
  ],
];

/** @param root checkout folder, in which src/errors.ts declares the additional fields of errors */
export function buildErrorsPage(root: string): string {
  const fields = parseMembers([readFileSync(join(root, "src/errors.ts"), "utf8")], "ErrorDetails");
  const fieldRows = fields.map(({ name, comment }) => [formatInlineCode(name), comment]);
  const rows = (Object.keys(STATUS) as Status[]).map((status) => {
    const [advice, retry] = ADVICE_BY_STATUS[status];
    return [formatInlineCode(status), String(STATUS[status].http), STATUS[status].message, advice, retry];
  });
  const lead =
    "For everyone who calls the service. Every error has a status, such as `FORBIDDEN`, and a text. REST returns both in the body `{status, error}`, GraphQL in `extensions.status` and `message`. In code, compare only the status, because the text is for people and can change. The column *cause* of the table has the default text of each status, but the service often sends a more specific text.";
  const clientErrorsText =
    "**`NETWORK_ERROR`.** If no complete response to a call arrives, or the browser blocks the response, the client library rejects the call with this status. The service may still have completed the request. The calls `run` and `runWithResult` of the client library send no `Idempotency-Key`. So repeat these calls only if a second run does no harm, or let the action [run once](../guides/run-once.md). Over REST, [repeat the request](../guides/repeat-a-request.md) with the same key.";
  return buildReferencePage("Errors", lead, "`src/errors.ts`", [
    formatMarkdownTable(["status", "HTTP", "cause", "what to do", "retry"], rows),
    clientErrorsText,
    "## Further fields",
    "Some errors have further fields, in the body of REST and in `extensions` of GraphQL:",
    formatMarkdownTable(["field", "meaning"], fieldRows),
    "## Codes of `request()`",
    "If a `request()` from an action to another service fails, the error has a `code` instead of a status. The page [requests](requests.md#errors) lists these codes.",
    "## Close codes of websockets",
    formatMarkdownTable(["code", "cause", "what to do"], CLOSE_CODES),
  ]);
}
