/** Code samples of WebCrypto: its classes, each operation of each algorithm, keys, and invalid arguments. */
import type { Sample } from "./outcomes.js";

/**
 * Code that runs before the samples. Random bytes and keys differ between runs, so a sample returns only their readable properties, such as
 * `propertiesOf(key)`.
 */
export const CRYPTO_BEFORE = `
  const { subtle } = crypto;
  const bytes = (length, seed = 7) => Uint8Array.from({ length }, (_, at) => (at * 31 + seed) % 256);
  const propertiesOf = (key) => [key.type, key.extractable, key.algorithm, key.usages];
  const KEYS = {
    "AES-GCM": [{ name: "AES-GCM" }, ["encrypt", "decrypt", "wrapKey", "unwrapKey"]],
    "AES-CBC": [{ name: "AES-CBC" }, ["encrypt", "decrypt", "wrapKey", "unwrapKey"]],
    "AES-CTR": [{ name: "AES-CTR" }, ["encrypt", "decrypt", "wrapKey", "unwrapKey"]],
    "AES-KW": [{ name: "AES-KW" }, ["wrapKey", "unwrapKey"]],
    HMAC: [{ name: "HMAC", hash: "SHA-256" }, ["sign", "verify"]],
    "HMAC of an object": [{ name: "HMAC", hash: { name: "SHA-512" }, length: 250 }, ["sign", "verify"]],
    PBKDF2: ["PBKDF2", ["deriveBits", "deriveKey"]],
    HKDF: ["HKDF", ["deriveBits", "deriveKey"]],
  };
  const keyOf = (name, extractable = !/KDF/.test(name)) => subtle.importKey("raw", bytes(32), KEYS[name][0], extractable, KEYS[name][1]);
  const PAIRS = {
    "RSA-OAEP": [{ name: "RSA-OAEP", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }, ["encrypt", "decrypt"]],
    "RSASSA-PKCS1-v1_5": [{ name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-1" }, ["sign", "verify"]],
    "RSA-PSS": [{ name: "RSA-PSS", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }, ["sign", "verify"]],
    ECDSA: [{ name: "ECDSA", namedCurve: "P-256" }, ["sign", "verify"]],
    ECDH: [{ name: "ECDH", namedCurve: "P-384" }, ["deriveBits", "deriveKey"]],
    Ed25519: ["Ed25519", ["sign", "verify"]],
    X25519: [{ name: "X25519" }, ["deriveBits"]],
  };
  const pairOf = (name) => subtle.generateKey(PAIRS[name][0], true, PAIRS[name][1]);
  const CALLS = {
    "AES-GCM": { name: "AES-GCM", iv: bytes(12), additionalData: bytes(5), tagLength: 96 },
    "AES-CBC": { name: "AES-CBC", iv: bytes(16) },
    "AES-CTR": { name: "AES-CTR", counter: bytes(16), length: 64 },
    "RSA-OAEP": { name: "RSA-OAEP", label: bytes(3) },
    "RSA-PSS": { name: "RSA-PSS", saltLength: 20 },
    ECDSA: { name: "ECDSA", hash: "SHA-384" },
    PBKDF2: { name: "PBKDF2", salt: bytes(16), iterations: 3, hash: "SHA-256" },
    HKDF: { name: "HKDF", salt: bytes(16), info: bytes(3), hash: "SHA-512" },
  };`;

const HIDDEN_CLASSES = ["crypto['cons' + 'tructor']", "crypto.subtle['cons' + 'tructor']"];
const CLASSES = [...HIDDEN_CLASSES, "(await keyOf('HMAC'))['cons' + 'tructor']"];

