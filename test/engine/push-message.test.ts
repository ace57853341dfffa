/** Tests the encryption of Web Push messages with the examples of the RFCs. */
import { createECDH, createPublicKey, createVerify } from "node:crypto";
import { createRequire } from "node:module";
import { expect } from "chai";
import { createPushRequest, generateVapidKeys } from "../../src/engine/push-message.js";

const ece = createRequire(createRequire(import.meta.url).resolve("web-push"))("http_ece") as {
  decrypt(body: Buffer, how: object): Buffer;
  encrypt(body: Buffer, how: object): Buffer;
};

const fromBase64 = (text: string) => Buffer.from(text, "base64url");

/** Example of RFC 8291, section 5 and appendix A. */
const RFC_8291 = {
  plain: "When I grow up, I want to be a watermelon",
  receiverPrivate: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
  receiverPublic: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  senderPrivate: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
  salt: "DGv6ra1nlYgDCS1FRnbzlw",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
  message:
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
};

function pair(privateKey: string) {
  const keys = createECDH("prime256v1");
  keys.setPrivateKey(fromBase64(privateKey));
  return keys;
}

describe("push messages", () => {
  it("are encrypted as in the example of RFC 8291, byte by byte, and can be decrypted", () => {
    const { plain, receiverPrivate, receiverPublic, senderPrivate, salt, auth, message } = RFC_8291;
    const made = ece.encrypt(Buffer.from(plain), {
      version: "aes128gcm",
      privateKey: pair(senderPrivate),
      dh: receiverPublic,
      authSecret: auth,
      salt,
    });
    expect(made.toString("base64url")).to.equal(message);
    const how = { version: "aes128gcm", privateKey: pair(receiverPrivate), authSecret: auth };
    expect(ece.decrypt(fromBase64(message), how).toString()).to.equal(plain);
  });

  it("can be decrypted only by the device, and are signed by the app (RFC 8292)", () => {
    const { receiverPrivate, receiverPublic, auth } = RFC_8291;
    const vapid = generateVapidKeys();
    const target = {
      endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
      p256dh: receiverPublic,
      auth,
    };
    const { url, headers, body } = createPushRequest(target, '{"title":"x"}', {
      ...vapid,
      subject: "mailto:push@example.com",
      topic: "svc-7",
    });
    expect(headers["Topic"]).to.equal("svc-7");
    expect(url.href).to.equal(target.endpoint);
    expect(headers["Content-Encoding"]).to.equal("aes128gcm");
    const how = { version: "aes128gcm", privateKey: pair(receiverPrivate), authSecret: auth };
    expect(ece.decrypt(body, how).toString()).to.equal('{"title":"x"}');

    const [, token, key] = /^vapid t=(\S+), k=(\S+)$/.exec(String(headers["Authorization"]))!;
    expect(key).to.equal(vapid.publicKey);
    const [head, claims, signature] = token!.split(".") as [string, string, string];
    expect(JSON.parse(fromBase64(head).toString())).to.deep.include({ alg: "ES256" });
    const { aud, exp, sub } = JSON.parse(fromBase64(claims).toString());
    expect([aud, sub]).to.deep.equal(["https://push.example.net", "mailto:push@example.com"]);
    expect(exp - Date.now() / 1000).to.be.within(60, 24 * 60 * 60);
    const point = fromBase64(key!);
    const jwk = {
      ...{ kty: "EC", crv: "P-256" },
      x: point.subarray(1, 33).toString("base64url"),
      y: point.subarray(33).toString("base64url"),
    };
    const publicKey = createPublicKey({ key: jwk, format: "jwk" });
    const verified = createVerify("sha256")
      .update(`${head}.${claims}`)
      .verify({ key: publicKey, dsaEncoding: "ieee-p1363" }, fromBase64(signature));
    expect(verified).to.equal(true);
  });
});
