/**
 * Installs the example app of examples/bookings in an app of the service, and removes it. A private setting marks the installation: it is
 * written first and removed last. If an app without this setting has parts with the example's names, the installation fails.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ExampleError } from "./api.mjs";

const EXAMPLE_FOLDER = new URL("../../examples/bookings/", import.meta.url);
/** Private setting that marks the installation. Its field `publishedApp` is true if the installation published the app. */
const MARK_SETTING = "_bookings";
const GUESTS_DATA_SOURCE = "bookings-guests";
const PAGE_SIZE = 100;

const LIST_ACTIONS = `query ($appId: Int!, $offset: Int!) {
  actions(appId: $appId, limit: ${PAGE_SIZE}, offset: $offset) {
    actions { id name updatedAt }
    published { masterId updatedAt }
    pagination { hasMore }
  }
}`;

const SVC_PROGRAM = fileURLToPath(new URL("../svc.mjs", import.meta.url));
const readJson = (path) => JSON.parse(readFileSync(fileURLToPath(new URL(path, EXAMPLE_FOLDER)), "utf8"));
const listFolder = (path) => readdirSync(fileURLToPath(new URL(path, EXAMPLE_FOLDER)));

function readExample() {
  return {
    settings: readJson("settings.json").map(({ key }) => key),
    dataSources: listFolder("data").map((file) => file.replace(/\.json$/, "")),
    actions: listFolder("actions"),
  };
}

/** Runs `svc` in a temporary copy of the example's folder, so that it writes no state of the app into the checkout. */
async function withProjectCopy({ url, appId, token }, work) {
  const folder = mkdtempSync(join(tmpdir(), "svc-example-"));
  cpSync(fileURLToPath(EXAMPLE_FOLDER), folder, { recursive: true });
  const env = { ...process.env, SVC_URL: url, SVC_APP: String(appId), SVC_TOKEN: token };
  const svc = (...args) =>
    new Promise((resolve, reject) => {
      execFile(process.execPath, [SVC_PROGRAM, ...args, "--yes"], { cwd: folder, env }, (error, _stdout, stderr) =>
        error ? reject(new ExampleError(stderr.trim() || error.message)) : resolve(),
      );
    });
  try {
    await work(svc);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function createBookingsInstaller({ call, target, say }) {
  const { appId } = target;
  const example = readExample();
  const v1 = `/v1/apps/${appId}`;
  const v3 = `/v3/apps/${appId}/actions`;

  async function findApp() {
    const { apps } = await call("GET", "/v1/apps");
    const app = apps.find(({ id }) => id === appId);
    if (app) return app;
    const knownApps = apps.map(({ id }) => id).join(", ") || "none";
    throw new ExampleError(`this token has no access to app ${appId}; pass one of its apps by --app (${knownApps})`);
  }

  async function listActions() {
    const found = [];
    for (let more = true; more; ) {
      const variables = { appId, offset: found.length };
      const { data } = await call("POST", "/graphql", { query: LIST_ACTIONS, variables });
      const { actions, published, pagination } = data.actions;
      const times = new Map(published.map(({ masterId, updatedAt }) => [masterId, updatedAt]));
      found.push(...actions.map((action) => ({ ...action, publishedAt: times.get(action.id) ?? null })));
      more = pagination.hasMore && actions.length > 0;
    }
    return found;
  }

  async function readState() {
    const app = await findApp();
    const [settings, actions, { dataSources }] = await Promise.all([
      call("GET", `${v1}/settings/`),
      listActions(),
      call("GET", `${v1}/data-sources`),
    ]);
    return { app, settings, actions, dataSources, mark: settings[MARK_SETTING] ?? null };
  }

  /** Returns the parts of an app that have the example's names but are not from the example. Only for an app without the example. */
  function findForeignParts({ settings, actions, dataSources }) {
    const has = (list, name) => list.some((item) => item.name === name);
    return [
      ...example.settings.filter((key) => key in settings).map((key) => `the setting ${key}`),
      ...example.dataSources.filter((name) => has(dataSources, name)).map((name) => `the data source ${name}`),
      ...example.actions.filter((name) => has(actions, name)).map((name) => `the action ${name}`),
    ];
  }

  /** Pushes the definitions, and the entries of empty data sources. Entries in other data sources may be from guests, so they stay. */
  async function pushProject(svc) {
    await svc("push", "--force");
    for (const name of example.dataSources) {
      const { entries } = await call("POST", `${v1}/data-sources/${name}/query`, { limit: 1 });
      if (entries.length === 0) await svc("data", "push", name, `entries/${name}.jsonl`);
    }
  }

  /** Sets the same new random password for all guests. Returns the password and the guests' e-mail addresses. */
  async function setPassword() {
    const password = randomBytes(9).toString("base64url");
    const path = `${v1}/data-sources/${GUESTS_DATA_SOURCE}`;
    const { entries } = await call("POST", `${path}/query`, { attributes: ["Email"] });
    for (const { id } of entries) await call("PUT", `${path}/entries/${id}`, { Password: password });
    return { password, emails: entries.map(({ data }) => data.Email) };
  }

  async function publishActions() {
    for (const { id, name, updatedAt, publishedAt } of await listActions()) {
      if (!example.actions.includes(name) || (publishedAt !== null && publishedAt >= updatedAt)) continue;
      await call("POST", `${v3}/${id}/publish`);
      say(`action ${name}`);
    }
  }

  return {
    /** Installs the example. Resolves to the guests' e-mail addresses and their common password. */
    async install() {
      const found = await readState();
      const foreignParts = found.mark === null ? findForeignParts(found) : [];
      if (foreignParts.length > 0)
        throw new ExampleError(
          `app ${appId} has ${foreignParts.join(", ")}, which the example did not create; use another app`,
        );
      if (found.mark === null)
        await call("POST", `${v1}/settings`, { [MARK_SETTING]: { publishedApp: !found.app.isPublished } });
      await withProjectCopy(target, pushProject);
      if (!found.app.isPublished) await call("POST", `${v1}/publish`);
      await publishActions();
      return setPassword();
    },

    /** Removes the example. Resolves to false if it is not installed. */
    async remove() {
      const { app, mark, actions, dataSources } = await readState();
      if (mark === null) return false;
      const names = new Set([...example.actions, ...example.dataSources]);
      for (const { id } of actions.filter(({ name }) => names.has(name))) await call("DELETE", `${v3}/${id}`);
      for (const { id } of dataSources.filter(({ name }) => names.has(name)))
        await call("DELETE", `${v1}/data-sources/${id}`);
      const isUsed = actions.some(({ name, publishedAt }) => publishedAt !== null && !names.has(name));
      if (mark.publishedApp && app.isPublished && !isUsed) await call("POST", `${v1}/unpublish`);
      if (mark.publishedApp && isUsed) say("the app stays published: it has other published actions");
      await call("DELETE", `${v1}/settings`, { keys: [...example.settings, MARK_SETTING] });
      return true;
    },
  };
}
