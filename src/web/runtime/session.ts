/** Reads the session of the connection's token, for pages whose `window.ENV` contains no session. Caches only the last response. */
import type { Connection } from "./connection.js";
import { toSvcError } from "./failure.js";
import type { AppSession } from "./public-types.js";
import { globalScope } from "./scope.js";

const SESSION_QUERY = `query Session($appId: Int!) {
  runtimeEnv(appId: $appId) { session {
    appId user { id firstName lastName email } environment
    entries { dataSource { id dataSourceId data verified { email sms } } } awaits
  } }
}`;

/** With this media type, a rejected query has the HTTP status of its error. So the connection can replace an expired token. */
const SESSION_QUERY_HEADERS = { Accept: "application/graphql-response+json" };

const omitNulls = (fields: object) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

/** Removes the null that GraphQL returns for each field without a value. In a session, only `user` and values of columns can be null. */
function toAppSession({ user, entries, ...fields }: AppSession): AppSession {
  const session = { ...(omitNulls(fields) as AppSession), user };
  if (!entries) return session;
  const { verified, ...dataSource } = entries.dataSource;
  return { ...session, entries: { dataSource: { ...dataSource, ...(verified && { verified: omitNulls(verified) }) } } };
}

interface SessionQueryResponse {
  data?: { runtimeEnv?: { session: AppSession } | null } | null;
}

export function createSessionReader({ appId, request }: Pick<Connection, "appId" | "request">) {
  let cachedSession: Promise<AppSession | null> | null = null;

  async function requestSession(): Promise<AppSession> {
    const query = { query: SESSION_QUERY, variables: { appId: appId() } };
    const body = await request("POST", "/graphql", query, { headers: SESSION_QUERY_HEADERS });
    const { data } = body as SessionQueryResponse;
    if (!data?.runtimeEnv) throw toSvcError(body, 200);
    return toAppSession(data.runtimeEnv.session);
  }

  return {
    /** Returns the session of the token; null if the service responds with an error, such as for an invalid token. @throws NETWORK_ERROR */
    session(): Promise<AppSession | null> {
      const session = cachedSession ?? requestSession();
      cachedSession = session;
      session.catch(() => {
        if (cachedSession === session) cachedSession = null;
      });
      return session.catch((error: { status?: string }) => {
        if (error.status === "NETWORK_ERROR") throw error;
        return null;
      });
    },
    /** Discards the cached session and `window.ENV.session`. Call this when the token changes, because each token has its own session. */
    discardSession(): void {
      cachedSession = null;
      Reflect.deleteProperty(globalScope.ENV ?? {}, "session");
    },
  };
}
