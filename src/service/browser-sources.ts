/**
 * Selects the browsers that execute runs, and decides who may use the egress proxies through which browsers send requests. Starts no
 * browser.
 */
import type { Logger } from "pino";
import type { Config } from "../config.js";
import type { BrowserSource } from "../engine/browser/browser-source.js";
import { createLocalBrowserSource, isBrowserUid } from "../engine/browser/processes/chromium.js";
import { createRemoteBrowserSource } from "../engine/browser/remote/remote-browser.js";
import { findChromium, getDefaultChromiumPaths } from "../engine/chromium-path.mjs";
import type { EgressProxyOptions } from "../engine/egress-proxy.js";
import { selectHostResolver } from "../engine/public-lookup.js";
import { StartError } from "../errors.js";

export interface BrowserSources {
  sources: readonly BrowserSource[];
  egressOptions: EgressProxyOptions;
}

function locateChromium({ chromePath, puppeteerCacheDir }: Config): string {
  const path = findChromium(chromePath, getDefaultChromiumPaths(puppeteerCacheDir));
  if (path) return path;
  throw new StartError(
    "Chromium was not found; set CHROME_PATH to a Chromium, or install the package chromium-headless-shell",
  );
}

/** Returns the browsers to use, and the options of their egress proxies. @throws StartError if Chromium is not installed */
export function createBrowserSources(config: Config, log: Logger): BrowserSources {
  const { allowPrivateNetwork, egressAddress: localAddress, egressProxyHost: host, chromeSandbox: sandbox } = config;
  const commonEgressOptions = { allowPrivateNetwork, localAddress, resolve: selectHostResolver(allowPrivateNetwork) };
  if (config.browserWsEndpoints.length === 0) {
    const sources = [createLocalBrowserSource({ chromePath: locateChromium(config), sandbox, log })];
    if (process.getuid?.() !== 0) {
      log.warn(
        "Chromium runs as the user that owns this service's data: only its sandbox protects the data; see SECURITY.md",
      );
    }
    // Every process on this machine can connect to the proxy, so the proxy serves only the operating system user of the browsers.
    return { sources, egressOptions: { ...commonEgressOptions, acceptsUid: isBrowserUid } };
  }
  const sources = config.browserWsEndpoints.map((endpoint) =>
    createRemoteBrowserSource({ endpoint, egressHost: host, sandbox, log }),
  );
  // Other machines can connect to the proxy. So it serves only the network addresses of the browsers.
  const isBrowserAddress = (peer: string) => sources.some((browser) => browser.mayConnectFrom(peer));
  return { sources, egressOptions: { ...commonEgressOptions, host, acceptsAddress: isBrowserAddress } };
}
