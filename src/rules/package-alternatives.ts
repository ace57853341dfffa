/** npm packages, most of which need Node.js, each with a better choice for actions. Error messages suggest the replacement. */

const PACKAGE_ALTERNATIVES: Readonly<Record<string, string>> = {
  "aws-sdk": "aws4fetch",
  axios: "fetch",
  bcrypt: "bcryptjs",
  argon2: "hash-wasm",
  cheerio: "DOMParser",
  "csv-parse": "svc-csv or papaparse",
  "csv-parser": "svc-csv or papaparse",
  "csv-stringify": "svc-csv or papaparse",
  "fast-csv": "svc-csv or papaparse",
  dotenv: "the app's settings (context.settings)",
  "form-data": "FormData",
  got: "fetch",
  jsdom: "DOMParser",
  jsonwebtoken: "jose",
  "iconv-lite": "TextDecoder",
  mjml: "svc-communicate with html",
  "mjml-browser": "svc-communicate with html",
  mongodb: "svc-datasources",
  mongoose: "svc-datasources",
  mysql: "svc-datasources",
  mysql2: "svc-datasources",
  "node-cron": "a schedule trigger",
  "node-fetch": "fetch",
  nodemailer: "svc-communicate",
  pdfkit: "pdf-lib or jspdf",
  pg: "svc-datasources",
  pino: "console",
  puppeteer: "document, in a server action",
  redis: "svc-datasources",
  request: "fetch",
  "request-promise": "fetch",
  sharp: "svc-media, which makes thumbnails",
  superagent: "fetch",
  twilio: "svc-communicate",
  undici: "fetch",
  winston: "console",
  xml2js: "fast-xml-parser",
};

/** Returns the replacement of a package; "" if the list has none. @param dependency name with an optional version */
export function findPackageAlternative(dependency: string): string {
  const [name = ""] = /^.[^@/]*/.exec(dependency) ?? [];
  return Object.hasOwn(PACKAGE_ALTERNATIVES, name) ? PACKAGE_ALTERNATIVES[name]! : "";
}
