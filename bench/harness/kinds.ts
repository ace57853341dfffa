/** Measured kinds of actions, one entry each. Add an entry to measure another kind. */

export interface Kind {
  name: string;
  /** The body of `execute`; `payload` is {@link PAYLOAD} with `url`, a local URL that responds at once. */
  body: string;
  dependencies?: readonly string[];
  /** Its result. */
  result: unknown;
  /** Number of its sequential requests. */
  fetches?: number;
  /** True if it sends requests to the host of the payload's `url`, which the action must list. */
  sends?: true;
  /** Body of a data source that is created before it runs. */
  dataSource?: { name: string; entries: object[] };
}

export const PAYLOAD = { a: 1, b: 2 };

const SEATS = { name: "Seats", entries: Array.from({ length: 100 }, (_, at) => ({ Seat: at, Row: at % 10 })) };

/** Eight samples of silence as a WAV file, which `svc-audio` decodes. */
const WAV = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

const FETCH = "await (await fetch(payload.url)).text()";

export const LANGUAGE: Kind = { name: "language", body: "return payload.a + payload.b;", result: 3 };

export const CSV: Kind = {
  name: "svc-csv",
  body: "return Svc.CSV.parse('a,b\\n1,2\\n3,4').length;",
  dependencies: ["svc-csv"],
  result: 2,
};

/** npm packages that are installed here (installed-packages.ts), from a small one to a large one. */
export const PACKAGES: readonly Kind[] = [
  // The library in svc-csv, as published.
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

export const KINDS: readonly Kind[] = [
  LANGUAGE,
  { name: "document", body: "document.title = 'sum'; return payload.a + payload.b;", result: 3 },
  CSV,
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
    dataSource: SEATS,
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
    body: `return (await Svc.Audio.decode("data:audio/wav;base64,${WAV}")).channels.length;`,
    dependencies: ["svc-audio"],
    result: 1,
  },
  { name: "fetch", body: `return (${FETCH}).length;`, result: 2, fetches: 1 },
  {
    name: "request",
    body: "return (await Svc.App.V3.Actions.request({ url: payload.url })).body.length;",
    result: 2,
    fetches: 1,
    sends: true,
  },
  {
    name: "five-fetches",
    body: `let sum = 0; for (let turn = 0; turn < 5; turn += 1) sum += (${FETCH}).length; return sum;`,
    result: 10,
    fetches: 5,
  },
  {
    name: "ten-finds",
    body: `const seats = await Svc.DataSources.connectByName("Seats"); let sum = 0;
      for (let turn = 0; turn < 10; turn += 1) sum += (await seats.find({ where: { "data.Row": turn } })).length; return sum;`,
    dependencies: ["svc-datasources"],
    result: 100,
    dataSource: SEATS,
  },
];

/** Body of the action of a kind. `host`: origin of the host to which it can send requests. */
export function actionOf({ name, body, dependencies = [], sends }: Kind, host?: string): object {
  const code = `async function execute({ payload }) { ${body} }`;
  const integrationOrigins = sends && host ? [new URL(host).origin] : [];
  const triggers = [{ trigger: "manual" }];
  return { name, code, dependencies, integrationOrigins, active: true, environment: "server", triggers };
}

export const runPath = (appId: number, { name }: Kind): string => `/v3/apps/${appId}/actions/${name}/runWithResult`;
