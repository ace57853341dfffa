/** Parts of URLs that try to reach hosts outside the allowed origins, and a generator of pseudo-random numbers to combine the parts. */

export const SCHEMES = [
  "https://",
  "http://",
  "HTTPS://",
  "https:",
  "https:/",
  "https:\\\\",
  "//",
  "ftp://",
  "wss://",
  "javascript:",
  "https:///",
];
export const USERS = ["", "", "", "user@", "user:pass@", "api.example.com@", "api.example.com:443@", "%40@", "a\\@"];
export const HOSTS = [
  ...[
    "api.example.com",
    "API.EXAMPLE.COM",
    "api.example.com.",
    "api.example.com..",
    "api。example。com",
    "ａｐｉ.example.com",
  ],
  ...[
    "bücher.example",
    "xn--bcher-kva.example",
    "api.example.com.evil.example",
    "evil.example",
    "api-example.com",
    "example.com",
  ],
  ...[
    "xapi.example.com",
    "127.0.0.1",
    "localhost",
    "[::1]",
    "169.254.169.254",
    "2130706433",
    "0x7f.1",
    "[::ffff:7f00:1]",
  ],
  ...[
    "api.example.com%00.evil.example",
    "api.example.com%2f.evil.example",
    "аpi.example.com",
    "api.exаmple.com",
    "*.example.com",
  ],
  ...[
    "api.example.com\t.evil.example",
    "api\n.example.com",
    "api.example.com#.evil.example",
    "evil.example#api.example.com",
  ],
];
export const PORTS = ["", "", ":443", ":0443", ":8443", ":80", ":0", ":65536", ":443x", ":"];
export const PATHS = [
  "",
  "/",
  "/@evil.example/",
  "/..//evil.example",
  "\\evil.example",
  "?@evil.example",
  "//evil.example",
  "/%2e%2e/x",
];

/** Generates functions that return a pseudo-random integer from 0 to below `most`. The same seed gives the same numbers. */
export function* numbers(seed: number): Generator<(most: number) => number> {
  let state = seed;
  for (;;) {
    yield (most) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * most);
    };
  }
}
