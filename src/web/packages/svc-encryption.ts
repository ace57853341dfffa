/** Package `Svc.Encryption`: WebCrypto with safe defaults (AES-256-GCM, SHA-2, HMAC, PBKDF2). It stores no keys. */
import { createRandomUuid } from "../runtime/random-uuid.js";
import { defineSvcNamespace } from "./define.js";

type HashAlgorithm = "SHA-256" | "SHA-512";

const IV_BYTES = 12;
const KEY_BYTES = 32;
const PBKDF2_ITERATIONS = 600_000;

const encoder = new TextEncoder();

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

function fromBase64(text: string, description: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    throw new Error(`${description} must be base64`);
  }
}

const toHex = (bytes: ArrayBuffer) =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns the browser's functions for encryption. @throws Error if the page was loaded without HTTPS: browsers then offer no encryption */
function getSubtleCrypto(): SubtleCrypto {
  if (!crypto.subtle) throw new Error("this function of Svc.Encryption needs a page that was loaded over HTTPS");
  return crypto.subtle;
}

function importAesKey(key: string): Promise<CryptoKey> {
  const bytes = fromBase64(key, "key");
  if (bytes.length !== KEY_BYTES)
    throw new Error(`key must be ${KEY_BYTES} bytes in base64 (got ${bytes.length} bytes)`);
  return getSubtleCrypto().importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
}

const randomBytes = (count: number) => crypto.getRandomValues(new Uint8Array(count));

/** Returns a new key for `encrypt` and `decrypt`: 32 random bytes in base64. */
const generateKey = async () => toBase64(randomBytes(KEY_BYTES));

/** Derives a key from a password. `salt` is at least 16 bytes in base64, for example from `randomBytes(16)`. */
async function deriveKey(password: string, salt: string): Promise<string> {
  const saltBytes = fromBase64(salt, "salt");
  if (saltBytes.length < 16)
    throw new Error(`salt must be at least 16 bytes in base64 (got ${saltBytes.length} bytes)`);
  const passwordKey = await getSubtleCrypto().importKey("raw", encoder.encode(password), "PBKDF2", false, [
    "deriveBits",
  ]);
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt: saltBytes, iterations: PBKDF2_ITERATIONS };
  return toBase64(new Uint8Array(await getSubtleCrypto().deriveBits(parameters, passwordKey, KEY_BYTES * 8)));
}

/** Encrypts a text. Returns one base64 text that contains a new initialization vector, the ciphertext and the authentication tag. */
async function encryptText(text: string, key: string): Promise<string> {
  const iv = randomBytes(IV_BYTES);
  const ciphertext = await getSubtleCrypto().encrypt(
    { name: "AES-GCM", iv },
    await importAesKey(key),
    encoder.encode(text),
  );
  const ivAndCiphertext = new Uint8Array(IV_BYTES + ciphertext.byteLength);
  ivAndCiphertext.set(iv);
  ivAndCiphertext.set(new Uint8Array(ciphertext), IV_BYTES);
  return toBase64(ivAndCiphertext);
}

/** Decrypts a result of `encryptText`. @throws Error if the key is wrong or the encrypted text was changed */
async function decryptText(encrypted: string, key: string): Promise<string> {
  const bytes = fromBase64(encrypted, "the encrypted text");
  const algorithm = { name: "AES-GCM", iv: bytes.slice(0, IV_BYTES) };
  const plaintext = await getSubtleCrypto()
    .decrypt(algorithm, await importAesKey(key), bytes.slice(IV_BYTES))
    .catch(() => {
      throw new Error("decryption failed: the key is wrong, or the encrypted text was changed");
    });
  return new TextDecoder().decode(plaintext);
}

async function hashText(text: string, algorithm: HashAlgorithm = "SHA-256"): Promise<string> {
  return toHex(await getSubtleCrypto().digest(algorithm, encoder.encode(text)));
}

function importHmacKey(secret: string, algorithm: HashAlgorithm): Promise<CryptoKey> {
  return getSubtleCrypto().importKey("raw", encoder.encode(secret), { name: "HMAC", hash: algorithm }, false, [
    "sign",
    "verify",
  ]);
}

async function signText(text: string, secret: string, algorithm: HashAlgorithm = "SHA-256"): Promise<string> {
  return toHex(await getSubtleCrypto().sign("HMAC", await importHmacKey(secret, algorithm), encoder.encode(text)));
}

/** True if `signature` is the HMAC of the text. Compares in constant time. */
async function verifySignature(text: string, secret: string, signature: string, algorithm: HashAlgorithm = "SHA-256") {
  if (!/^([0-9a-f]{2})+$/i.test(signature)) return false;
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return getSubtleCrypto().verify("HMAC", await importHmacKey(secret, algorithm), bytes, encoder.encode(text));
}

defineSvcNamespace("Encryption", {
  generateKey,
  deriveKey,
  encrypt: encryptText,
  decrypt: decryptText,
  hash: hashText,
  hmac: signText,
  verifyHmac: verifySignature,
  randomUUID: createRandomUuid,
  /** Returns random bytes in base64. */
  randomBytes: (count: number) => toBase64(randomBytes(count)),
});
