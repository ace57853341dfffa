/** Lists the kinds of actions that the benchmark measures. To measure another kind, add an entry here. */

export interface ActionKind {
  name: string;
  /** Body of the function `execute`. Its `payload` is {@link RUN_PAYLOAD} with a `url` of a local server that responds immediately. */
  body: string;
  dependencies?: readonly string[];
  /** Result that a run of this kind returns. */
  result: unknown;
  /** Number of requests that a run sends, one after the other. */
  requestCount?: number;
  /** True if the runs call `request()`. The action must then list the origin of the payload's `url` in `integrationOrigins`. */
  usesRequest?: true;
  /** Data source that must exist before the runs. */
  dataSource?: { name: string; entries: object[] };
}

export const RUN_PAYLOAD = { a: 1, b: 2 };

const SEATS_DATA_SOURCE = {
  name: "Seats",
  entries: Array.from({ length: 100 }, (_, at) => ({ Seat: at, Row: at % 10 })),
};

/** Eight samples of silence as a WAV file, which the action decodes by `svc-audio`. */
const SILENT_WAV_BASE64 = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

const FETCH_EXPRESSION = "await (await fetch(payload.url)).text()";

export const PLAIN_JAVASCRIPT_KIND: ActionKind = { name: "language", body: "return payload.a + payload.b;", result: 3 };

export const CSV_KIND: ActionKind = {
  name: "svc-csv",
  body: "return Svc.CSV.parse('a,b\\n1,2\\n3,4').length;",
  dependencies: ["svc-csv"],
  result: 2,
};

/** Kinds that use an npm package, from a small package to a large one. installed-packages.ts serves the packages. */
export const NPM_PACKAGE_KINDS: readonly ActionKind[] = [
  // The built-in package `svc-csv` contains this library. This kind uses the library itself, as npm publishes it.
  {
    name: "papaparse",
    body: "return Papa.parse('a,b\\n1,2\\n3,4').data.length;",
    dependencies: ["papaparse"],
    result: 3,
  },
  {
    name: "dayjs",
    body: "return dayjs('2026-02-28').add(1, 'day').format('YYYY-MM-DD');",
    dependencies: ["dayjs"],
    result: "2026-03-01",
  },
  { name: "lodash", body: "return _.chunk([1, 2, 3], 2).length;", dependencies: ["lodash"], result: 2 },
  {
    name: "zod",
    body: "return z.object({ a: z.number() }).safeParse({ a: 'x' }).success;",
    dependencies: ["zod"],
    result: false,
  },
];

export const ACTION_KINDS: readonly ActionKind[] = [
  PLAIN_JAVASCRIPT_KIND,
  { name: "document", body: "document.title = 'sum'; return payload.a + payload.b;", result: 3 },
  CSV_KIND,
  {
    name: "svc-session",
    body: "const session = await Svc.Session.get(); return typeof session;",
    dependencies: ["svc-session"],
    result: "object",
  },
  {
    name: "svc-encryption",
    body: "return (await Svc.Encryption.hash('text')).length;",
    dependencies: ["svc-encryption"],
    result: 64,
  },
  {
    name: "svc-datasources",
    body: `const seats = await Svc.DataSources.connectByName("Seats"); return (await seats.find({ where: { "data.Row": 3 } })).length;`,
    dependencies: ["svc-datasources"],
    result: 10,
    dataSource: SEATS_DATA_SOURCE,
  },
  {
    name: "svc-communicate",
    body: `const to = [{ email: "ann@example.com" }];
      return (await Svc.Communicate.sendEmail({ to, subject: "sum", text: "3" })).status;`,
    dependencies: ["svc-communicate"],
    result: "kept",
  },
  {
    name: "svc-notifications",
    body: `return (await Svc.Notifications.insert({ status: "draft", data: { title: "sum", message: "3" } })).status;`,
    dependencies: ["svc-notifications"],
    result: "draft",
  },
  {
    name: "svc-media",
    body: "return (await Svc.Media.Folders.get()).folders.length;",
    dependencies: ["svc-media"],
    result: 0,
  },
  {
    name: "svc-barcode",
    body: "return Svc.Barcode.qr('3').startsWith('<svg');",
    dependencies: ["svc-barcode"],
    result: true,
  },
  {
    name: "svc-audio",
    body: `return (await Svc.Audio.decode("data:audio/wav;base64,${SILENT_WAV_BASE64}")).channels.length;`,
    dependencies: ["svc-audio"],
    result: 1,
  },
  { name: "fetch", body: `return (${FETCH_EXPRESSION}).length;`, result: 2, requestCount: 1 },
  {
    name: "request",
    body: "return (await Svc.App.V3.Actions.request({ url: payload.url })).body.length;",
    result: 2,
    requestCount: 1,
    usesRequest: true,
  },
  {
    name: "five-fetches",
    body: `let sum = 0; for (let turn = 0; turn < 5; turn += 1) sum += (${FETCH_EXPRESSION}).length; return sum;`,
    result: 10,
    requestCount: 5,
  },
  {
    name: "ten-finds",
    body: `const seats = await Svc.DataSources.connectByName("Seats"); let sum = 0;
      for (let turn = 0; turn < 10; turn += 1) sum += (await seats.find({ where: { "data.Row": turn } })).length; return sum;`,
    dependencies: ["svc-datasources"],
    result: 100,
    dataSource: SEATS_DATA_SOURCE,
  },
];

/** Returns the body that creates the action of a kind. A kind that calls `request()` needs the `url` that its runs send requests to. */
export function createActionBody({ name, body, dependencies = [], usesRequest }: ActionKind, url?: string): object {
  if (usesRequest && !url) throw new Error(`createActionBody needs the URL of the requests that ${name} sends`);
  const code = `async function execute({ payload }) { ${body} }`;
  const integrationOrigins = usesRequest ? [new URL(url!).origin] : [];
  const triggers = [{ trigger: "manual" }];
  return { name, code, dependencies, integrationOrigins, active: true, environment: "server", triggers };
}

export const getRunWithResultPath = (appId: number, { name }: ActionKind): string =>
  `/v3/apps/${appId}/actions/${name}/runWithResult`;
