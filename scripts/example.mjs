/**
 * Command `npm run example [-- --app ID] [--url ADDRESS] [--remove]`: installs the example app (examples/bookings) in an app of a running
 * service by its API, or removes it. It uses the command line `svc` of a built checkout.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createApi, ExampleError } from "./example/api.mjs";
import { bookingsIn } from "./example/bookings.mjs";

const USAGE = `Usage: npm run example [-- --app ID] [--url ADDRESS] [--remove]
The token is SVC_TOKEN's, else the editor's of credentials.json in DATA_DIR (.data); address and app are that file's too, unless given.`;

const say = (text) => process.stdout.write(`${text}\n`);

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

/** Returns the token for the service. The token of credentials.json is sent only to the service that wrote this file. */
function tokenFor(url, first) {
  const own = process.env.SVC_TOKEN;
  if (own && !/^[\x21-\x7e]+$/.test(own))
    throw new ExampleError("SVC_TOKEN must be a token in one line, without spaces");
  if (own) return { token: own, from: "SVC_TOKEN" };
  const token = first.tokens?.editor;
  if (!token) {
    const fault = first.fault ?? `${first.path} has no editor's token`;
    throw new ExampleError(`SVC_TOKEN is not set, and ${fault}\n${USAGE}`);
  }
  if (new URL(url).origin !== (URL.canParse(first.baseUrl) ? new URL(first.baseUrl).origin : null))
    throw new ExampleError(`the token of ${first.path} is for ${first.baseUrl}: set SVC_TOKEN to one of ${url}`);
  return { token, from: first.path };
}

function targetOf({ app, url }) {
  const first = readCredentials();
  const address = url ?? first.baseUrl;
  if (!address) throw new ExampleError(`no address: ${first.fault ?? "no baseUrl"}, and --url is not given\n${USAGE}`);
  if (!/^https?:\/\//.test(address) || !URL.canParse(address))
    throw new ExampleError(`--url must be an address such as http://127.0.0.1:4000 (got ${address})`);
  const appId = app ?? String(first.appId ?? "");
  if (!/^[1-9]\d{0,14}$/.test(appId))
    throw new ExampleError(`--app must be an app's id, a whole number above 0 (got ${appId || "nothing"})`);
  return { url: address.replace(/\/+$/, ""), appId: Number(appId), ...tokenFor(address, first), say };
}

async function main() {
  const options = readOptions();
  if (options.help) return say(USAGE);
  const target = targetOf(options);
  const { appId, url } = target;
  const bookings = bookingsIn({ call: createApi(target), target, say });
  if (options.remove) {
    const removed = await bookings.remove();
    return say(
      removed ? `The example is out of app ${appId}. What ran stays in the log.` : `App ${appId} has no example.`,
    );
  }
  const { emails, password } = await bookings.put();
  say(`The example is in app ${appId}: ${url}/apps/${appId}`);
  say(`Its guests sign in as ${emails.join(" or ")} with the password ${password}`);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof ExampleError)) throw error;
  process.stderr.write(`example: ${error.message}\n`);
  process.exitCode = 1;
}