const SHAPE_SAMPLES: Sample[] = [
  ...CLASSES.flatMap((code): Sample[] => [
    [`${code}: itself`, `{ const one = await ${code}; return [shapeOf(one), canConstruct(one)] }`],
    [
      `${code}: members`,
      `{ const one = await ${code}; return [sorted(membersOf(one)), sorted(membersOf(one.prototype))] }`,
    ],
    [`${code}: order`, `{ const one = await ${code}; return Reflect.ownKeys(one.prototype).map(String).join() }`],
    [`${code}: new`, `{ const one = await ${code}; return new one() }`],
    [`${code}: called`, `{ const one = await ${code}; return one() }`],
    [`${code}: a class of it`, `{ class Own extends (await ${code}) {}; return new Own() }`],
    [`${code}: inherits`, `{ const one = await ${code}; return nameOf(Object.getPrototypeOf(one.prototype)) }`],
  ]),
  [
    "crypto itself",
    "[shapeOf(crypto), String(crypto), Reflect.ownKeys(crypto), typeof Crypto, typeof SubtleCrypto, typeof CryptoKey]",
  ],
  ["subtle itself", "[String(subtle), Reflect.ownKeys(subtle), crypto.subtle === subtle]"],
  ["subtle cannot be set", "{ crypto.subtle = 1; return crypto.subtle === subtle }"],
  ["a member put onto crypto", "{ crypto.own = 1; return [crypto.own, delete crypto.own] }"],
  ...[
    "undefined",
    "null",
    "1",
    "({})",
    "crypto",
    "subtle",
    "Object.create(crypto)",
    "Object.create(subtle)",
    "new Headers()",
  ].flatMap((self): Sample[] =>
    ["crypto", "subtle"].map(
      (holder): Sample => [
        `members of ${holder} on ${self}`,
        `{
          const found = [];
          const prototype = Object.getPrototypeOf(${holder});
          for (const key of Reflect.ownKeys(prototype)) {
            const { get, value } = Reflect.getOwnPropertyDescriptor(prototype, key);
            const member = get ?? value;
            if (/^(constructor|randomUUID|supports)$/.test(String(key)) || typeof member !== "function") continue;
            found.push([String(key), await outcome(() => member.call(${self}))]);
          }
          return found;
        }`,
      ],
    ),
  ),
];

const DIGEST_SAMPLES: Sample[] = ["SHA-1", "SHA-256", "SHA-384", "SHA-512", "sha-256", "MD5", "SHA-3"].flatMap(
  (name): Sample[] => [
    [`a digest by ${name}`, `subtle.digest("${name}", bytes(100))`],
    [`a digest by an object of ${name}`, `subtle.digest({ name: "${name}" }, bytes(100).buffer)`],
  ],
);

const KEY_NAMES = ["AES-GCM", "AES-CBC", "AES-CTR", "AES-KW", "HMAC", "HMAC of an object", "PBKDF2", "HKDF"];
const KEY_PAIR_NAMES = ["RSA-OAEP", "RSASSA-PKCS1-v1_5", "RSA-PSS", "ECDSA", "ECDH", "Ed25519", "X25519"];

