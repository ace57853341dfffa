/** Runs the agent's tasks one after the other, and counts the calls that each task needs. */
import { Agent, type AgentOptions, type CallCounts } from "./client.js";
import { TASKS } from "./tasks.js";

/** Scopes of the agent's API token: every scope that an API token can have. */
export const AGENT_SCOPES = ["read", "run", "settings", "data", "manage", "publish"] as const;

export interface TaskResult extends CallCounts {
  title: string;
  /** Reason of the failure; null if the task is done. */
  error: string | null;
}

export async function runTasks(options: AgentOptions): Promise<TaskResult[]> {
  const agent = new Agent(options);
  const results: TaskResult[] = [];
  try {
    await agent.connect();
    for (const { title, run } of TASKS) {
      agent.calls = { mcp: 0, cli: 0 };
      const error = await run(agent).then(
        () => null,
        (thrown: unknown) => (thrown as Error).message,
      );
      results.push({ title, ...agent.calls, error });
    }
  } finally {
    await agent.close();
  }
  return results;
}
