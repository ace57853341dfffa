/**
 * Examples and errors of the calls of `Svc`, by namespace, for the reference page. test/docs/commands.test.ts runs each example for
 * actions.
 */
import type { Status } from "../../errors.js";
import {
  ACTIONS_EXAMPLE,
  AI_EXAMPLE,
  AUDIO_EXAMPLE,
  COMMUNICATE_EXAMPLE,
  COMMUNICATE_PAGE_EXAMPLE,
  DATA_SOURCE_CONNECTION_EXAMPLE,
  DATA_SOURCE_CONNECTION_RESULT,
  DATA_SOURCES_EXAMPLE,
  ENCRYPTION_EXAMPLE,
  GREET_ACTION_CODE,
  MEDIA_FILES_EXAMPLE,
  MEDIA_FOLDERS_EXAMPLE,
  NOTIFICATIONS_EXAMPLE,
  NOTIFICATIONS_PAGE_EXAMPLE,
  RUN_AND_REQUEST_EXAMPLE,
  SESSION_PAGE_EXAMPLE,
} from "./svc-example-code.js";

export interface NamespaceExample {
  path: string;
  type: string;
  /** npm package that an action must list to use the namespace; null if none is needed. */
  package: string | null;
  about: string;
  /** Error statuses of the namespace's calls, in addition to the statuses that every call of `Svc` can have. */
  errors: readonly Status[];
  otherErrors?: string;
  /** Example in a server action; null if there is none. `code` is the body of `execute`. `calls` is another action that this code runs. */
  example: { code: string; result: unknown; resultNote?: string; calls?: { name: string; code: string } } | null;
  /** Example in a page, which test/web/own-pages.test.ts runs. `code` is the body of an async function that can use the client library. */
  pageExample?: { code: string; result: unknown };
  seeAlso: string;
}

const describeLocalErrors = (path: string) =>
  `The functions of \`${path}\` use no network. If an argument is not valid, they throw an \`Error\` with a message.`;