const KEY_SAMPLES: Sample[] = KEY_NAMES.flatMap((name): Sample[] => [
  [`a key of ${name}`, `propertiesOf(await keyOf("${name}"))`],
  [
    `a key of ${name}: its attributes are the same objects`,
    `{ const key = await keyOf("${name}"); return [key.algorithm === key.algorithm, key.usages === key.usages, key.algorithm.hash === key.algorithm.hash] }`,
  ],
  [
    `a key of ${name}: as text`,
    `{ const key = await keyOf("${name}"); return [String(key), JSON.stringify(key), Reflect.ownKeys(key)] }`,
  ],
  ...["raw", "jwk", "pkcs8", "spki"].map(
    (form): Sample => [`a key of ${name} exported as ${form}`, `subtle.exportKey("${form}", await keyOf("${name}"))`],
  ),
  [`a key of ${name} that is not to be exported`, `subtle.exportKey("raw", await keyOf("${name}", false))`],
  [
    `a key of ${name} there and back`,
    `{ const jwk = await subtle.exportKey("jwk", await keyOf("${name}")); return propertiesOf(await subtle.importKey("jwk", jwk, KEYS["${name}"][0], true, KEYS["${name}"][1])) }`,
  ],
  [`encrypt with ${name}`, `subtle.encrypt(CALLS["${name}"] ?? "${name}", await keyOf("${name}"), bytes(40))`],
  [
    `decrypt with ${name}`,
    `{ const key = await keyOf("${name}"); return subtle.decrypt(CALLS["${name}"], key, await subtle.encrypt(CALLS["${name}"], key, bytes(40))) }`,
  ],
  [
    `decrypt something else with ${name}`,
    `subtle.decrypt(CALLS["${name}"] ?? "${name}", await keyOf("${name}"), bytes(48))`,
  ],
  [`sign with ${name}`, `subtle.sign("${name.split(" ")[0]}", await keyOf("${name}"), bytes(40))`],
  [
    `verify with ${name}`,
    `{ const key = await keyOf("${name}"); const s = await subtle.sign("HMAC", key, bytes(9)); return [await subtle.verify("HMAC", key, s, bytes(9)), await subtle.verify("HMAC", key, s, bytes(8))] }`,
  ],
  [`derive bits with ${name}`, `subtle.deriveBits(CALLS["${name}"] ?? "${name}", await keyOf("${name}"), 256)`],
  [
    `derive a key with ${name}`,
    `{ const key = await subtle.deriveKey(CALLS["${name}"], await keyOf("${name}"), { name: "AES-GCM", length: 256 }, true, ["encrypt"]); return [propertiesOf(key), await subtle.exportKey("raw", key)] }`,
  ],
  [
    `wrap and unwrap with ${name}`,
    `{
    const [key, wrapping, call] = [await keyOf("HMAC"), await keyOf("${name}"), CALLS["${name}"] ?? "${name}"];
    const wrapped = await subtle.wrapKey("raw", key, wrapping, call);
    return [wrapped, propertiesOf(await subtle.unwrapKey("raw", wrapped, wrapping, call, KEYS.HMAC[0], true, ["sign"]))];
  }`,
  ],
]);

const KEY_PAIR_SAMPLES: Sample[] = KEY_PAIR_NAMES.flatMap((name): Sample[] => [
  [
    `a pair of ${name}`,
    `{ const pair = await pairOf("${name}"); return [Reflect.ownKeys(pair), Object.getPrototypeOf(pair) === Object.prototype, propertiesOf(pair.publicKey), propertiesOf(pair.privateKey)] }`,
  ],
  ...["raw", "jwk", "pkcs8", "spki"].map(
    (form): Sample => [
      `a pair of ${name} exported as ${form}`,
      `{
      const { publicKey, privateKey } = await pairOf("${name}");
      const shape = (one) => one instanceof ArrayBuffer ? "bytes" : Object.keys(one).sort().join() + JSON.stringify([one.kty, one.crv, one.alg, one.ext, one.key_ops]);
      return [await outcome(async () => shape(await subtle.exportKey("${form}", publicKey))), await outcome(async () => shape(await subtle.exportKey("${form}", privateKey)))];
    }`,
    ],
  ),
  [
    `sign and verify with ${name}`,
    `{ const { publicKey, privateKey } = await pairOf("${name}"); const call = CALLS["${name}"] ?? "${name}"; const s = await subtle.sign(call, privateKey, bytes(20)); return [await subtle.verify(call, publicKey, s, bytes(20)), await subtle.verify(call, publicKey, s, bytes(21))] }`,
  ],
  [
    `encrypt and decrypt with ${name}`,
    `{ const { publicKey, privateKey } = await pairOf("${name}"); const call = CALLS["${name}"] ?? "${name}"; return subtle.decrypt(call, privateKey, await subtle.encrypt(call, publicKey, bytes(20))) }`,
  ],
  [
    `agree by ${name}`,
    `{
    const [own, other] = [await pairOf("${name}"), await pairOf("${name}")];
    const bits = async (from, to) => new Uint8Array(await subtle.deriveBits({ name: "${name}", public: to.publicKey }, from.privateKey, 256)).join();
    return (await bits(own, other)) === (await bits(other, own));
  }`,
  ],
]);

