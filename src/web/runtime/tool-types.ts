/** Public types of the packages that do not call the service. The build adds them to svc.d.ts. This file contains only types. */

/** `Svc.CSV`, of the package svc-csv. */
export interface CSV {
  /**
   * Returns the rows of a CSV text: objects with the names of the first line as keys, or arrays if `header` is false. Unless `header` is false,
   * throws if a row has another number of cells than the first line. Detects the delimiter, unless `delimiter` is set. Ignores a byte order
   * mark, and skips empty lines, but not rows of blank cells.
   */
  parse(text: string, options?: { header?: boolean; delimiter?: string; dynamicTyping?: boolean }): unknown[];
  /**
   * Returns rows as CSV text without a line break at the end. `columns` selects the keys of the rows to write; default: the keys of the first
   * row. Puts an apostrophe before cells that a spreadsheet would run as a formula, unless `escapeFormulae` is false.
   */
  stringify(
    rows: unknown[],
    options?: { delimiter?: string; columns?: string[]; header?: boolean; escapeFormulae?: boolean },
  ): string;
}

/** `Svc.Encryption`, of the package svc-encryption. */
export interface Encryption {
  /** Returns a random key for `encrypt` and `decrypt`, in base64. */
  generateKey(): Promise<string>;
  /** Returns a key for `encrypt` and `decrypt` that is computed from a password and a salt. `salt` is at least 16 bytes in base64. */
  deriveKey(password: string, salt: string): Promise<string>;
  /** Encrypts a text with AES-GCM. Returns base64. */
  encrypt(text: string, key: string): Promise<string>;
  /** Decrypts a result of `encrypt`. Rejects if the key is wrong or the encrypted text was changed. */
  decrypt(encrypted: string, key: string): Promise<string>;
  /** Returns the hash of a text in hexadecimal. */
  hash(text: string, algorithm?: "SHA-256" | "SHA-512"): Promise<string>;
  /** Returns the HMAC signature of a text in hexadecimal. */
  hmac(text: string, secret: string, algorithm?: "SHA-256" | "SHA-512"): Promise<string>;
  /** Compares an HMAC signature in constant time. Returns true if it is valid. */
  verifyHmac(text: string, secret: string, signature: string, algorithm?: "SHA-256" | "SHA-512"): Promise<boolean>;
  /** Returns a random UUID, version 4. */
  randomUUID(): string;
  /** Returns random bytes in base64. */
  randomBytes(count: number): string;
}

/** `Svc.Barcode`, of the package svc-barcode. */
export interface Barcode {
  /** Returns a bar code as SVG. `bcid` is the kind, such as qrcode, code128 or ean13; `text` is its content. */
  svg(options: { bcid: string; text: string }): string;
  /** Returns a bar code as a URL `data:image/png;…`, for an `<img>` in a page. In an e-mail, attach the picture, because not every mail program shows such a URL. */
  png(options: { bcid: string; text: string }): string;
  /** Returns a QR code as SVG. `options` are those of bwip-js, such as `{ scale: 4, eclevel: "H" }`. */
  qr(text: string, options?: object): string;
}

/** `Svc.Audio`, of the package svc-audio. */
export interface Audio {
  /** Plays a sound. Resolves when the sound has ended. */
  play(source: string | ArrayBuffer, options?: { volume?: number }): Promise<void>;
  /** Plays a tone. Resolves at its end. Default: a sine tone of 440 Hz, 0.2 seconds long. */
  tone(options?: { frequency?: number; seconds?: number; volume?: number; type?: string }): Promise<void>;
  /** Returns the duration in seconds, the sample rate in hertz (always 48,000), and for each channel its samples between -1 and 1. */
  decode(source: string | ArrayBuffer): Promise<{ duration: number; sampleRate: number; channels: Float32Array[] }>;
}
