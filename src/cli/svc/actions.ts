/** Finds actions on the server, for the commands of `svc`. */
import type { CliApiClient } from "./client.js";
import { CliError } from "./failure.js";

const ACTIONS_ROUTE = "/v3/apps/:app/actions";
const ACTIONS_PER_PAGE = 1000;

export interface ActionRecord {
  id: number;
  name: string;
  [field: string]: unknown;
}

export async function listActions(client: CliApiClient): Promise<ActionRecord[]> {
  const all: ActionRecord[] = [];
  for (;;) {
    const { body } = await client.sendRequest("GET", ACTIONS_ROUTE, {
      query: { limit: ACTIONS_PER_PAGE, offset: all.length },
    });
    all.push(...body.actions);
    if (!body.pagination.hasMore || body.actions.length === 0) return all;
  }
}

/** Returns the action with this name. @throws CliError if the app has no such action */
export async function requireActionByName(client: CliApiClient, name: string): Promise<ActionRecord> {
  const { body } = await client.sendRequest("GET", ACTIONS_ROUTE, { query: { search: name, limit: ACTIONS_PER_PAGE } });
  const serverAction = (body.actions as ActionRecord[]).find((action) => action.name === name);
  if (!serverAction) throw new CliError(`the app has no action named ${JSON.stringify(name)}`);
  return serverAction;
}
