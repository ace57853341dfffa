/** Creates a script of attacks. A malicious author's code runs this script in the page that executes the code. */

/** Prefix of the console line in which the attack script reports its results. */
export const REPORT = "ATTEMPTS";

export const REFUSED = "refused";

/**
 * Returns a script for a page whose browser may have an administrator's cookie. For each attack, the script reports REFUSED or the data
 * that the attack obtained.
 * @param origins origin of the service, and the origin of its pages if they have another one
 */
export function createAttackScript({
  origins,
  appId,
  actionId,
}: {
  origins: string[];
  appId: number;
  actionId: number;
}): string {
  return `(async () => {
    const REFUSED = ${JSON.stringify(REFUSED)};
    const tried = async (attempt) => {
      try { return (await attempt()) ?? REFUSED; } catch { return REFUSED; }
    };
    const answered = async (path, init) => {
      const response = await fetch(path, { credentials: "include", ...init });
      return response.type === "opaque" ? undefined : response.status + " " + (await response.text()).slice(0, 60);
    };
    const json = { "content-type": "application/json" };
    const user = JSON.stringify({ firstName: "E", lastName: "V", email: "evil@example.com" });
    const mutation = JSON.stringify({ query: "mutation { setSettings(appId: ${appId}, settings: {stolen: 1}) }" });
    const outcomes = {};
    const attempt = async (name, act) => { outcomes[name] = await tried(act); };

    await attempt("reads a cookie", () => document.cookie || undefined);
    await attempt("has storage", () => localStorage && "storage");
    await attempt("has a session's storage", () => sessionStorage && "storage");
    await attempt("has a database", () => new Promise((resolve, reject) => {
      const request = indexedDB.open("x");
      request.onsuccess = () => resolve("opened");
      request.onerror = reject;
    }));
    await attempt("reaches its opener", () => window.opener && window.opener.document.title + "!");
    await attempt("opens Studio", () => window.open("/studio") && "opened");
    await attempt("registers a worker for the origin", () => navigator.serviceWorker.register(
      "/v3/apps/${appId}/actions/${actionId}/compile").then(() => "registered"));
    for (const origin of ${JSON.stringify(origins)}) {
      const of = (what) => what + " of " + origin;
      await attempt(of("reads apps"), () => answered(origin + "/v1/apps"));
      await attempt(of("reads settings"), () => answered(origin + "/v1/apps/${appId}/settings"));
      await attempt(of("makes a user"), () => answered(origin + "/v1/admin/users", { method: "POST", headers: json, body: user }));
      await attempt(of("makes a user, unasked"), () => answered(origin + "/v1/admin/users", {
        method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body: user }));
      await attempt(of("sets a setting"), () => answered(origin + "/graphql", { method: "POST", headers: json, body: mutation }));
      await attempt(of("reads the viewer's page"), () => answered(origin + "/apps/${appId}/viewer"));
      await attempt(of("frames Studio"), () => new Promise((resolve, reject) => {
        const frame = Object.assign(document.createElement("iframe"), { src: origin + "/studio" });
        const settle = () => { try { resolve(frame.contentDocument?.body && frame.contentDocument.title); } catch (error) { reject(error); } };
        frame.onload = settle;
        frame.onerror = reject;
        setTimeout(settle, 500);
        document.documentElement.append(frame);
      }));
      await attempt(of("asks by a socket"), () => new Promise((resolve, reject) => {
        const socket = new WebSocket(origin.replace("http", "ws") + "/graphql", "graphql-transport-ws");
        socket.onopen = () => socket.send('{"type":"connection_init"}');
        socket.onmessage = ({ data }) => resolve(data);
        socket.onclose = socket.onerror = reject;
      }));
      await attempt(of("includes the settings of who is signed in"), () => new Promise((resolve, reject) => {
        const before = window.ENV;
        const nonce = document.querySelector("script[nonce]")?.nonce ?? "";
        const script = Object.assign(document.createElement("script"), { src: origin + "/v1/apps/${appId}/env.js", nonce });
        script.onload = () => {
          const included = window.ENV;
          window.ENV = before;
          // Everyone may read the public settings of a published app. The attack succeeds if env.js contains a session or a token.
          if (included === before || !("session" in included || "token" in included)) reject();
          else resolve("included");
        };
        script.onerror = reject;
        document.head.append(script);
      }));
      await attempt(of("posts a form"), () => new Promise((resolve) => {
        const form = document.createElement("form");
        Object.assign(form, { action: origin + "/v1/admin/users", method: "post", enctype: "text/plain", target: "sent" });
        form.append(Object.assign(document.createElement("input"), { name: ${JSON.stringify('{"email":"evil@example.com","lastName":"V","firstName":"')}, value: 'E"}' }));
        document.documentElement.append(form);
        form.submit();
        setTimeout(resolve, 100);
      }));
      // The sign-out is the last attempt, because it ends the session that the other attempts use.
      await attempt(of("signs out"), () => answered(origin + "/v1/session", { method: "DELETE" }));
    }
    console.log(${JSON.stringify(REPORT)}, JSON.stringify(outcomes));
  })()`;
}
