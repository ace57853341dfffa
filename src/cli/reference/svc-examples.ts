/** Examples and errors of the calls of `Svc`, by namespace. test/docs runs each example as an action. */
import type { Status } from "../../errors.js";

export interface NamespaceExample {
  /** Path at which code finds it. */
  path: string;
  /** Interface of its declarations. */
  type: string;
  /** Package that the action lists; null if it needs none. */
  package: string | null;
  about: string;
  /** Statuses in addition to those that every call can have. */
  errors: readonly Status[];
  /** Errors without a status, in words. */
  otherErrors?: string;
  /** Body of `execute`, with its return value; null if a page shows the example. */
  example: { code: string; result: unknown } | null;
  /** Page with tasks. */
  seeAlso: string;
}

const localNote = "The calls use no network. They throw an `Error` with a message if an argument is not valid.";

export const NAMESPACES: readonly NamespaceExample[] = [
  {
    ...{
      path: "Svc",
      type: "Client",
      package: null,
      seeAlso: "[pages](pages.md), [your own site](../guides/own-pages.md)",
    },
    about:
      "The client library itself. A page of your own calls `init` or `configure` first. In actions, and in pages of the service, this has already happened.",
    errors: ["FORBIDDEN"],
    example: null,
  },
  {
    ...{
      path: "Svc.App.V3.Actions",
      type: "Actions",
      package: null,
      seeAlso: "[actions](actions.md), [requests](requests.md)",
    },
    about:
      "Runs and manages actions. `request` sends requests to other services, `response` sets the response of an HTTP trigger.",
    errors: [
      "ACTION_NOT_FOUND",
      "ACTION_INACTIVE",
      "ACTION_ACCESS_DENIED",
      "PAYLOAD_INVALID",
      "RUN_SKIPPED",
      "EXECUTION_FAILED",
    ],
    otherErrors:
      "`request` rejects with a `code`: `POLICY` (origin not listed), `LIMIT`, `TIMEOUT`, `TRANSPORT`, `UNSUPPORTED`, `INTEGRATION_UNAVAILABLE`.",
    example: {
      code: "const made = Svc.App.V3.Actions.response({ status: 201, body: { ok: true } });\nreturn typeof made;",
      result: "object",
    },
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
    about: "Records events of a page. An event starts the client actions whose trigger matches.",
    errors: [],
    example: null,
  },
  {
    ...{ path: "Svc.App.Triggers", type: "Triggers", package: null, seeAlso: "[triggers](triggers.md)" },
    about: "Decides whether a page receives and runs the app's client actions.",
    errors: [],
    example: null,
  },
  {
    ...{
      path: "Svc.Session",
      type: "Session",
      package: "svc-session",
      seeAlso: "[users of an app](data-sources.md#users-of-an-app)",
    },
    about:
      "Returns the caller of the action, and signs app users in. In the session that `get` returns, `user` is the signed-in person, and `entries.dataSource` is the signed-in app user of the page. `environment` is `master` for the draft and `production` for the live version. If a schedule, a log event or an API token started the run, `user` is null and there are no `entries`.",
    errors: ["DATA_SOURCE_ACCESS_DENIED"],
    example: { code: "const { appId } = await Svc.Session.get();\nreturn typeof appId;", result: "number" },
  },
  {
    ...{
      path: "Svc.DataSources",
      type: "DataSources",
      package: "svc-datasources",
      seeAlso: "[data sources](data-sources.md)",
    },
    about: "Data sources of the app. `connect` returns a connection to one of them; its calls are in the next section.",
    errors: ["DATA_SOURCE_NOT_FOUND", "DATA_SOURCE_ACCESS_DENIED", "NAME_ALREADY_EXISTS"],
    example: {
      code: 'await Svc.DataSources.create({ name: "reference", columns: ["n"], entries: [{ n: 2 }, { n: 1 }] });\nconst table = await Svc.DataSources.connectByName("reference");\nconst rows = await table.find({ where: { n: { $gt: 1 } } });\nreturn rows.map(({ data }) => data.n);',
      result: [2],
    },
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
    errors: ["ENTRY_NOT_FOUND", "ENTRY_ALREADY_EXISTS", "ENTRY_CHANGED", "DATA_SOURCE_ACCESS_DENIED"],
    example: null,
  },
  {
    ...{ path: "Svc.Media.Files", type: "MediaFiles", package: "svc-media", seeAlso: "[media](media.md)" },
    about: "Stores and reads files of the app.",
    errors: ["FILE_NOT_FOUND", "FOLDER_NOT_FOUND", "PAYLOAD_TOO_LARGE"],
    example: {
      code: 'const [file] = await Svc.Media.Files.upload({ file: new File(["a,b"], "data.csv"), name: "data.csv" });\nreturn file.name;',
      result: "data.csv",
    },
  },
  {
    ...{ path: "Svc.Media.Folders", type: "MediaFolders", package: "svc-media", seeAlso: "[media](media.md)" },
    about: "Creates, lists and changes folders for the app's files.",
    errors: ["FOLDER_NOT_FOUND", "NAME_ALREADY_EXISTS"],
    example: {
      code: 'const folder = await Svc.Media.Folders.create({ name: "reports" });\nreturn folder.name;',
      result: "reports",
    },
  },
  {
    ...{ path: "Svc.Communicate", type: "Communicate", package: "svc-communicate", seeAlso: "[messages](messages.md)" },
    about: "Sends e-mails and text messages.",
    errors: ["SETTINGS_INVALID"],
    example: {
      code: 'const { status } = await Svc.Communicate.sendEmail({\n  to: [{ email: "ann@example.com" }],\n  subject: "Report",\n  text: "See the attachment.",\n  attachments: [{ name: "report.csv", content: "a,b", encoding: "utf8" }],\n});\nreturn status;',
      result: "kept",
    },
  },
  {
    ...{
      path: "Svc.Notifications",
      type: "Notifications",
      package: "svc-notifications",
      seeAlso: "[notifications](messages.md#notifications)",
    },
    about: "Sends notifications to the app's users, in pages and on devices.",
    errors: ["NOTIFICATION_NOT_FOUND"],
    example: {
      code: 'const { status } = await Svc.Notifications.insert({ status: "published", data: { title: "Hello" } });\nreturn status;',
      result: "published",
    },
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
      "If the provider's request fails, the error has a `code`, like an error of `Svc.App.V3.Actions.request`.",
    example: null,
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
    otherErrors: localNote,
    example: {
      code: 'const rows = Svc.CSV.parse("name,seats\\nAnn,2\\n", { dynamicTyping: true });\nreturn { rows, text: Svc.CSV.stringify(rows) };',
      result: { rows: [{ name: "Ann", seats: 2 }], text: "name,seats\r\nAnn,2" },
    },
  },
  {
    ...{ path: "Svc.Encryption", type: "Encryption", package: "svc-encryption", seeAlso: "[packages](packages.md)" },
    about: "Computes hashes and signatures, and encrypts texts.",
    errors: [],
    otherErrors: localNote,
    example: {
      code: 'const key = await Svc.Encryption.generateKey();\nconst secret = await Svc.Encryption.encrypt("hello", key);\nreturn { text: await Svc.Encryption.decrypt(secret, key), hash: await Svc.Encryption.hash("a") };',
      result: { text: "hello", hash: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" },
    },
  },
  {
    ...{ path: "Svc.Barcode", type: "Barcode", package: "svc-barcode", seeAlso: "[packages](packages.md)" },
    about: "Creates bar codes and QR codes as pictures.",
    errors: [],
    otherErrors: localNote,
    example: {
      code: 'const svg = Svc.Barcode.qr("https://example.com");\nconst png = Svc.Barcode.png({ bcid: "code128", text: "ABC-1" });\nreturn [svg.slice(0, 4), png.slice(0, 14)];',
      result: ["<svg", "data:image/png"],
    },
  },
  {
    ...{ path: "Svc.Audio", type: "Audio", package: "svc-audio", seeAlso: "[packages](packages.md)" },
    about: "Plays and decodes sounds.",
    errors: [],
    otherErrors: localNote,
    example: { code: "await Svc.Audio.tone({ seconds: 0.01 });\nreturn true;", result: true },
  },
];
