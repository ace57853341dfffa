/**
 * Command `npm run example [-- --app ID] [--url ADDRESS] [--remove]`: installs the example app of examples/bookings in an app of a running
 * service, or removes it. Needs a built checkout.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createApi, ExampleError } from "./example/api.mjs";
import { createBookingsInstaller } from "./example/bookings.mjs";

const USAGE = `Usage: npm run example [-- --app ID] [--url ADDRESS] [--remove]
Sends the token in SVC_TOKEN. Without SVC_TOKEN, sends the editor's token in credentials.json of DATA_DIR (.data).
The defaults of --url and --app are the address and the app in credentials.json.`;

const printLine = (text) => process.stdout.write(`${text}\n`);

function readCredentials() {
  const path = join(process.env.DATA_DIR || ".data", "credentials.json");
  try {
    return { path, ...JSON.parse(readFileSync(path, "utf8")) };
  } catch (error) {
    const isMissing = error.code === "ENOENT";
    return { path, fault: isMissing ? `there is no ${path}` : `${path} cannot be read (${error.message})` };
  }
}

function readOptions() {
  const options = {
    app: { type: "string" },
    url: { type: "string" },
    remove: { type: "boolean" },
    help: { type: "boolean" },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new ExampleError(`${error.message}\n${USAGE}`);
  }
}

/** Returns SVC_TOKEN, or else the editor's token in credentials.json. That token is sent only to the service that wrote the file. */
function chooseToken(url, firstCredentials) {
  const ownToken = process.env.SVC_TOKEN;
  if (ownToken && !/^[\x21-\x7e]+$/.test(ownToken))
    throw new ExampleError("SVC_TOKEN must be a token in one line, without spaces");
  if (ownToken) return { token: ownToken, from: "SVC_TOKEN" };
  const token = firstCredentials.tokens?.editor;
  if (!token) {
    const tokenProblem = firstCredentials.fault ?? `${firstCredentials.path} has no editor's token`;
    throw new ExampleError(`SVC_TOKEN is not set, and ${tokenProblem}\n${USAGE}`);
  }
  if (
    new URL(url).origin !== (URL.canParse(firstCredentials.baseUrl) ? new URL(firstCredentials.baseUrl).origin : null)
  )
    throw new ExampleError(
      `the token of ${firstCredentials.path} is for ${firstCredentials.baseUrl}: set SVC_TOKEN to a token for ${url}`,
    );
  return { token, from: firstCredentials.path };
}

function createTarget({ app, url }) {
  const firstCredentials = readCredentials();
  const address = url ?? firstCredentials.baseUrl;
  if (!address)
    throw new ExampleError(
      `--url is missing, and ${firstCredentials.fault ?? `${firstCredentials.path} has no baseUrl`}\n${USAGE}`,
    );
  if (!/^https?:\/\//.test(address) || !URL.canParse(address))
    throw new ExampleError(`--url must be an address such as http://127.0.0.1:4000 (got ${address})`);
  const appId = app ?? String(firstCredentials.appId ?? "");
  if (!/^[1-9]\d{0,14}$/.test(appId))
    throw new ExampleError(`--app must be the ID of an app, a positive whole number (got ${appId || "nothing"})`);
  return {
    url: address.replace(/\/+$/, ""),
    appId: Number(appId),
    ...chooseToken(address, firstCredentials),
    say: printLine,
  };
}

async function main() {
  const options = readOptions();
  if (options.help) return printLine(USAGE);
  const target = createTarget(options);
  const { appId, url } = target;
  const bookings = createBookingsInstaller({ call: createApi(target), target, say: printLine });
  if (options.remove) {
    const removed = await bookings.remove();
    return printLine(
      removed
        ? `Removed the example from app ${appId}. Its past runs stay in the log.`
        : `App ${appId} has no example.`,
    );
  }
  const { emails, password } = await bookings.install();
  printLine(`The example is in app ${appId}: ${url}/apps/${appId}`);
  printLine(`Its guests sign in as ${emails.join(" or ")} with the password ${password}`);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof ExampleError)) throw error;
  process.stderr.write(`example: ${error.message}\n`);
  process.exitCode = 1;
}