const RANDOM_SAMPLES: Sample[] = [
  ["a uuid", "[crypto.randomUUID(), crypto.randomUUID() === crypto.randomUUID()]"],
  [
    "random bytes are written into the same array",
    "{ const a = new Uint8Array(64); return [crypto.getRandomValues(a) === a, a.some((one) => one !== 0)] }",
  ],
  [
    "random bytes of a part",
    "{ const all = new Uint8Array(100); crypto.getRandomValues(new Uint16Array(all.buffer, 40, 10)); return [all.slice(0, 40).some(Boolean), all.slice(40, 60).some(Boolean), all.slice(60).some(Boolean)] }",
  ],
  [
    "random bytes with members",
    "{ const a = Object.assign(new Uint8Array(8), { own: 1, set: 2 }); return [crypto.getRandomValues(a) === a, a.own, a.set] }",
  ],
  ["as many random bytes as there may be", "crypto.getRandomValues(new Uint8Array(65536)).length"],
  ["too many random bytes", "crypto.getRandomValues(new Uint8Array(65537))"],
  [
    "what is said of too many random bytes",
    "{ try { crypto.getRandomValues(new Uint8Array(65537)) } catch (error) { return [error.quota, error.requested, error['cons' + 'tructor'].name] } }",
  ],
  [
    "random bytes of a class",
    "{ class Own extends Uint32Array {}; const a = new Own(8); return [crypto.getRandomValues(a) === a, a.some(Boolean)] }",
  ],
];

/** Samples that record which properties of the arguments the platform reads. */
const READING_SAMPLES: Sample[] = [
  [
    "an algorithm that notes",
    "subtle.digest(new Proxy({ name: 'SHA-256' }, { get(t, key) { note(String(key)); return t[key] } }), bytes(1))",
  ],
  [
    "a name that notes",
    "subtle.digest({ get name() { note('name'); return { toString() { note('text'); return 'SHA-256' } } } }, bytes(1))",
  ],
  ["a name that throws", "subtle.digest({ get name() { throw new RangeError('name') } }, bytes(1))"],
  [
    "an algorithm's order",
    "subtle.encrypt(new Proxy(CALLS['AES-GCM'], { get(t, key) { note(String(key)); return t[key] } }), await keyOf('AES-GCM'), bytes(4))",
  ],
  [
    "a jwk that notes",
    "{ const jwk = await subtle.exportKey('jwk', await keyOf('HMAC')); return propertiesOf(await subtle.importKey('jwk', new Proxy(jwk, { get(t, key) { note(String(key)); return t[key] } }), KEYS.HMAC[0], true, ['sign'])) }",
  ],
  [
    "usages by an iterator",
    "propertiesOf(await subtle.importKey('raw', bytes(32), 'AES-GCM', true, { *[Symbol.iterator]() { note('one'); yield 'encrypt'; note('two'); yield 'decrypt' } }))",
  ],
  [
    "usages that throw",
    "subtle.importKey('raw', bytes(32), 'AES-GCM', true, { *[Symbol.iterator]() { yield 'encrypt'; throw new RangeError('usages') } })",
  ],
  [
    "bytes changed after the call",
    "{ const data = bytes(10); const later = subtle.digest('SHA-256', data); data.fill(0); return later }",
  ],
  [
    "bytes that are taken away by a getter",
    "{ const data = bytes(10); return subtle.digest({ get name() { data.buffer.transfer(); return 'SHA-256' } }, data) }",
  ],
  [
    "changed prototypes",
    `{
    const kept = [Array.prototype[Symbol.iterator], Object.prototype.then, Promise.prototype.then];
    Object.defineProperty(Object.prototype, "name", { get() { note("inherited"); return "SHA-512" }, configurable: true });
    const later = subtle.digest({}, bytes(3));
    delete Object.prototype.name;
    return [kept.length, await later];
  }`,
  ],
  ["the stack of a failure", "subtle.digest('SHA-0', bytes(1)).catch((error) => typeof error.stack)"],
  [
    "many at once",
    "Promise.all(Array.from({ length: 200 }, (_, at) => subtle.digest('SHA-256', bytes(at)))).then((all) => all.map((one) => new Uint8Array(one)[0]))",
  ],
  ["a large text", "subtle.digest('SHA-256', bytes(3_000_000))"],
  [
    "settled in the order of the language",
    "{ const seen = []; const a = subtle.digest('SHA-1', bytes(1)).then(() => seen.push('digest')); Promise.resolve().then(() => seen.push('micro')); seen.push('sync'); await a; return seen }",
  ],
];

