/** Texts of BENCHMARKS.md: introductions to the figures for readers who do not know the service. They contain no measured values. */

export const PAGE_INTRODUCTION = `# Benchmarks

Each figure stands beside its floor: the bare mechanism under it, measured in the same run on the same machine. So the ratio tells what the
service adds, and holds on another machine, where the times do not. Below a figure is what \`npm run bench\` prints of it, and where
it was measured at several sizes a drawing of how it grows.

<!-- not run: measuring takes an hour of a quiet machine; test/bench/report.test.ts makes this page anew of the gathered figures -->
\`\`\`sh
# one figure, quickly
npm run bench fetch -- --rounds 1
# the first figure that bench/results.json lacks, in three rounds. Repeat it until all figures are there
npm run bench -- --next
# this page and its drawings, from that file
npm run bench -- --report
\`\`\`
`;

const RUN_DESCRIPTION = `A caller posts \`runWithResult\` and has the result: HTTP, the judging of caller and action, the run's row in the database, the code in its
own sandboxed realm, the search for secrets in what came out, the log entry. The floor is Chromium alone, with the very same switches:
a page that is sent to a fresh document for each evaluation, and for the single call an evaluation in a page that is kept.`;

/** Introduction of each figure by its name. A figure without an entry has only its title. */
export const FIGURE_INTRODUCTIONS: Record<string, string> = {
  language: `${RUN_DESCRIPTION} This code uses the language alone, so it runs in a realm of its own.`,
  document: "The same for code that names the document: each run has a fresh one.",
  "svc-csv": "The same with a package that needs no network.",
  "svc-session": "The same with the session of whoever called.",
  "svc-encryption": "The same with WebCrypto.",
  "svc-datasources":
    "One read of a data source: two requests of the run to this service, of which one connects and one finds.",
  "svc-communicate": "A mail for the outbox, which keeps it.",
  "svc-notifications": "A draft of a notification.",
  "svc-media": "A listing of the app's folders and files.",
  "svc-barcode": "A QR code as SVG, most of whose time is the library's own.",
  "svc-audio": "Eight samples of sound, decoded, which takes a document.",
  "npm-packages":
    "The same with packages of npm, which each run evaluates anew, so that a large one takes longer; `papaparse` is what `svc-csv` is made of. The floor is the same run with `svc-csv`.",
  fetch:
    "The same for code that fetches once, from a server on this machine. The floor of the single call is the same run without it and a bare fetch.",
  request:
    "The same by `Svc.App.V3.Actions.request()`, which the service sends. The floor of the single call is the same run without it and a bare fetch of Node.",
  "request-time":
    "One `request()` after the other within a run, timed by the code itself. The floor is undici, which sends the same to the same server.",
  "http-trigger":
    "A request to an HTTP trigger with an API token. The floor is `runWithResult` of the same live action with the same token.",
  "five-fetches": "Five fetches, one after the other.",
  "ten-finds": "Ten reads of a data source, each a request of the run to this service.",
  "many-apps":
    "Forty apps by turns: each has its own browser context, which stays warm. The floor makes a context for each run.",
  cores: "The service on one core and on two; who calls has both.",
  runners: "One process with the API, and one or two that perform runs, on the same two cores.",
  "log-events":
    "An event that a back end posts is stored, and starts the actions whose trigger matches, in one transaction. The floor is a bare Fastify with one insert by pg.",
  "log-pages":
    "What an editor waits for a page of 50 entries of the execution log, the first and one in the middle. The floor is the query of those rows alone, without HTTP and without the credential's check.",
  "run-start":
    "How long a run that an event starts waits in the queue of an idle service. The floor is a notice from one session of the database to another.",
  "settings-get":
    "A read of an app's settings by fifty callers, with and without sealed values. The floor reads the same rows in a bare Fastify handler; callers who ask at once share a statement of the service, and have one each of the floor.",
  "log-fanout":
    "One app's log followed over a thousand websockets. The floor is graphql-ws with the same events and no service around it.",
  capacity:
    "The costs of a run in processor time, statements, WAL and rows have a page of their own: [capacity](docs/operate/capacity.md).",
  "memory-hog":
    "What others feel of an action that fills its memory again and again: the same calls in quiet are the floor.",
};

export const MANUAL_MEASUREMENTS = `## Measured by hand

The floors use the same Chromium with the same switches, of which one (no new frame host for each navigation) saves a third of a navigation:
with Chromium's own defaults that loop makes two thirds as many (93 to 100 a second beside 142 to 155, on 2 cores of the fastest machine
that these figures were made on; a slow one makes 50). Ratios are to be compared, times only within one day. What a run in a worker
costs in processor time on that fast machine: Chromium 9 ms, nearly all of it the start of the worker's thread, in a document 13; Node about 2
and PostgreSQL about 1.5 with eight callers, so that runs in workers cannot pass 138 a second there, and runs in realms do. Directus, whose
code runs in an isolate without a browser, was measured at 1.5 of the loop beside it by eight callers, where code of the language makes
more than 3, and at 13.8 ms a call.
`;
