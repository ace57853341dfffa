/** Simulated browser of a person who signs in at an OpenID provider. It follows redirects and stores cookies. */
import { expect } from "chai";

export class RedirectBrowser {
  readonly cookies = new Map<string, string>();

  async request(address: string, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(address);
    const hostCookies = [...this.cookies].filter(([key]) => key.startsWith(`${host} `));
    const cookie = hostCookies.map(([key, value]) => `${key.slice(host.length + 1)}=${value}`).join("; ");
    const headers = { ...(init.headers as Record<string, string>), ...(cookie && { cookie }) };
    const response = await fetch(address, { ...init, headers, redirect: "manual" });
    const setCookies = response.headers.getSetCookie();
    expect(setCookies.filter((text) => text.startsWith("auth_token=")).length).to.be.at.most(1);
    for (const text of setCookies) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(text)!;
      if (value === "" || /max-age=0/i.test(text)) this.cookies.delete(`${host} ${name}`);
      else this.cookies.set(`${host} ${name}`, value!);
    }
    return response;
  }

  /** Follows redirects until `last` returns true for the next URL, and returns that URL without requesting it. */
  async follow(address: string, last: (next: string) => boolean): Promise<string> {
    let next = address;
    for (let hop = 0; hop < 20; hop += 1) {
      const response = await this.request(next);
      const location = response.headers.get("location");
      if (!location) throw new Error(`${response.status} at ${next}: ${await response.text()}`);
      next = new URL(location, next).href;
      if (last(next)) return next;
    }
    throw new Error(`too many redirects: ${next}`);
  }
}
