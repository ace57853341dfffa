/** Finds actions on the server, for the commands of `svc`. */
import type { CliApiClient } from "./client.js";
import { CliError } from "./failure.js";

export const ACTIONS_ROUTE = "/v3/apps/:app/actions";
const ACTIONS_PER_PAGE = 1000;

export interface ActionRecord {
  id: number;
  name: string;
  [field: string]: unknown;
}

/** Reads the app's actions page by page. The service returns smaller pages than requested if the actions are large. */
async function* readActionPages(client: CliApiClient, search?: string): AsyncGenerator<ActionRecord[]> {
  let offset = 0;
  for (;;) {
    const query = { limit: ACTIONS_PER_PAGE, offset, ...(search !== undefined && { search }) };
    const { body } = await client.sendRequest("GET", ACTIONS_ROUTE, { query });
    yield body.actions;
    offset += body.actions.length;
    if (!body.pagination.hasMore || body.actions.length === 0) return;
  }
}

export async function listActions(client: CliApiClient): Promise<ActionRecord[]> {
  const actions: ActionRecord[] = [];
  for await (const page of readActionPages(client)) actions.push(...page);
  return actions;
}

/** Returns the action with this name. @throws CliError if the app has no such action */
export async function requireActionByName(client: CliApiClient, name: string): Promise<ActionRecord> {
  for await (const page of readActionPages(client, name)) {
    const storedAction = page.find((action) => action.name === name);
    if (storedAction) return storedAction;
  }
  throw new CliError(`the app has no action named ${JSON.stringify(name)}`);
}
