/** Texts of BENCHMARKS.md: introductions to the figures for readers who do not know the service. They contain no measured values. */

export const PAGE_INTRODUCTION = `# Benchmarks

For everyone who wants to know how fast the service is. Each figure stands beside its *baseline*: the mechanism under it without the service,
such as Chromium or PostgreSQL alone. A benchmark measures both on the same machine. Their ratio shows the cost of the service. Times differ
from machine to machine; ratios differ much less. If a figure was measured at several sizes, a drawing shows how it grows.

<!-- not run: measuring takes an hour of a quiet machine; test/bench/report.test.ts generates this page from the stored figures -->
\`\`\`sh
# one figure, quickly
npm run bench fetch -- --rounds 1
# the first figure that bench/results.json lacks, in three rounds. Repeat it until all figures are there
npm run bench -- --next
# this page and its drawings, from bench/results.json
npm run bench -- --report
\`\`\`
`;

/** Introduction of each figure by its name. A figure without an entry has only its title. */
export const FIGURE_INTRODUCTIONS: Record<string, string> = {
  language: `A caller sends \`runWithResult\` and waits for the result. This includes HTTP, the check of caller and action, the row of the run in the
database, the code in its own sandbox, the search for secrets in the result, and the log entry. The code adds two numbers, so it runs in an
isolate. The baseline is Chromium alone, with the same command-line options. For many callers, it opens a new document for each evaluation.
For a single call, it evaluates the code in a page that stays open.

Rows with "compared with" have another baseline. Chromium with the default options of Puppeteer is what a program gets that starts the browser
itself: the options of this service make a navigation faster. The server with \`isolated-vm\` evaluates the code in V8 without a browser, so the
code has no \`fetch\` and no document. With a new context, all apps share the memory of one isolate, so one app can fill it. With a new isolate,
each run has its own memory, but all runs share the server's process.`,
  document: "Like [language](#language), for code that names `document`: each run gets a new document.",
  "svc-csv": "Like [language](#language), for code that uses `svc-csv`, a package that needs no network.",
  "svc-session": "Like [language](#language), for code that reads the session of the caller by `svc-session`.",
  "svc-encryption":
    "Like [language](#language), for code that computes a hash by `svc-encryption`, which uses WebCrypto.",
  "svc-datasources":
    "Like [language](#language), for code that reads a data source once. The run sends two requests to this service: one finds the data source by its name, the other reads its entries.",
  "svc-communicate":
    "Like [language](#language), for code that sends an e-mail, which the service stores in the outbox.",
  "svc-notifications": "Like [language](#language), for code that creates a draft of a notification.",
  "svc-media": "Like [language](#language), for code that lists the app's folders and files.",
  "svc-barcode":
    "Like [language](#language), for code that draws a QR code as SVG. The library itself needs most of the time.",
  "svc-audio": "Like [language](#language), for code that decodes a sound of eight samples, which needs a document.",
  "npm-packages":
    "Like [language](#language), for code that uses an npm package. Each run evaluates the package again, so a large package takes longer. The baseline is the same run with `svc-csv`, a built-in package that contains `papaparse`.",
  fetch:
    "Like [language](#language), for code that sends one `fetch` to a server on the same machine. For a single call, the baseline is a run without `fetch`, plus a `fetch` without the service.",
  request:
    "Like [language](#language), for code that sends one request by `Svc.App.V3.Actions.request()`, through the service. For a single call, the baseline is a run without `request()`, plus a `fetch` of Node.",
  "request-time":
    "A run calls `request()` several times, one after the other, and measures the time of each call itself. The baseline is undici, which sends the same request to the same server.",
  "http-trigger":
    "A request to an HTTP trigger with an API token. The baseline is `runWithResult` of the same live action with the same token.",
  "five-fetches": "Like [fetch](#fetch), for code that sends five requests, one after the other.",
  "ten-finds":
    "Like [svc-datasources](#svc-datasources), for code that reads a data source ten times. Each read is a request of the run to this service.",
  "many-apps":
    "The callers call the actions of forty apps in turn. Each app has its own browser context, which stays ready between runs. The baselines are calls of a single app, and Chromium alone with a new browser context for each evaluation.",
  cores: "The service runs on one core or on two cores. The callers can always use both cores.",
  runners:
    "One process has the role `api`. Besides it, one or two processes with the role `runner` execute the runs. All of them share the same two cores.",
  "log-events":
    "A back end sends a log event. The service stores it, and starts the actions whose trigger matches, in one transaction. The baseline is Fastify without the service, with one insert by the package `pg`.",
  "log-pages":
    "The time in which an editor gets a page of 50 entries of the execution log: the first page, and one in the middle of the log. The baseline is the database query of the same rows, without HTTP and without the check of the credential.",
  "run-start":
    "The time that a run waits in the queue of an idle service after a log event has queued it. The baseline is a notification from one database session to another.",
  "settings-get":
    "Fifty callers read the settings of an app, with and without encrypted values. The baseline reads the same rows in a Fastify handler. The service can be faster than the baseline, because it answers several requests of the same moment by one SQL statement.",
  "log-fanout":
    "A thousand websockets receive the log of one app. The baseline is graphql-ws with the same events, without the service.",
  capacity:
    "The page [capacity](docs/operate/capacity.md) has the costs of a run: processor time, SQL statements, write-ahead log (WAL) and rows.",
  "memory-hog":
    "The time of other calls while an action fills its memory again and again. The baseline is the same calls without this action.",
};

export const MANUAL_MEASUREMENTS = `## Measured by hand

These measurements were made once, by hand, on two cores of a fast machine. Compare times only with times of the same day.

- **Workers.** A run in a worker of its own would need 9 ms of processor time of Chromium, nearly all of it to start the worker's thread. A run
  in a document needs 13 ms. With eight callers, each run also needs about 2 ms of Node and 1.5 ms of PostgreSQL. So runs in workers could not
  exceed 138 a second on that machine. Runs in ShadowRealms do.
- **Directus** runs code in an isolate without a browser. With eight callers, it executed 1.5 times as many runs a second as the baseline
  opened documents; this service executes more than 3 times as many for \`language\`. A single call of Directus took 13.8 ms.
`;
