/**
 * Puts the example app of examples/bookings into an app, and takes it out again. What it puts there is known by its names, and by one
 * private setting that is written first and removed last: where that is missing, the names belong to somebody else.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { ExampleError } from "./api.mjs";

const FOLDER = new URL("../../examples/bookings/", import.meta.url);
/** `{publishedApp}`: whether the app was published for the example. */
const MARK = "_bookings";
const GUESTS = "bookings-guests";
const PAGE = 100;

const LIST = `query ($appId: Int!, $offset: Int!) {
  actions(appId: $appId, limit: ${PAGE}, offset: $offset) {
    actions { id name description code active environment frequency dependencies triggers { trigger where { type dataSourceId data } } updatedAt }
    published { masterId updatedAt }
    pagination { hasMore }
  }
}`;

const read = (path) => readFileSync(fileURLToPath(new URL(path, FOLDER)), "utf8");

/** The example as its files say it. */
function readExample() {
  const { settings, dataSources, actions } = JSON.parse(read("app.json"));
  const whole = actions.map((action) => ({
    dependencies: [],
    ...action,
    active: true,
    code: read(`actions/${action.name}.js`),
  }));
  return { settings, dataSources, actions: whole };
}

/** Without what GraphQL answers as null, and the files leave out. */
function comparable({ description, code, active, environment, frequency, dependencies, triggers }) {
  const fields = { description, code, active, environment, frequency, dependencies, triggers };
  return JSON.stringify(fields, (_key, value) => value ?? undefined);
}

/** The example in one app. `say` takes a line for people. */
export function bookingsIn({ call, appId, say }) {
  const example = readExample();
  const v1 = `/v1/apps/${appId}`;
  const v3 = `/v3/apps/${appId}/actions`;

  async function findApp() {
    const { apps } = await call("GET", "/v1/apps");
    const app = apps.find(({ id }) => id === appId);
    if (app) return app;
    const known = apps.map(({ id }) => id).join(", ") || "none";
    throw new ExampleError(`this token reaches no app ${appId}: name one with --app (it reaches ${known})`);
  }

  async function listActions() {
    const found = [];
    for (let more = true; more; ) {
      const variables = { appId, offset: found.length };
      const { data } = await call("POST", "/graphql", { query: LIST, variables });
      const { actions, published, pagination } = data.actions;
      const times = new Map(published.map(({ masterId, updatedAt }) => [masterId, updatedAt]));
      found.push(...actions.map((action) => ({ ...action, publishedAt: times.get(action.id) ?? null })));
      more = pagination.hasMore && actions.length > 0;
    }
    return found;
  }

  async function look() {
    const app = await findApp();
    const [settings, actions, { dataSources }] = await Promise.all([
      call("GET", `${v1}/settings/`),
      listActions(),
      call("GET", `${v1}/data-sources`),
    ]);
    return { app, settings, actions, dataSources, mark: settings[MARK] ?? null };
  }

  /** What somebody else has under the example's names. */
  function strangers({ settings, actions, dataSources }) {
    const has = (list, name) => list.some((one) => one.name === name);
    return [
      ...Object.keys(example.settings)
        .filter((key) => key in settings)
        .map((key) => `the setting ${key}`),
      ...example.dataSources.filter(({ name }) => has(dataSources, name)).map(({ name }) => `the data source ${name}`),
      ...example.actions.filter(({ name }) => has(actions, name)).map(({ name }) => `the action ${name}`),
    ];
  }

  async function putDataSource({ name, entries, ...fields }, { dataSources }) {
    const known = dataSources.find((one) => one.name === name);
    const isSame = ([field, value]) => isDeepStrictEqual(known[field], value);
    if (known && Object.entries(fields).every(isSame)) return;
    // Entries are the guests' by then: a second time nothing of them changes.
    if (known) return call("PUT", `${v1}/data-sources/${name}`, fields);
    return call("POST", `${v1}/data-sources`, { name, entries, ...fields });
  }

  /** A new one each time: nobody has to keep it, and none is known to everybody. */
  async function setPassword() {
    const password = randomBytes(9).toString("base64url");
    const path = `${v1}/data-sources/${GUESTS}`;
    const { entries } = await call("POST", `${path}/query`, { attributes: ["Email"] });
    for (const { id } of entries) await call("PUT", `${path}/entries/${id}`, { Password: password });
    return { password, emails: entries.map(({ data }) => data.Email) };
  }

  async function putAction(action, { actions }) {
    const known = actions.find(({ name }) => name === action.name);
    const isSame = known !== undefined && comparable(known) === comparable(action);
    if (isSame && known.publishedAt !== null && known.publishedAt >= known.updatedAt) return;
    const written = isSame
      ? { action: known }
      : await (known ? call("PUT", `${v3}/${known.id}`, action) : call("POST", v3, action));
    await call("POST", `${v3}/${written.action.id}/publish`);
    say(`action ${action.name}`);
  }

  return {
    /** Resolves to how its guests sign in. */
    async put() {
      const found = await look();
      const others = found.mark === null ? strangers(found) : [];
      if (others.length > 0)
        throw new ExampleError(
          `app ${appId} has ${others.join(", ")}, which the example did not put there: take another app`,
        );
      if (found.mark === null)
        await call("POST", `${v1}/settings`, { [MARK]: { publishedApp: !found.app.isPublished } });
      await call("POST", `${v1}/settings`, example.settings);
      for (const dataSource of example.dataSources) await putDataSource(dataSource, found);
      if (!found.app.isPublished) await call("POST", `${v1}/publish`);
      for (const action of example.actions) await putAction(action, found);
      return setPassword();
    },

    /** Resolves to false where there was nothing of it. */
    async remove() {
      const { app, mark, actions, dataSources } = await look();
      if (mark === null) return false;
      const names = new Set([...example.actions, ...example.dataSources].map(({ name }) => name));
      for (const { id } of actions.filter(({ name }) => names.has(name))) await call("DELETE", `${v3}/${id}`);
      for (const { id } of dataSources.filter(({ name }) => names.has(name)))
        await call("DELETE", `${v1}/data-sources/${id}`);
      const isUsed = actions.some(({ name, publishedAt }) => publishedAt !== null && !names.has(name));
      if (mark.publishedApp && app.isPublished && !isUsed) await call("POST", `${v1}/unpublish`);
      if (mark.publishedApp && isUsed) say("the app stays published: it has other published actions");
      await call("DELETE", `${v1}/settings`, { keys: [...Object.keys(example.settings), MARK] });
      return true;
    },
  };
}
