/** Who the configured token stands for, for pages whose `window.ENV` does not say it. Keeps nothing but the last answer. */
import type { Connection } from "./connection.js";
import type { AppSession } from "./public-types.js";
import { scope } from "./scope.js";

const QUERY = `query Session($appId: Int!) {
  runtimeEnv(appId: $appId) { session {
    appId user { id firstName lastName email } environment
    entries { dataSource { id dataSourceId data verified { email sms } } } awaits
  } }
}`;

interface Answer {
  data?: { runtimeEnv?: { session: AppSession } } | null;
}

export function createSession({ appId, request }: Pick<Connection, "appId" | "request">) {
  let requested: Promise<AppSession | null> | null = null;

  async function ask(): Promise<AppSession | null> {
    const { data } = (await request("POST", "/graphql", { query: QUERY, variables: { appId: appId() } })) as Answer;
    return data?.runtimeEnv?.session ?? null;
  }

  return {
    /** null where the service knows nobody; rejects where no answer came. */
    session(): Promise<AppSession | null> {
      const answer = requested ?? ask();
      requested = answer;
      answer.catch(() => {
        if (requested === answer) requested = null;
      });
      return answer.catch((error: { status?: string }) => {
        if (error.status === "NETWORK_ERROR") throw error;
        return null;
      });
    },
    /** With another credential it is another's. */
    forget(): void {
      requested = null;
      Reflect.deleteProperty(scope.ENV ?? {}, "session");
    },
  };
}
