/** The faces of the packages that need no service, joined into svc.d.ts. Types alone. */

/** `Svc.CSV`, of the package svc-csv. */
export interface CSV {
  /** Rows are objects by the names in the first line, or arrays with `header: false`. Throws where a row does not fit. */
  parse(text: string, options?: { header?: boolean; delimiter?: string; dynamicTyping?: boolean }): unknown[];
  /** Cells that a spreadsheet would take for a formula get an apostrophe, unless `escapeFormulae` is false. */
  stringify(
    rows: unknown[],
    options?: { delimiter?: string; columns?: string[]; header?: boolean; escapeFormulae?: boolean },
  ): string;
}

/** `Svc.Encryption`, of the package svc-encryption. */
export interface Encryption {
  /** A key for encrypt and decrypt, in base64. */
  generateKey(): Promise<string>;
  /** A key from a password and a salt. */
  deriveKey(password: string, salt: string): Promise<string>;
  /** AES-GCM, in base64. */
  encrypt(text: string, key: string): Promise<string>;
  decrypt(encrypted: string, key: string): Promise<string>;
  /** In hexadecimal. */
  hash(text: string, algorithm?: "SHA-256" | "SHA-512"): Promise<string>;
  hmac(text: string, secret: string, algorithm?: "SHA-256" | "SHA-512"): Promise<string>;
  verifyHmac(text: string, secret: string, signature: string, algorithm?: "SHA-256" | "SHA-512"): Promise<boolean>;
  randomUUID(): string;
  /** In base64. */
  randomBytes(count: number): string;
}

/** `Svc.Barcode`, of the package svc-barcode. */
export interface Barcode {
  /** `bcid` names the kind, such as qrcode, code128 or ean13; `text` is what it says. */
  svg(options: { bcid: string; text: string }): string;
  /** A `data:image/png` address, for an `<img>` or an e-mail. */
  png(options: { bcid: string; text: string }): string;
  /** A QR code as SVG. */
  qr(text: string, options?: object): string;
}

/** `Svc.Audio`, of the package svc-audio. */
export interface Audio {
  /** Resolves when it has ended. */
  play(source: string | ArrayBuffer, options?: { volume?: number }): Promise<void>;
  tone(options?: { frequency?: number; seconds?: number; volume?: number; type?: string }): Promise<void>;
  /** Seconds, samples a second (48,000 on every machine), and each channel's samples between -1 and 1. */
  decode(source: string | ArrayBuffer): Promise<{ duration: number; sampleRate: number; channels: Float32Array[] }>;
}