export const CRYPTO_SAMPLES: readonly Sample[] = [
  ...SHAPE_SAMPLES,
  ...DIGEST_SAMPLES,
  ...KEY_SAMPLES,
  ...KEY_PAIR_SAMPLES,
  ...RANDOM_SAMPLES,
  ...READING_SAMPLES,
];

const ENCRYPT = (algorithm: string, data = "bytes(4)") =>
  `subtle.encrypt(${algorithm}, await keyOf('AES-GCM'), ${data})`;
/** Calls of WebCrypto by title. Their code contains V, which values.ts replaces by many values. */
export const CRYPTO_CALLS_OF_VALUE: Readonly<Record<string, string>> = {
  "random values": "{ const given = V; return crypto.getRandomValues(given) === given }",
  "a digest's algorithm": "subtle.digest(V, bytes(4))",
  "a digest's name": "subtle.digest({ name: V }, bytes(4))",
  "a digest's bytes": "subtle.digest('SHA-256', V)",
  "a key's form": "subtle.importKey(V, bytes(32), 'AES-GCM', true, ['encrypt'])",
  "a key's bytes": "subtle.importKey('raw', V, 'HKDF', false, ['deriveBits'])",
  "a key's jwk": "subtle.importKey('jwk', V, 'AES-GCM', true, ['encrypt'])",
  "a jwk's member": "subtle.importKey('jwk', { kty: 'oct', k: V }, 'AES-GCM', true, ['encrypt'])",
  "a jwk's operations":
    "subtle.importKey('jwk', { kty: 'oct', k: 'BwcHBwcHBwcHBwcHBwcHBw', key_ops: V }, 'AES-GCM', true, ['encrypt'])",
  "a key's algorithm": "subtle.importKey('raw', bytes(32), V, true, ['encrypt'])",
  "a key's hash": "subtle.importKey('raw', bytes(32), { name: 'HMAC', hash: V }, true, ['sign'])",
  "a key's length": "subtle.importKey('raw', bytes(32), { name: 'HMAC', hash: 'SHA-1', length: V }, true, ['sign'])",
  "whether a key may leave":
    "{ const key = await subtle.importKey('raw', bytes(32), 'AES-GCM', V, ['encrypt']); return key.extractable }",
  "a key's usages": "{ const key = await subtle.importKey('raw', bytes(32), 'AES-GCM', true, V); return key.usages }",
  "a key's usage": "{ const key = await subtle.importKey('raw', bytes(32), 'AES-GCM', true, [V]); return key.usages }",
  "an encryption's algorithm": ENCRYPT("V"),
  "an encryption's iv": ENCRYPT("{ name: 'AES-GCM', iv: V }"),
  "an encryption's tag": ENCRYPT("{ name: 'AES-GCM', iv: bytes(12), tagLength: V }"),
  "an encryption's bytes": ENCRYPT("CALLS['AES-GCM']", "V"),
  "an encryption's key": "subtle.encrypt(CALLS['AES-GCM'], V, bytes(4))",
  "an exported key": "subtle.exportKey('raw', V)",
  "a signature": "subtle.verify('HMAC', await keyOf('HMAC'), V, bytes(4))",
  "a derivation's salt":
    "subtle.deriveBits({ name: 'HKDF', salt: V, info: bytes(1), hash: 'SHA-1' }, await keyOf('HKDF'), 64)",
  "a derivation's length": "subtle.deriveBits(CALLS.HKDF, await keyOf('HKDF'), V)",
  "an agreement's public key": "subtle.deriveBits({ name: 'ECDH', public: V }, (await pairOf('ECDH')).privateKey, 64)",
};
