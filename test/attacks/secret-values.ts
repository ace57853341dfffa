/** Secret values that are difficult to detect, each for another reason. */

const LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDLx7+/aKq5sB3c";
export const PEM = `-----BEGIN PRIVATE KEY-----\n${LINE}\n${LINE.split("").reverse().join("")}\nq9Zk4w==\n-----END PRIVATE KEY-----\n`;

export const VALUES: Record<string, string> = {
  "a PEM": PEM,
  "a JSON document": JSON.stringify({ type: "service", id: 7, private_key: PEM, note: 'say "hello" to \\ them' }),
  "a URL with a password": "postgres://user:p%40ss/w+rd%20of%2016@db.example.com:5432/app?sslmode=require",
  unicode: "пароль-密码-🔑ключ-ß",
  "64 KB": Array.from({ length: 8192 }, (_, i) => ((i * 2654435761) >>> 0).toString(16).padStart(8, "0")).join(""),
  "quotes, newlines and backslashes": 'a"b\\c\nd\\n"e\r\n\\\\f\tg h',
  "a base64 key": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ/+8=",
  "a UUID": "123e4567-e89b-12d3-a456-426614174000",
  "a Windows path": "C:\\new\\table\\users\\bob%41\\key.txt",
  "words with spaces": "correct horse battery staple",
  "the shortest": "s3cr3t!\\",
  "hex digits": "deadbeefcafe01",
  "percent signs": "100%25%20of%the+rest",
  HTML: `<a href="x">&amp;'</a>`,
};