export const SVC_NAMESPACES: readonly NamespaceExample[] = [
  {
    ...{
      path: "Svc",
      type: "Client",
      package: null,
      seeAlso: "[pages](pages.md), [your own site](../guides/own-pages.md)",
    },
    about:
      "`Svc` is the client library. A page of your own must first call `Svc.init` or `Svc.configure`. Actions, and pages that the service serves, do not need this call.",
    errors: ["FORBIDDEN", "APP_NOT_PUBLISHED"],
    example: null,
    pageExample: {
      code: 'Svc.configure({ apiUrl: "http://127.0.0.1:4000" });\nawait Svc.init({ app: 1 });\nconst { environment, user } = await Svc.session();\nreturn { environment, user };',
      result: { environment: "production", user: null },
    },
  },
  {
    ...{
      path: "Svc.App.V3.Actions",
      type: "Actions",
      package: null,
      seeAlso: "[actions](actions.md), [requests](requests.md)",
    },
    about:
      "Runs and manages actions. `request` sends requests to other services, `response` sets the response of an HTTP trigger. Server actions and visitors' pages can run actions, but cannot read or change actions: the functions that do this need the token of an editor.",
    errors: [
      "ACTION_NOT_FOUND",
      "ACTION_INACTIVE",
      "ACTION_ACCESS_DENIED",
      "TRIGGER_NOT_ALLOWED",
      "PAYLOAD_INVALID",
      "RUN_SKIPPED",
      "EXECUTION_FAILED",
    ],
    otherErrors:
      "An error of `Svc.App.V3.Actions.request` has no `status`, but a `code`: `POLICY` (not allowed, for example an origin that is not in `integrationOrigins`), `LIMIT`, `TIMEOUT`, `TRANSPORT`, `UNSUPPORTED` or `INTEGRATION_UNAVAILABLE`.",
    example: {
      code: RUN_AND_REQUEST_EXAMPLE,
      result: ["Hello Ann", "object", 201, { seats: 2 }],
      resultNote:
        'The host `api.example.com` of the example for `Svc.App.V3.Actions.request` does not exist: write the address of your API instead. The result of the example comes from an API that answers with the status 201 and the body of the request. For `request`, the action also needs `"integrationOrigins": ["https://api.example.com"]`.',
      calls: { name: "greet", code: GREET_ACTION_CODE },
    },
    pageExample: { code: ACTIONS_EXAMPLE, result: ["Hello Ann", "Greets", 1, 1] },
  },
  {
    ...{ path: "Svc.App.Settings", type: "SettingsReader", package: null, seeAlso: "[settings](settings.md)" },
    about: "Reads a setting in a server action.",
    errors: [],
    example: { code: 'return Svc.App.Settings.get("missing") === undefined;', result: true },
  },
  {
    ...{
      path: "Svc.App.Analytics",
      type: "Analytics",
      package: null,
      seeAlso: "[triggers](triggers.md#by-an-analytics-event)",
    },
    about:
      "Records analytics events of a page. An event starts the client actions that have a matching `analytics` trigger.",
    errors: [],
    example: null,
    pageExample: {
      code: 'const order = Svc.App.Analytics.event("order", { total: 5 });\nconst view = Svc.App.Analytics.pageView({ _pageId: "basket" });\nreturn [order.type, order.data.name, view.data._pageId];',
      result: ["analytics.event", "order", "basket"],
    },
  },
  {
    ...{ path: "Svc.App.Triggers", type: "Triggers", package: null, seeAlso: "[triggers](triggers.md)" },
    about:
      "`start` loads the app's client actions into the current page, so that events of the page start them. `stop` removes these actions from the page.",
    errors: [],
    example: null,
    pageExample: {
      code: "Svc.App.Triggers.start();\nSvc.App.Triggers.stop();\nreturn true;",
      result: true,
    },
  },
  {
    ...{
      path: "Svc.Session",
      type: "Session",
      package: "svc-session",
      seeAlso: "[users of an app](data-sources.md#users-of-an-app)",
    },
    about:
      "Returns the session of the caller, and signs app users in. In the session, `user` is the person with an account of the service who is signed in. `entries.dataSource` is the entry of the app user who is signed in to the page. The field `environment` is `master` if the draft runs, and `production` if the live version runs. If a schedule, a log event, an HTTP trigger or an API token started the run, `user` is null and `entries` is missing. The example shows the result of a run that a signed-in person started.",
    errors: ["DATA_SOURCE_ACCESS_DENIED"],
    example: {
      code: "const session = await Svc.Session.get();\nconst user = await Svc.Session.user();\nreturn [typeof session.appId, typeof user.email];",
      result: ["number", "string"],
    },
    pageExample: { code: SESSION_PAGE_EXAMPLE, result: ["ada@example.org", null, ["email"]] },
  },
  {
    ...{
      path: "Svc.DataSources",
      type: "DataSources",
      package: "svc-datasources",
      seeAlso: "[data sources](data-sources.md)",
    },
    about:
      "Lists, creates and changes the app's data sources. `connect` returns a connection to one data source. The section [connection](#connection) lists the functions of a connection.",
    errors: ["DATA_SOURCE_NOT_FOUND", "DATA_SOURCE_ACCESS_DENIED", "NAME_ALREADY_EXISTS"],
    example: { code: DATA_SOURCES_EXAMPLE, result: { count: 2, names: ["seats", "places"], isListed: true } },
  },
  {
    ...{
      path: "connection",
      type: "DataSourceConnection",
      package: "svc-datasources",
      seeAlso: "[queries](data-source-queries.md)",
    },
    about:
      "Reads and writes the entries of one data source. Get a connection with `const connection = await Svc.DataSources.connect(idOrName)`.",
    errors: [
      ...(["DATA_SOURCE_NOT_FOUND", "ENTRY_NOT_FOUND", "ENTRY_ALREADY_EXISTS", "ENTRY_CHANGED"] as const),
      "DATA_SOURCE_ACCESS_DENIED",
    ],
    example: { code: DATA_SOURCE_CONNECTION_EXAMPLE, result: DATA_SOURCE_CONNECTION_RESULT },
  },
  {
    ...{ path: "Svc.Media.Files", type: "MediaFiles", package: "svc-media", seeAlso: "[media](media.md)" },
    about: "Stores and reads files of the app.",
    errors: ["FILE_NOT_FOUND", "FOLDER_NOT_FOUND", "PAYLOAD_TOO_LARGE"],
    example: { code: MEDIA_FILES_EXAMPLE, result: ["seats.csv", "text/plain", "a,b", true] },
  },
  {
    ...{ path: "Svc.Media.Folders", type: "MediaFolders", package: "svc-media", seeAlso: "[media](media.md)" },
    about: "Creates, lists and changes folders for the app's files.",
    errors: ["FOLDER_NOT_FOUND", "NAME_ALREADY_EXISTS"],
    example: { code: MEDIA_FOLDERS_EXAMPLE, result: ["letters", 0, 1] },
  },
  {
    ...{ path: "Svc.Communicate", type: "Communicate", package: "svc-communicate", seeAlso: "[messages](messages.md)" },
    about: "Sends e-mails and text messages.",
    errors: ["SETTINGS_INVALID"],
    otherErrors:
      "`composeEmail` and `shareURL` work only in a page. Elsewhere, for example in a server action, they reject with an `Error` without `status`.",
    example: { code: COMMUNICATE_EXAMPLE, result: ["kept", "kept", "kept", "kept", "published"] },
    pageExample: { code: COMMUNICATE_PAGE_EXAMPLE, result: "copied" },
  },
  {
    ...{
      path: "Svc.Notifications",
      type: "Notifications",
      package: "svc-notifications",
      seeAlso: "[notifications](messages.md#notifications)",
    },
    about:
      "Creates notifications for the app's users, in pages and on devices. In a page, also lists and receives the notifications of its user.",
    errors: ["NOTIFICATION_NOT_FOUND"],
    example: { code: NOTIFICATIONS_EXAMPLE, result: ["published", { title: "Hello", message: "Ann" }, 2] },
    pageExample: { code: NOTIFICATIONS_PAGE_EXAMPLE, result: [0, "number", true] },
  },
  {
    ...{
      path: "Svc.AI",
      type: "AI",
      package: "svc-ai",
      seeAlso: "[ask a language model](../guides/ask-a-language-model.md)",
    },
    about: "Calls language models, in server actions.",
    errors: ["SETTINGS_INVALID"],
    otherErrors:
      "If the request to the provider of the model fails, the error has a `code`, like an error of `Svc.App.V3.Actions.request`.",
    example: {
      code: AI_EXAMPLE,
      result: ["Hello there", 2, "image/png", "two seats"],
      resultNote:
        'The result of the example for `Svc.AI` comes from a provider for tests, which always answers "Hello there" and transcribes each sound file as "two seats". The texts of a real language model differ.',
    },
  },
  {
    ...{
      path: "Svc.CSV",
      type: "CSV",
      package: "svc-csv",
      seeAlso: "[packages](packages.md)",
    },
    about: "Reads and writes CSV.",
    errors: [],
    otherErrors:
      "The functions of `Svc.CSV` use no network. They throw an `Error` if the first argument has the wrong type. `parse` also throws if the text is not valid CSV. The options are not checked.",
    example: {
      code: 'const rows = Svc.CSV.parse("name,seats\\nAnn,2\\n", { dynamicTyping: true });\nreturn { rows, text: Svc.CSV.stringify(rows) };',
      result: { rows: [{ name: "Ann", seats: 2 }], text: "name,seats\r\nAnn,2" },
    },
  },
  {
    ...{ path: "Svc.Encryption", type: "Encryption", package: "svc-encryption", seeAlso: "[packages](packages.md)" },
    about:
      "Computes hashes and signatures, and encrypts texts. Make an encryption key once, and store it in a protected setting, such as `__dataKey`. If you lose the key, or the salt from which `deriveKey` made the key, you can no longer decrypt the texts. In a page without HTTPS, only `generateKey`, `randomUUID` and `randomBytes` work.",
    errors: [],
    otherErrors: describeLocalErrors("Svc.Encryption"),
    example: {
      code: ENCRYPTION_EXAMPLE,
      result: {
        texts: ["hello", "hello"],
        hash: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
        isValid: true,
        lengths: [36, 12],
      },
    },
  },
  {
    ...{ path: "Svc.Barcode", type: "Barcode", package: "svc-barcode", seeAlso: "[packages](packages.md)" },
    about: "Creates bar codes and QR codes as pictures.",
    errors: [],
    otherErrors: describeLocalErrors("Svc.Barcode"),
    example: {
      code: 'const qr = Svc.Barcode.qr("https://example.com");\nconst svg = Svc.Barcode.svg({ bcid: "ean13", text: "9780201379624" });\nconst png = Svc.Barcode.png({ bcid: "code128", text: "ABC-1" });\nreturn [qr.slice(0, 4), svg.slice(0, 4), png.slice(0, 14)];',
      result: ["<svg", "<svg", "data:image/png"],
    },
  },
  {
    ...{ path: "Svc.Audio", type: "Audio", package: "svc-audio", seeAlso: "[packages](packages.md)" },
    about: "Plays and decodes sounds.",
    errors: [],
    otherErrors:
      "If an argument is not valid, or a sound cannot be loaded from its URL, the functions of `Svc.Audio` throw an `Error` with a message.",
    example: { code: AUDIO_EXAMPLE, result: [0.001, 1, 48] },
  },
];
